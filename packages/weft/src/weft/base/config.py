"""Configuration: one object, whose values are context variables over process-wide defaults.

`config.update("jax_enable_x64", True)` sets the default; `with weft.enable_x64(True): …` sets it for the current thread
or task. Environment variables `JAX_*` and `WEFT_*` give the first defaults. Options for mechanisms that weft does not
have are in `NO_EFFECT`: they can be set, with a warning.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from itertools import count
from typing import Any, ContextManager, Hashable, Iterator, Protocol, cast

from .annotations import override
from . import source_info
from .errors import at_user_line, warn

_UNSET = object()
_NOWHERE: dict = {}
# The values that blocks have set in this thread or task, by option. They are in one variable, so that one read shows
# whether any has changed.
_here: ContextVar[dict] = ContextVar("weft_config", default=_NOWHERE)
_TRUE, _FALSE = ("1", "true", "t", "on", "yes", "y"), ("0", "false", "f", "off", "no", "n")
# Options of jax that have no prefix.
_BARE = (
    "check_vma",
    "eager_constant_folding",
    "jax2tf_associative_scan_reductions",
    "jax2tf_default_native_serialization",
    "mock_num_gpu_processes",
)


class Option:
    """One configuration value. `traced` means that a program traced under one value is not reused under another."""

    __slots__ = ("name", "default", "kind", "choices", "optional", "traced", "doc")

    def __init__(self, name: str, default, choices=None, traced: bool = False, doc: str = "", kind: type | None = None):
        self.name, self.choices, self.traced, self.doc = name, choices, traced, doc
        self.kind = kind or (str if default is None else type(default))
        self.optional = default is None
        for variable in ("WEFT_" + name.upper(), self.public.upper()):
            text = os.environ.get(variable)
            if text is not None:
                default = self.parse(text, variable)
                break
        self.default = default

    @property
    def public(self) -> str:
        """The name as users write it."""
        return self.name if self.name in _BARE else "jax_" + self.name

    def parse(self, text: str, source: str):
        """The value of a text from an environment variable or a flag."""
        value: Any = text
        try:
            if self.kind is bool:
                value = True if text.lower() in _TRUE else False if text.lower() in _FALSE else text
            elif self.kind in (int, float):
                value = self.kind(text)
            elif self.optional and text == "":
                value = None
        except ValueError:
            pass  # the check names the allowed values
        return self.check(value, source)

    def check(self, value, source: str | None = None):
        """`value` as the option keeps it; ValueError if it is none of those allowed."""
        if value is None and self.optional:
            return None
        if self.choices is not None:
            value = getattr(value, "value", value)  # an enumeration's member
            allowed = ", ".join(map(repr, self.choices)) + (" or None" if self.optional else "")
            good = isinstance(value, str) and value in self.choices
        else:
            allowed = {bool: "True or False", int: "an int", float: "a number", str: "a string"}.get(
                self.kind, "any value"
            ) + (" or None" if self.optional else "")
            if (
                self.kind is bool
                and not isinstance(value, bool)
                and type(value).__name__ in ("int", "bool_", "bool")
                and value in (0, 1)
            ):
                value = bool(value)
            good = (
                self.kind is object
                or isinstance(value, (int, float) if self.kind is float else self.kind)
                and (self.kind is bool) >= isinstance(value, bool)
            )
        if not good:
            message = f"config option {self.public!r} takes {allowed}; got {value!r}" + (
                f" from {source}." if source else "."
            )
            raise ValueError(message if source else at_user_line(message))
        return value

    def get(self):
        return _here.get().get(self, self.default)

    def set_here(self, value):
        """Sets the value in this thread or task. Returns a token for `restore`."""
        held = _here.get()
        _here.set({**held, self: value})
        return held.get(self, _UNSET)

    def restore(self, before) -> None:
        """Restores the value from before a `set_here`, even if other options have changed since."""
        held = {**_here.get(), self: before}
        if before is _UNSET:
            del held[self]
        _here.set(held or _NOWHERE)


class Snapshot:
    """The values of some options. They are collected again only when one of them may have changed."""

    __slots__ = ("options", "_known", "_numbers")
    _count = count(1)  # counts across all snapshots, so that different values never get the same number

    def __init__(self, options: tuple):
        self.options = options
        # the context's values, the epoch, the options' values, and their number
        self._known: tuple[dict | None, int, tuple, int] = None, -1, (), 0
        self._numbers: dict[tuple, int] = {}

    def _look(self) -> tuple:
        held, known = _here.get(), self._known
        if known[0] is not held or known[1] != config._epoch:
            epoch, values = config._epoch, tuple([option.get() for option in self.options])
            number = self._numbers.get(values)
            if number is None:
                if len(self._numbers) >= 1024:
                    self._numbers = {}
                number = self._numbers[values] = next(self._count)
            known = self._known = held, epoch, values, number
        return known

    def values(self) -> tuple:
        """The values here."""
        return self._look()[2]

    def number(self) -> int:
        """A number that identifies the current values."""
        return self._look()[3]


# Options that affect a call but not its trace: where the call runs, and what is checked.
_CALLED = ("platforms", "default_device", "disable_jit", "debug_nans", "debug_infs")


class Setter(Protocol):
    """A context manager function that sets an option for a block, in this thread: booleans to True unless another
    value is given.
    """

    def __call__(self, new_val: Any = ...) -> ContextManager[None]: ...


class LocalOption(Setter, Protocol):
    """The context manager function of an option, with the option."""

    option: Option


class Config:
    """The process's configuration; read options as attributes (`config.jax_enable_x64`), set them with `update`."""

    def __init__(self):
        object.__setattr__(self, "_options", {})
        object.__setattr__(self, "_listeners", [])
        object.__setattr__(self, "_traced", ())
        object.__setattr__(self, "_epoch", 0)  # how often a default has changed
        self._snapshots()

    def define(
        self,
        name: str,
        default: Any,
        choices: Any = None,
        traced: bool = False,
        doc: str = "",
        kind: type | None = None,
    ) -> LocalOption:
        """Adds an option and returns a context manager function that sets it locally."""
        option = self._options[name] = Option(name, default, choices, traced, doc, kind)
        if traced:
            object.__setattr__(self, "_traced", (*self._traced, option))

        self._snapshots()

        @contextmanager
        def held(value: Any) -> Iterator[None]:
            before = option.set_here(option.check(value))
            self._notify(name)
            try:
                yield
            finally:
                option.restore(before)
                self._notify(name)

        def block(new_val: Any = _UNSET) -> ContextManager[None]:
            if new_val is _UNSET and option.kind is not bool:
                raise TypeError(
                    at_user_line(f"{name} takes the new value of the config option: with weft.{name}(value): …")
                )
            return held(True if new_val is _UNSET else new_val)

        block.__name__ = block.__qualname__ = name
        block.__doc__ = f"Sets the config option `{option.public}` for a block, in this thread. {doc}"
        local = cast(LocalOption, block)
        local.option = option
        return local

    @property
    def traced_options(self) -> tuple[Option, ...]:
        """The options whose values belong to a trace, in the order of `trace_context`."""
        return self._traced

    def _snapshots(self) -> None:
        more = [self._options[name] for name in _CALLED if name in self._options]
        # the values on which a traced program depends, part of every cache key; and a number for those on which a call
        # depends
        object.__setattr__(self, "trace_context", Snapshot(self._traced).values)
        object.__setattr__(self, "call_context", Snapshot((*self._traced, *more)).number)

    def update(self, name: str, value) -> None:
        """Sets the process-wide default of option `name` (with or without the prefix `jax_`).

        Raises:
            AttributeError: for an unknown option.
            ValueError: for a value that it does not take.

        Example:
            >>> import weft
            >>> weft.config.update("jax_numpy_rank_promotion", "allow")
        """
        option = self._find(name)
        value = option.check(value)
        if option.name in NO_EFFECT and value != option.default:
            warn(f"the config option {option.public!r} has no effect in weft: {NO_EFFECT[option.name][2]}.")
        option.default = value
        object.__setattr__(self, "_epoch", self._epoch + 1)
        self._notify(option.name)

    def _find(self, name: str) -> Option:
        short = name.removeprefix("jax_")
        option = self._options.get(short)
        if option is None and short in NO_EFFECT:
            default, choices, reason = NO_EFFECT[short]
            option = self._options[short] = Option(short, default, choices, doc=f"No effect: {reason}.")
        if option is None:
            near = import_module("difflib").get_close_matches(short, [*self._options, *NO_EFFECT], 1)
            hint = f" Did you mean {'jax_' + near[0]!r}?" if near else " weft.config.values lists all."
            raise AttributeError(at_user_line(f"there is no config option {name!r}.{hint}"))
        return option

    def listen(self, callback) -> None:
        """Calls `callback(name)` whenever an option may have changed; backends mirror options with it."""
        self._listeners.append(callback)

    def _notify(self, name: str) -> None:
        for callback in self._listeners:
            callback(name)

    def read(self, name: str):
        """The value of an option in this thread."""
        return self._find(name).get()

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return self._find(name).get()

    @override
    def __setattr__(self, name: str, value):
        raise AttributeError(at_user_line(f"set options with config.update({name!r}, {value!r})"))

    @override
    def __dir__(self):
        return sorted({*object.__dir__(self), *self.values})

    @property
    def values(self) -> dict:
        """All options with their values, by name."""
        return {o.public: o.get() for o in [*self._options.values(), *[self._find(n) for n in NO_EFFECT]]}

    @property
    def x64_enabled(self) -> bool:
        """Whether 64-bit dtypes are kept."""
        return self._options["enable_x64"].get()

    def parse_flags_with_absl(self) -> None:
        """Sets the options that the command line names (`--jax_enable_x64`, `--jax_platforms=cpu`, `--nojax_…`), and
        leaves all other arguments.
        """
        for argument in sys.argv[1:]:
            name, given, text = argument.lstrip("-").partition("=")
            off = name.startswith("nojax_") and not given
            name = name.removeprefix("no") if off else name
            if argument.startswith("--") and name.startswith("jax_"):
                option = self._find(name)
                self.update(name, option.parse(text if given else "0" if off else "1", f"the flag --{name}"))

    config_with_absl = parse_flags_with_absl


