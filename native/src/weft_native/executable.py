"""Compiled programs of the XLA backend."""

from __future__ import annotations

import functools
from typing import Any, Sequence

import jaxlib._jax as _jax
from jaxlib import xla_client as xc
from weft.base.avals import array_type
from weft.core.jaxpr import Jaxpr
from weft.base.devices import addressable
from weft.base.errors import BackendError, at_user_line, warn
from weft.runtime.effects import started, wait_for_ordered
from weft.runtime.partition import Partition
from weft.base.layout import Layout
from weft.base.mesh import NamedSharding, P

from . import cache, compat
from . import sharding as placing
from .client import client_for, compile_options

STAGES = ("stablehlo", "hlo")


class XlaExecutable:
    """A program compiled for one device, or for the devices of a Partition. Its arguments have exactly the compiled
    avals and shardings.
    """

    def __init__(self, jaxpr: Jaxpr, device, lowered, loaded, name: str):
        self.name, self.device = name, device
        self.in_avals, self.out_avals = tuple(map(array_type, jaxpr.in_avals)), tuple(map(array_type, jaxpr.out_avals))
        self.kept, self.loaded = lowered.kept, loaded
        self.in_shardings, self.out_shardings = _shardings(
            device, loaded, self.in_avals, self.out_avals, lowered.memories
        )
        self.spread = type(device) is Partition
        self.layouts, self.out_layouts = _layouts(device, loaded, lowered.kept, len(self.in_avals))
        self.all_kept = all(lowered.kept)
        self.effects = jaxpr.effects
        # smaller than the module, and independent of its MLIR context
        self._bytecode = cache.bytecode(lowered.module)
        self._handlers = {
            committed: [
                compat.result_handler(placing.typed(a, placing.from_xla(s)), s, committed)
                for a, s in zip(self.out_avals, self.out_shardings)
            ]
            for committed in (False, True)
        }
        self._run = loaded.execute_sharded

    def execute(self, args: Sequence[Any], committed: bool | None = None) -> list[Any]:
        """Runs on arrays of this backend and returns at once. Results are committed to the device if an argument is."""
        if committed is None:
            committed = self.spread or any([a._committed for a in args])
        if self.layouts or placing.unusual:
            args = [x if kept is False else self.laid(x, i) for i, (x, kept) in enumerate(zip(args, self.kept))]
        if not self.all_kept:
            args = [a for a, kept in zip(args, self.kept) if kept]
        if self.effects:
            wait_for_ordered(self.effects)
            results = self._run(args, with_tokens=True)
            started(results.consume_token())
            return results.consume_with_handlers(self._handlers[committed])
        return self._run(args).consume_with_handlers(self._handlers[committed])

    @property
    def laid_out(self) -> bool:
        """Whether arguments or results have other layouts than the usual one."""
        return bool(self.layouts or self.out_layouts)

    def laid(self, x: Any, i: int) -> Any:
        """An argument in the layout that the program was compiled for. Raises ValueError for a committed one in
        another.
        """
        found = placing.layout_of(x)
        wanted = self.layouts[i] if self.layouts else None
        if found.is_row_major if wanted is None else found.major_to_minor == wanted.major_to_minor:
            return x
        usual = Layout(tuple(range(x.ndim)))
        if wanted is not None and x._committed and not found.is_row_major:
            raise ValueError(
                at_user_line(
                    f"Layout passed to jit does not match the layout on the respective arg. Got jit layout: {wanted},"
                    f" arg layout: {found} for arg type: {x.aval.str_short(short_dtypes=False)}. Move it with"
                    " weft.device_put(x, Format(layout, x.sharding))."
                )
            )
        return x.device.backend.relaid(x, usual if wanted is None else wanted)

    def as_text(self, stage: str | None = None) -> str:
        """The optimized HLO (`stage` None or "hlo") or the StableHLO that it was compiled from ("stablehlo")."""
        if stage in (None, "hlo"):
            return "\n\n".join(m.to_string() for m in self.loaded.hlo_modules())
        if stage == "stablehlo":
            from .lower.builder import dialects, parse  # not before a program was lowered

            with dialects() as home:
                return module_text(parse(self._bytecode, home))
        raise ValueError(f"XLA programs have the stages {', '.join(map(repr, STAGES))}; got {stage!r}.")

    def cost_analysis(self) -> dict:
        """XLA's estimates: flops, bytes accessed and others, by name."""
        found = self.loaded.cost_analysis()
        return dict(found[0] if isinstance(found, (list, tuple)) and found else found or {})

    def memory_analysis(self) -> dict:
        """Bytes of arguments, results, temporary buffers and code."""
        stats = self.loaded.get_compiled_memory_stats()
        names = (
            "argument_size_in_bytes",
            "output_size_in_bytes",
            "temp_size_in_bytes",
            "alias_size_in_bytes",
            "generated_code_size_in_bytes",
        )
        return {name: getattr(stats, name) for name in names}


