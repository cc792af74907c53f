"""Configuration: one object, whose values are context variables over process-wide defaults.

`config.update("jax_enable_x64", True)` sets the default; `with weft.enable_x64(True): …` sets it for the
current thread or task. Environment variables `JAX_*` and `WEFT_*` give the first defaults.
"""
from __future__ import annotations

import os
from contextlib import contextmanager
from contextvars import ContextVar

_UNSET = object()


def _parse(text: str, default):
    if isinstance(default, bool):
        return text.lower() in ("1", "true", "on", "yes")
    if isinstance(default, int):
        return int(text)
    return text


class Option:
    """One configuration value. `traced` says that programs traced under different values are different."""
    __slots__ = ("name", "default", "choices", "traced", "doc", "_local")

    def __init__(self, name, default, choices, traced, doc):
        env = os.environ.get("WEFT_" + name.upper(), os.environ.get("JAX_" + name.upper()))
        self.name, self.choices, self.traced, self.doc = name, choices, traced, doc
        self.default = default if env is None else self.check(_parse(env, default))
        self._local: ContextVar = ContextVar(name, default=_UNSET)

    def check(self, value):
        if self.choices is not None and value not in self.choices:
            raise ValueError(f"config option {self.name!r} takes one of {', '.join(map(repr, self.choices))}; got {value!r}.")
        return value

    def get(self):
        value = self._local.get()
        return self.default if value is _UNSET else value


class Config:
    """The process's configuration; read options as attributes (`config.enable_x64`), set them with `update`."""

    def __init__(self):
        object.__setattr__(self, "_options", {})
        object.__setattr__(self, "_listeners", [])
        object.__setattr__(self, "_traced", ())

    def define(self, name: str, default, choices=None, traced: bool = False, doc: str = ""):
        """Adds an option and returns a context manager function that sets it locally."""
        option = self._options[name] = Option(name, default, choices, traced, doc)
        if traced:
            object.__setattr__(self, "_traced", (*self._traced, option))

        @contextmanager
        def local(value=True):
            token = option._local.set(option.check(value))
            self._notify(name)
            try:
                yield
            finally:
                option._local.reset(token)
                self._notify(name)
        local.__name__, local.__doc__ = name, doc
        return local

    def update(self, name: str, value) -> None:
        """Sets the process-wide default of option `name` (with or without the prefix `jax_`)."""
        option = self._find(name)
        option.default = option.check(value)
        self._notify(option.name)

    def _find(self, name: str) -> Option:
        short = name.removeprefix("jax_")
        if short not in self._options:
            raise AttributeError(f"there is no config option {name!r}. Options: {', '.join(sorted(self._options))}.")
        return self._options[short]

    def listen(self, callback) -> None:
        """Calls `callback(name)` whenever an option may have changed; backends mirror options with it."""
        self._listeners.append(callback)

    def _notify(self, name: str) -> None:
        for callback in self._listeners:
            callback(name)

    def trace_context(self) -> tuple:
        """The values on which a traced program depends; part of every cache key."""
        return tuple([option.get() for option in self._traced])

    def read(self, name: str):
        return self._find(name).get()

    def __getattr__(self, name: str):
        return self._find(name).get()

    def __setattr__(self, name: str, value):
        raise AttributeError(f"set options with config.update({name!r}, {value!r})")

    @property
    def values(self) -> dict:
        return {"jax_" + n: o.get() for n, o in self._options.items()}


config = Config()
enable_x64 = config.define("enable_x64", False, traced=True, doc="64-bit dtypes are kept instead of narrowed to 32 bits.")
disable_jit = config.define("disable_jit", False, doc="jit runs functions op by op.")
numpy_dtype_promotion = config.define("numpy_dtype_promotion", "standard", ("standard", "strict"), True,
                                      doc="Whether arrays of different dtypes promote implicitly.")
numpy_rank_promotion = config.define("numpy_rank_promotion", "allow", ("allow", "warn", "raise"), True,
                                     doc="Whether arrays of different ranks broadcast implicitly.")
default_matmul_precision = config.define("default_matmul_precision", None, traced=True,
                                         doc="The precision of dot and convolution where the call names none.")
threefry_partitionable = config.define("threefry_partitionable", True, traced=True,
                                       doc="The order in which threefry counters are spread over an array.")
default_prng_impl = config.define("default_prng_impl", "threefry2x32", ("threefry2x32", "rbg", "unsafe_rbg"), True,
                                  doc="The generator behind weft.random.key.")
enable_custom_prng = config.define("enable_custom_prng", False, traced=True, doc="PRNGKey makes new-style keys.")
default_device = config.define("default_device", None, doc="The device of uncommitted values and computations.")
platforms = config.define("platforms", None, doc="Comma-separated platforms in order of preference.")
check_tracer_leaks = config.define("check_tracer_leaks", False, traced=True, doc="Leaked tracers raise at once.")
debug_nans = config.define("debug_nans", False, doc="A result with a NaN raises, naming the operation.")
debug_infs = config.define("debug_infs", False, doc="A result with an infinity raises, naming the operation.")
log_compiles = config.define("log_compiles", False, doc="Each compilation is logged.")
verify_jaxprs = config.define("verify_jaxprs", False, doc="Every jaxpr is checked by the verifier when it is made.")
traceback_filtering = config.define("traceback_filtering", "auto", ("auto", "off"), doc="Internal frames are left out of tracebacks.")
num_cpu_devices = config.define("num_cpu_devices", 0, doc="How many virtual CPU devices XLA offers; 0: one, or what XLA_FLAGS asks.")
cpu_enable_async_dispatch = config.define("cpu_enable_async_dispatch", True, doc="XLA's CPU runs ahead of Python.")