# Options about machinery that weft does not have: default, choices, and why nothing follows from them.
_PALLAS, _PGLE = "it concerns kernels of TPUs and GPUs", "profile-guided latency estimation is not used"
_CLUSTER, _PART = "jaxlib's own default holds between processes", "weft's traces have one form of this"
_ALWAYS = "weft always does it"
NO_EFFECT: dict[str, tuple] = {
    "check_vma": (False, None, _PART),
    "eager_constant_folding": (False, None, "constants are folded by the compiler"),
    "jax2tf_associative_scan_reductions": (False, None, "weft has no jax2tf"),
    "jax2tf_default_native_serialization": (True, None, "weft has no jax2tf"),
    "auto_pcast": (True, None, _PART),
    "backend_target": ("", None, "devices are local"),
    "xla_backend": ("", None, "jax_platforms chooses the backend"),
    "bcoo_cusparse_lowering": (False, None, "weft has no sparse arrays"),
    "check_proxy_envs": (True, None, _CLUSTER),
    "compilation_cache_expect_pgle": (False, None, _PGLE),
    "compiler_enable_remat_pass": (True, None, "set XLA_FLAGS for XLA's passes"),
    "compiler_detailed_logging_min_ops": (10, None, "XLA's own logging is set by TF_CPP_VMODULE"),
    "cross_host_transfer_socket_address": ("", None, _CLUSTER),
    "cross_host_transfer_timeout_seconds": (None, None, _CLUSTER),
    "cross_host_transfer_transfer_size": (None, None, _CLUSTER),
    "cross_host_transport_addresses": ("", None, _CLUSTER),
    "oneapi_visible_devices": ("all", None, "oneAPI is not supported"),
    "rocm_visible_devices": ("all", None, "ROCm is not supported"),
    "custom_vjp3": (False, None, _PART),
    "disable_bwd_checks": (False, None, _PART),
    "debug_leaked_clients_on_clear_backends": (False, None, "clients live as long as the process"),
    "disable_vmap_shmap_error": (False, None, _PART),
    "disallow_mesh_context_manager": (False, None, _PART),
    "distributed_debug": (False, None, _CLUSTER),
    "embedded_constants_max_bytes": (32, None, "captured arrays are arguments of the compiled program"),
    "enable_pgle": (False, None, _PGLE),
    "enable_preemption_service": (True, None, "it starts when reached_preemption_sync_point is first called"),
    "error_checking_behavior_divide": ("ignore", ("ignore", "raise"), "checkify finds such errors"),
    "error_checking_behavior_nan": ("ignore", ("ignore", "raise"), "checkify and jax_debug_nans find such errors"),
    "error_checking_behavior_oob": ("ignore", ("ignore", "raise"), "checkify finds such errors"),
    "experimental_unsafe_xla_runtime_errors": (False, None, _PART),
    "export_calling_convention_version": (10, None, _PART),
    "export_ignore_forward_compatibility": (False, None, _PART),
    "force_dcn_cross_host_transfers": (False, None, _CLUSTER),
    "include_debug_info_in_dumps": (True, None, _ALWAYS),
    "include_full_tracebacks_in_locations": (True, None, "operations carry the user's own line"),
    "traceback_in_locations_limit": (100, None, "operations carry the user's own line"),
    "log_checkpoint_residuals": (False, None, "ad_checkpoint.print_saved_residuals shows them"),
    "mock_gpu_topology": ("", None, _CLUSTER),
    "mock_num_gpu_processes": (0, None, _CLUSTER),
    "mosaic_allow_hlo": (False, None, _PALLAS),
    "mutable_array_checks": (True, None, _ALWAYS),
    "pallas_enable_debug_checks": (False, None, _PALLAS),
    "pallas_poison_buffers": (False, None, _PALLAS),
    "pallas_use_mosaic_gpu": (True, None, _PALLAS),
    "pallas_verbose_errors": (False, None, _PALLAS),
    "persistent_cache_enable_xla_caches": (
        "xla_gpu_per_fusion_autotune_cache_dir",
        None,
        "XLA's own caches are set by XLA_FLAGS",
    ),
    "pgle_aggregation_percentile": (90, None, _PGLE),
    "pgle_profiling_runs": (3, None, _PGLE),
    "pjrt_client_create_options": (None, None, "plugins get their own defaults"),
    "pprint_use_color": (True, None, "jaxprs are printed without colours"),
    "ragged_dot_use_gpu_pallas_triton_lowering": (False, None, _PALLAS),
    "ragged_dot_use_ragged_dot_instruction": (True, None, _PART),
    "refs_to_pins": (False, None, _PART),
    "remat3": (False, None, _PART),
    "scan3": (False, None, _PART),
    "remove_custom_partitioning_ptr_from_cache_key": (False, None, _PART),
    "remove_size_one_mesh_axis_from_type": (False, None, _PART),
    "send_traceback_to_runtime": ("off", ("off", "on", "full"), "operations carry the user's own line"),
    "serialization_version": (0, None, _PART),
    "share_binary_between_hosts": (False, None, _CLUSTER),
    "share_binary_between_hosts_timeout_ms": (1200000, None, _CLUSTER),
    "softmax_custom_jvp": (False, None, "softmax has one derivative"),
    "sort_devices_by_process_index": (True, None, _CLUSTER),
    "source_url_schema": (None, None, "lines are shown as file:line"),
    "threefry_gpu_kernel_lowering": (False, None, "threefry is lowered to arithmetic on all devices"),
    "tracer_error_num_traceback_frames": (5, None, "errors name the user's own line"),
    "use_direct_linearize": (True, None, _ALWAYS),
    "captured_constants_report_frames": (0, None, "the warning names the user's line"),
    "check_static_indices": (False, None, "checkify finds indices out of bounds"),
    "explicit_x64_dtypes": ("warn", ("warn", "error", "allow"), "jax_enable_x64 alone decides"),
    "high_dynamic_range_gumbel": (False, None, "gumbel is drawn from uniform values of its own dtype"),
    "cuda_visible_devices": ("all", None, "set CUDA_VISIBLE_DEVICES"),
    "use_emit_pipeline_primitive": (False, None, _PALLAS),
    "use_magma": ("auto", ("off", "on", "auto"), "eig runs on the CPU"),
    "use_shardy_partitioner": (True, None, _ALWAYS),
    "use_simplified_jaxpr_constants": (False, None, _PART),
    "xla_profile_version": (0, None, _PGLE),
}