def _layouts(place, loaded, kept: Sequence, count: int) -> tuple[tuple, tuple]:
    """The layouts of arguments and results, which the compiler has chosen where the caller left it to it; empty for
    the usual ones.
    """
    if type(place) is not Partition or not (place.in_layouts or place.out_layouts):
        return (), ()
    placing.unusual.append(True)
    ins: list = [None] * count
    if any(place.in_layouts):
        chosen = iter(loaded.get_parameter_layouts())
        ins = [placing.from_xla_layout(next(chosen)) if k else None for k in kept]
    outs = [placing.from_xla_layout(x) for x in loaded.get_output_layouts()] if any(place.out_layouts) else []
    return tuple(ins) if any(ins) else (), tuple(outs)


def _shardings(place, loaded, in_avals, out_avals, kinds: Sequence) -> tuple[list, list]:
    """The shardings of arguments and results, as reported by C++. The compiler has chosen those that the caller left
    open.
    """
    if type(place) is not Partition:
        here = xc.SingleDeviceSharding(place)
        if any(kinds):
            placing.unusual.append(True)
        outs = [here if kind is None else xc.SingleDeviceSharding(place, memory_kind=kind) for kind in kinds]
        return [here] * len(in_avals), outs
    chosen = loaded.get_output_shardings() if len(place.devices) > 1 and any(s is None for s in place.outs) else ()
    outs = []
    for i, (sharding, aval) in enumerate(zip(place.outs, out_avals)):
        if sharding is None:
            found = chosen[i] if chosen else None
            hlo = xc.HloSharding.from_proto(found) if found is not None else None
            sharding = (
                NamedSharding(place.mesh, P()) if hlo is None else placing.from_hlo(hlo, place.mesh, len(aval.shape))
            )
            if sharding is None:
                raise BackendError(
                    f"XLA chose a layout {hlo} for result {i} that the axes of {place.mesh} can't say; name the"
                    " result's sharding with out_shardings."
                )
        if kinds[i] is not None and sharding._memory_kind != kinds[i]:
            sharding = sharding.with_memory_kind(kinds[i])
        outs.append(placing.to_xla(sharding))
    return [placing.to_xla(s) for s in place.ins], outs


def module_ir(module, dialect: str | None = None):
    """A StableHLO module in its own form, or as the HLO that XLA reads from it."""
    if dialect in (None, "stablehlo"):
        return module
    if dialect == "hlo":
        return _jax.mlir.mlir_module_to_xla_computation(str(module), use_tuple_args=False, return_tuple=False)
    raise ValueError(
        at_user_line(
            f"unknown dialect: {dialect}. XLA programs have the dialects {', '.join(map(repr, STAGES))}; got"
            f" {dialect!r}."
        )
    )


def module_text(module, dialect: str | None = None, debug_info: bool = False) -> str:
    """The same as text."""
    found = module_ir(module, dialect)
    return found.as_hlo_text() if dialect == "hlo" else found.operation.get_asm(enable_debug_info=debug_info)


def computation(module, tuple_args: bool = False):
    """A StableHLO module as an XlaComputation; its results are a tuple."""
    return _jax.mlir.mlir_module_to_xla_computation(str(module), use_tuple_args=tuple_args, return_tuple=True)


def _bound(callbacks: Sequence, device) -> list:
    """Host functions in the form that XLA calls; the arrays that they pass to users are on the CPU."""
    if not callbacks:
        return []
    device = addressable(device.devices)[0] if type(device) is Partition else device
    cpu = device if device.platform == "cpu" else client_for("cpu").local_devices()[0]
    return [functools.partial(function, cpu) for function in callbacks]


class CompilationError(BackendError, _jax.JaxRuntimeError):
    """XLA did not compile a program: it lacks what the program uses, or an option that it was given."""


def compile_lowered(
    client, jaxpr: Jaxpr, lowered, device, name: str, options: Sequence = (), slot: cache.Slot | None = None
) -> XlaExecutable:
    """Compiles a lowered program; with a `slot`, whoever gave it keeps the executable, not the compile cache. An error
    of XLA becomes a CompilationError.
    """
    if lowered.unusable:
        warn(
            "Some donated buffers were not usable: "
            + ", ".join(a.str_short(short_dtypes=False) for a in lowered.unusable)
            + ".\nNo result has the shape and dtype of the donated argument; donate only what a result can reuse."
        )
    try:
        with lowered.home.lock, lowered.home.context:
            devices = list(device.devices) if type(device) is Partition else [device]
            chosen, callbacks = compile_options(devices, options), _bound(lowered.callbacks, device)
            if slot is None:
                loaded = cache.compile_module(client, lowered, devices, chosen, callbacks, name)
            else:
                loaded = cache.compile_into(slot, client, lowered, devices, chosen, callbacks)
    except _jax.JaxRuntimeError as e:
        cause = compat.cause_of(e)
        if cause is not None:
            raise cause from None
        raise CompilationError(f"XLA could not compile {name!r}: {e}") from e
    return XlaExecutable(jaxpr, device, lowered, loaded, name)