config = Config()
_define = config.define
_GUARD = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
_PRECISIONS = (
    "default",
    "high",
    "highest",
    "fastest",
    "bfloat16",
    "bfloat16_3x",
    "tensorfloat32",
    "float32",
    "ANY_F8_ANY_F8_F32",
    "ANY_F8_ANY_F8_F32_FAST_ACCUM",
    "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM",
    "F16_F16_F16",
    "F16_F16_F32",
    "BF16_BF16_BF16",
    "BF16_BF16_F32",
    "BF16_BF16_F32_X3",
    "BF16_BF16_F32_X6",
    "BF16_BF16_F32_X9",
    "TF32_TF32_F32",
    "TF32_TF32_F32_X3",
    "F32_F32_F32",
    "F64_F64_F64",
)

# the meaning of programs
enable_x64 = _define("enable_x64", False, traced=True, doc="64-bit dtypes are kept instead of narrowed to 32 bits.")
jit_disabled = _define("disable_jit", False, doc="jit runs functions op by op.")
numpy_dtype_promotion = _define(
    "numpy_dtype_promotion",
    "standard",
    ("standard", "strict"),
    True,
    doc="Whether arrays of different dtypes promote implicitly.",
)
numpy_rank_promotion = _define(
    "numpy_rank_promotion",
    "allow",
    ("allow", "warn", "raise"),
    True,
    doc="Whether arrays of different ranks broadcast implicitly.",
)
default_matmul_precision = _define(
    "default_matmul_precision",
    None,
    _PRECISIONS,
    True,
    doc="The precision of dot and convolution where the call names none.",
)
threefry_partitionable = _define(
    "threefry_partitionable", True, traced=True, doc="The order in which threefry counters are spread over an array."
)
default_prng_impl = _define(
    "default_prng_impl",
    "threefry2x32",
    ("threefry2x32", "rbg", "unsafe_rbg"),
    True,
    doc="The generator behind weft.random.key.",
)
enable_custom_prng = _define("enable_custom_prng", False, traced=True, doc="PRNGKey makes new-style keys.")
default_device = _define("default_device", None, kind=object, doc="The device of uncommitted values and computations.")
# devices
platforms = _define("platforms", None, doc="Comma-separated platforms in order of preference.")
platform_name = _define("platform_name", "", doc="The platform, where jax_platforms names none.")
num_cpu_devices = _define(
    "num_cpu_devices", -1, doc="How many virtual CPU devices XLA offers; -1: one, or what XLA_FLAGS asks."
)
cpu_enable_async_dispatch = _define("cpu_enable_async_dispatch", True, doc="XLA's CPU runs ahead of Python.")
# several processes
cpu_collectives_implementation = _define(
    "cpu_collectives_implementation",
    "gloo",
    ("gloo", "mpi", "megascale"),
    doc="How the CPUs of several processes exchange data: over TCP (gloo), or by MPI.",
)
cpu_get_local_topology_timeout_minutes = _define(
    "cpu_get_local_topology_timeout_minutes", 2, doc="How long a process waits for its own CPU devices."
)
cpu_get_global_topology_timeout_minutes = _define(
    "cpu_get_global_topology_timeout_minutes", 5, doc="How long a process waits for the CPU devices of the others."
)
enable_recoverability = _define(
    "enable_recoverability", False, doc="A process does not end where another one has ended."
)
# finding mistakes
check_tracer_leaks = _define("check_tracer_leaks", False, traced=True, doc="Leaked tracers raise at once.")
debug_nans = _define("debug_nans", False, doc="A result with a NaN raises, naming the operation.")
debug_infs = _define("debug_infs", False, doc="A result with an infinity raises, naming the operation.")
debug_key_reuse = _define("debug_key_reuse", False, traced=True, doc="A random key that is consumed twice raises.")
enable_checks = _define("enable_checks", False, doc="Every jaxpr is checked by the verifier when it is made.")
verify_jaxprs = _define("verify_jaxprs", False, doc="Every jaxpr is checked by the verifier when it is made.")
log_compiles = _define("log_compiles", False, doc="Each compilation is logged, with the time of its phases.")
explain_cache_misses = _define(
    "explain_cache_misses",
    False,
    doc="Each trace of a jitted function is logged, with what differs from the traces before.",
)
traceback_filtering = _define(
    "traceback_filtering",
    "auto",
    ("auto", "off", "tracebackhide", "remove_frames", "quiet_remove_frames"),
    doc=(
        "Internal frames are left out of tracebacks unless it is 'off': marked for IPython and pytest"
        " ('tracebackhide'), left to the error's cause ('remove_frames') or left out with a note"
        " ('quiet_remove_frames'). 'auto' chooses one of the first and the last."
    ),
)
no_tracing = _define("no_tracing", False, doc="A jitted function that would have to be traced raises instead.")
no_execution = _define("no_execution", False, doc="A program that would run raises instead.")
transfer_guard = _define(
    "transfer_guard",
    None,
    _GUARD,
    doc="What happens at transfers between host and devices: all three directions at once.",
)
transfer_guard_host_to_device = _define(
    "transfer_guard_host_to_device", None, _GUARD, doc="What happens at transfers from the host to a device."
)
transfer_guard_device_to_host = _define(
    "transfer_guard_device_to_host", None, _GUARD, doc="What happens at transfers from a device to the host."
)
transfer_guard_device_to_device = _define(
    "transfer_guard_device_to_device", None, _GUARD, doc="What happens at transfers between devices."
)
array_garbage_collection_guard = _define(
    "array_garbage_collection_guard",
    None,
    ("allow", "log", "fatal"),
    doc="What happens where the garbage collector finds an array in a cycle (XLA only).",
)
_define(
    "array_tracebacks",
    False,
    doc="XLA remembers where each array was made, for the device memory profile. Calls take longer then.",
)
thread_guard = _define(
    "thread_guard",
    False,
    doc="XLA's runtime refuses calls from other threads than the first one (XLA on several processes only).",
)
allow_f16_reductions = _define(
    "allow_f16_reductions", True, traced=True, doc="Sums and products of 16-bit floats may be computed in 16 bits."
)
_define(
    "captured_constants_warn_bytes",
    2_000_000_000,
    doc="A program that closes over more bytes of arrays warns; -1: none does.",
)
legacy_prng_key = _define(
    "legacy_prng_key",
    "allow",
    ("allow", "warn", "error"),
    doc="What happens where a raw uint32 array is used as a random key.",
)
_define("random_seed_offset", 0, traced=True, doc="Added to every seed of weft.random.")
# logs and dumps
_define(
    "logging_level",
    None,
    ("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    doc="The level of weft's loggers.",
)
_define("debug_log_modules", "", doc="Comma-separated modules of weft whose loggers are set to DEBUG.")
_define("dump_ir_to", "", doc="A folder into which each program is written before XLA compiles it.")
_define("dump_ir_modes", "stablehlo", ("stablehlo",), doc="What is written there.")
_define(
    "hlo_source_file_canonicalization_regex",
    None,
    doc="What matches is cut from the names of source files in compiled programs.",
)
# the compiler
_define("disable_most_optimizations", False, doc="XLA compiles sooner, and programs that run slower.")
_define("exec_time_optimization_effort", 0.0, doc="XLA's effort for speed, from -1 to 1.")
_define("memory_fitting_effort", 0.0, doc="XLA's effort to save memory, from -1 to 1.")
_define("optimization_level", "UNKNOWN", ("UNKNOWN", "O0", "O1", "O2", "O3"), doc="XLA's level of optimization.")
_define("memory_fitting_level", "O2", ("UNKNOWN", "O0", "O1", "O2", "O3"), doc="XLA's level of saving memory.")
# the persistent compile cache (experimental.compilation_cache)
_define("compilation_cache_dir", None, doc="The folder of the persistent compile cache; None: there is none.")
_define("enable_compilation_cache", True, doc="Whether the persistent compile cache is used where a folder is set.")
_define("persistent_cache_min_compile_time_secs", 1.0, doc="Programs that compile faster are not kept.")
_define("persistent_cache_min_entry_size_bytes", 0, doc="Smaller compiled programs are not kept.")
_define(
    "compilation_cache_max_size",
    -1,
    doc="Bytes that the folder may hold; what was not used for longest goes first. -1: any, 0: nothing is kept.",
)
_define(
    "compilation_cache_include_metadata_in_key",
    False,
    doc="Programs that differ only in names and lines are kept apart.",
)
_define(
    "compilation_cache_check_contents",
    False,
    doc="A program that is in the cache is compiled all the same, and a different result warned of.",
)
_define("raise_persistent_cache_errors", False, doc="What goes wrong with the cache's files raises instead of warning.")


class UserContext:
    """A value of the user's on which traces depend. Made by `weft.make_user_context`."""

    def __init__(self, name: str, default):
        self._name, self._set = name, config.define(name, default, traced=True, kind=object)

    def __call__(self, value):
        """A context manager: the value for a block, in this thread."""
        return self._set(value)

    @property
    def value(self):
        """The value here."""
        return config.read(self._name)

    def get_global(self):
        """The value where no block sets another."""
        return config._find(self._name).default

    def set_global(self, value) -> None:
        """Sets the value where no block does."""
        config.update(self._name, value)


def make_user_context(default_value: Hashable = None) -> UserContext:
    """A value that functions may read while they are traced: under another value they are traced and compiled again.

    Values must be hashable. Make contexts when a program starts: all programs are traced again after a new one is made.

    Args:
        default_value: hashable value outside of all blocks.

    Returns:
        `UserContext`: called with a value it is a context manager; its `value` is that which holds.

    Example:
        >>> import weft
        >>> context = weft.make_user_context(default_value=1)
        >>> f = weft.jit(lambda x: x * context.value)
        >>> print(f(2.0))
        2.0
        >>> with context(3):
        ...     print(f(2.0))
        6.0
    """
    return UserContext(f"user_context_{len(config._options)}", default_value)


def disable_jit(disable: bool = True) -> ContextManager[None]:
    """Runs jitted functions op by op in a block, in this thread.

    Args:
        disable: bool: or compile again, inside of such a block.

    Returns:
        context manager.

    Example:
        >>> import weft
        >>> with weft.disable_jit():
        ...     weft.jit(lambda x: print("got", x))(1)
        got 1
    """
    return jit_disabled(disable)


_NO_EFFECT_DOC = """Context manager that sets a config option which has no effect in weft: {why}.

Args:
    new_val: bool: the value of the option.

Returns:
    context manager.

Example:
    >>> import weft
    >>> with weft.{name}(weft.config.jax_{name}):
    ...     pass
"""


def _without_effect(name: str) -> Setter:
    """The context manager of an option that has no effect: it checks the value, and warns if it is not the default."""

    @contextmanager
    def local(new_val: Any = _UNSET) -> Iterator[None]:
        option = config._find(name)
        new_val = True if new_val is _UNSET else new_val
        if option.check(new_val) != option.get():
            warn(f"the config option {option.public!r} has no effect in weft: {NO_EFFECT[name][2]}.")
        before = option.set_here(new_val)
        try:
            yield
        finally:
            option.restore(before)

    local.__name__ = local.__qualname__ = name
    local.__doc__ = _NO_EFFECT_DOC.format(name=name, why=NO_EFFECT[name][2])
    return local


auto_pcast, softmax_custom_jvp = _without_effect("auto_pcast"), _without_effect("softmax_custom_jvp")
jax2tf_associative_scan_reductions = _without_effect("jax2tf_associative_scan_reductions")
remove_size_one_mesh_axis_from_type = _without_effect("remove_size_one_mesh_axis_from_type")


def logger(name: str):
    """The logger of that name; `logging` is loaded by the first program that logs, since it takes 4 ms."""
    return import_module("logging").getLogger(name)


def _set_logging(name: str) -> None:
    if name in ("logging_level", "debug_log_modules"):
        level = config.logging_level
        logger("weft").setLevel(level or "NOTSET")
        for module in filter(None, config.debug_log_modules.split(",")):
            logger(module.strip()).setLevel("DEBUG")


config.listen(_set_logging)
if config.logging_level or config.debug_log_modules:
    _set_logging("logging_level")

source_info.filtering.define(traceback_filtering.option.get)
