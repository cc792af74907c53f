"""Ahead-of-time compilation: the stages between a jitted function and its results: trace, lower, compile, call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..base.annotations import override
from ..primitives.inspection import without_inspections
from ..base.avals import AbstractValue, struct_of
from ..core.jaxpr import ClosedJaxpr
from ..symbolic.dims import live_scopes
from ..symbolic.specialize import symbolic_scope
from ..core.trace import Tracer, get_aval, is_array
from ..base.layout import Format, Layout
from ..base.errors import BackendError, at_user_line
from ..base.source_info import api_boundary
from ..base.mesh import SingleDeviceSharding
from ..transforms.platforms import depends_on_platform
from ..base.tree import PyTreeDef, keystr, tree_flatten, tree_flatten_with_path, tree_unflatten
from .backend import CompileOptions
from .device import ALIASES, backend_of, get_backend
from .dispatch import compile_place, executable_for, program_for, run_jaxpr, runnable
from .nans import check_program, watching
from .partition import Partition, place_of, spread_of

if TYPE_CHECKING:
    from ..core.types import Value
    from .backend import Backend


class ArgInfo:
    """The type of one argument: its shape and dtype, and whether its memory is donated."""

    __slots__ = ("_aval", "donated")

    def __init__(self, _aval: AbstractValue, donated: bool):
        self._aval, self.donated = _aval, donated

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)

    @override
    def __eq__(self, other: object) -> bool:
        return type(other) is ArgInfo and (self._aval, self.donated) == (other._aval, other.donated)

    @override
    def __hash__(self) -> int:
        return hash((self._aval, self.donated))

    @override
    def __repr__(self) -> str:
        return f"ArgInfo(_aval={self._aval!r}, donated={self.donated})"


class Place(NamedTuple):
    """A platform that a program is lowered for, of which no device need be here."""

    platform: str


class MemoryStats(dict[str, Any]):
    """Numbers of bytes by purpose; each is an attribute too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"the backend says nothing about {name!r}; it knows {', '.join(self) or 'nothing'}."
            ) from None


class Stage:
    """The signature of a function, which all stages share."""

    in_tree: PyTreeDef
    out_tree: PyTreeDef
    closed: ClosedJaxpr
    donated: tuple[Any, ...]
    asked: Sequence[Any] | None  # out_shardings: for each result the sharding that was asked for, or None

    @property
    def args_info(self) -> Any:
        """An `ArgInfo` for each argument, in the structure (args, kwargs)."""
        return self.in_tree.unflatten([ArgInfo(a, d) for a, d in zip(self.closed.in_avals, self.donated)])

    @property
    def in_avals(self) -> Any:
        """The type of each argument, in the structure (args, kwargs)."""
        return self.in_tree.unflatten(self.closed.in_avals)

    @property
    def out_info(self) -> Any:
        """A `ShapeDtypeStruct` for each result."""
        asked = self.asked or [None] * len(self.closed.out_avals)
        structs = [struct_of(a) for a in self.closed.out_avals]
        return tree_unflatten(
            self.out_tree, [s if where is None else s.update(sharding=where) for s, where in zip(structs, asked)]
        )

    @property
    def donate_argnums(self) -> tuple[Any, ...]:
        """The numbers of the flat arguments whose memory is given away."""
        return tuple(i for i, d in enumerate(self.donated) if d)


class TracedCall(NamedTuple):
    """The result of tracing a function for one type of arguments."""

    jaxpr: ClosedJaxpr
    out_tree: PyTreeDef
    outer: tuple[Any, ...]  # tracers of an outer trace that lead the arguments


class Jitted(Protocol):
    """The part of a jitted function that the stages use."""

    name: str
    keep_unused: bool
    compiler_options: tuple[Any, ...]

    def chosen_device(self, arrays: Sequence[Any]) -> Any: ...


class Traced(Stage):
    """A function traced for one type of arguments. Made by `weft.jit(f).trace(…)`."""

    def __init__(
        self,
        jitted: Jitted,
        traced: TracedCall,
        in_tree: PyTreeDef,
        donated: Sequence[Any],
        leaves: Sequence[Any],
        shardings: tuple[Any, ...] = (None, None),
        names: Sequence[str] = (),
    ):
        self.jitted, self.traced, self.leaves, self.shardings, self.names = jitted, traced, leaves, shardings, names
        self.closed, self.in_tree, self.out_tree, self.donated = traced.jaxpr, in_tree, traced.out_tree, tuple(donated)
        self.asked = shardings[1]

    jaxpr = property(lambda self: self.closed)
    fun_name = property(lambda self: self.jitted.name)

    @property
    def out_avals(self) -> Any:
        """The type of each result."""
        return tree_unflatten(self.out_tree, self.closed.out_avals)

    def lower(self, *, lowering_platforms: tuple[str, ...] | None = None) -> "Lowered":
        """The program in the form that its backend compiles, for the device where it would run or for other
        platforms, of which no device need be here.
        """
        return Lowered(self, lowering_platforms)


class Lowered(Stage):
    """A program in the form that its backend compiles. Made by `weft.jit(f).lower(…)`."""

    def __init__(self, traced: Traced, platforms: tuple[str, ...] | None = None):
        if platforms is not None and (isinstance(platforms, str) or not platforms):
            raise ValueError(f"lowering_platforms takes a non-empty tuple of platform names; got {platforms!r}.")
        self.traced_call, self.platforms = traced, platforms
        self.closed, self.in_tree, self.out_tree, self.donated = (
            traced.closed,
            traced.in_tree,
            traced.out_tree,
            traced.donated,
        )
        self.asked = traced.asked
        concrete = [x for x in traced.leaves if is_array(x)]
        # of an array, or of a ShapeDtypeStruct
        spread = next((s for s in map(spread_of, traced.leaves) if s is not None), None)
        here = traced.jitted.chosen_device(concrete) if spread is None and platforms is None else spread
        self.device: Any = (
            place_of(traced.closed, traced.leaves, here, *traced.shardings)
            if platforms is None
            else Place(platforms[0])
        )

    def _forms(self, dialect: str | None) -> tuple[Any, ...]:
        """(backend, program, where, options) to lower with: the program's own backend, or XLA's for the dialects
        that only XLA has, where jaxlib is installed.
        """
        self._check_sizes()
        if self.platforms is not None and len(self.platforms) > 1 and depends_on_platform(self.closed.jaxpr):
            raise ValueError(
                f"{self.traced_call.fun_name} has different operations for the platforms {', '.join(self.platforms)},"
                f" so it has several texts; lower it for one platform."
            )
        where = self.device
        backend = get_backend(where.platform)[0] if type(where) is Place else backend_of(where)
        if dialect in (None, "stablehlo", "hlo") and backend.capabilities.xla is None:
            try:
                backend, where = get_backend("cpu")[0], Place("cpu")
            except BackendError as e:
                if dialect is not None:
                    raise ValueError(at_user_line(f"the dialect {dialect!r} is XLA's: {e}")) from e
        closed, where, donated = runnable(self.closed, where, self.donated)
        jaxpr, consts = program_for(closed, where.platform, backend.capabilities.branches_of)
        if type(where) is not Partition:
            jaxpr, _ = without_inspections(jaxpr)
        if type(where) is not Place:
            where = compile_place(where, consts)[0]
        options = (("keep_unused", True),) if self.traced_call.jitted.keep_unused else ()
        return (
            backend,
            jaxpr,
            where,
            CompileOptions(self.traced_call.fun_name, (False,) * len(consts) + donated, options),
        )

    def _check_sizes(self) -> None:
        if live_scopes and symbolic_scope(self.closed.jaxpr) is not None:
            raise ValueError(
                f"{self.traced_call.fun_name} was traced with symbolic dimensions, and a compiler needs numbers:"
                f" {', '.join(map(str, self.closed.in_avals))}. Export it (weft.export.export); an exported program is"
                " compiled for the sizes of each call."
            )

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text, with the user's lines where `debug_info`: StableHLO ("stablehlo") or HLO ("hlo") where
        jaxlib is installed, a backend's own forms ("ir", "groups" on Wasm) or its jaxpr ("jaxpr"). Default: StableHLO
        if it can be had.
        """
        backend, jaxpr, where, options = self._forms(dialect)
        show = backend.capabilities.lowered_text
        if show is not None:
            return show(jaxpr, where, options, dialect, debug_info=debug_info)
        self._only_jaxprs(backend, dialect)
        return str(jaxpr)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The program as the object that a compiler takes: an MLIR module ("stablehlo") or an XlaComputation ("hlo")
        where jaxlib is installed; a jaxpr elsewhere.
        """
        backend, jaxpr, where, options = self._forms(dialect)
        if backend.capabilities.xla is not None:
            return backend.capabilities.xla.lowered_ir(jaxpr, where, options, dialect)
        self._only_jaxprs(backend, dialect)
        return jaxpr

    def _only_jaxprs(self, backend: Backend, dialect: str | None) -> None:
        if dialect not in (None, "jaxpr"):
            raise ValueError(
                f"unknown dialect: {dialect}. The {backend.name} backend compiles jaxprs: ask for 'jaxpr', or see"
                " Compiled.as_text()."
            )

    def cost_analysis(self) -> dict[Any, Any]:
        """The compiler's estimates of the program: flops, bytes accessed and others, by name; {} if it makes none."""
        return self.compile().cost_analysis()

    def compile(
        self, compiler_options: dict[str, str | bool] | None = None, *, device_assignment: Sequence[Any] | None = None
    ) -> "Compiled":
        """Compiles for the device.

        Args:
            compiler_options: options of the backend's compiler by name, besides those of `jit`.
            device_assignment: the one device to compile for, instead of the one where the arguments are.

        Raises:
            BackendError: for an option that the compiler does not know.
            ValueError: for a program that was lowered for other platforms.
        """
        self._check_sizes()
        if device_assignment is not None:
            if len(device_assignment) != 1:
                raise ValueError(
                    f"a program for one device was given {len(device_assignment)} in device_assignment; spread it with"
                    " in_shardings instead."
                )
            self.device = device_assignment[0]
        if type(self.device) is Place:
            device = self.traced_call.jitted.chosen_device([])
            if ALIASES.get(device.platform, device.platform) not in [ALIASES.get(p, p) for p in self.platforms or ()]:
                raise ValueError(
                    f"{self.traced_call.fun_name} was lowered for {', '.join(self.platforms or ())}, and the device"
                    f" here is {device}. Lower it without lowering_platforms to compile it here."
                )
            self.device = device
        jitted = self.traced_call.jitted
        options = option_pairs({**dict(jitted.compiler_options), **dict(option_pairs(compiler_options))})
        donated = self.donated if any(self.donated) else ()
        executable, _ = executable_for(self.closed, self.device, jitted.name, donated, jitted.keep_unused, options)
        return Compiled(self, executable, donated, options)


class Compiled(Stage):
    """A compiled program: callable with arguments of exactly the types that it was compiled for. Made by
    `Lowered.compile`.
    """

    def __init__(self, lowered: Lowered, executable: Any, donated: tuple[Any, ...], options: tuple[Any, ...]):
        self.lowered, self.executable, self.given, self.options = lowered, executable, donated, options
        self.closed, self.in_tree, self.out_tree, self.donated = (
            lowered.closed,
            lowered.in_tree,
            lowered.out_tree,
            lowered.donated,
        )
        self.asked = lowered.asked

    def __call__(self, *args: Value, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)

    @api_boundary
    def call(self, *args: Value, **kwargs: Any) -> Any:
        """Runs the program. Static arguments are part of it and are not passed.

        Raises:
            TypeError: for arguments of another structure, shape or dtype (the message names all of them), and under a
                transformation.
        """
        leaves, tree = tree_flatten((args, kwargs))
        name = self.lowered.traced_call.fun_name
        if tree != self.in_tree:
            raise TypeError(
                at_user_line(
                    f"{name} was compiled for the input pytree (args, kwargs) {self.in_tree} and called with {tree}."
                    " Call it with that structure, or lower and compile it for this one."
                )
            )
        for x in leaves:
            if isinstance(x, Tracer):
                raise TypeError(
                    at_user_line(
                        f"{name} is compiled, so it can't be transformed: it was called with a traced value"
                        f" ({type(x).__name__}) inside jit, grad, vmap or the like. Transform the function first, then"
                        " lower and compile the result."
                    )
                )
        wrong = []
        for i, (x, want) in enumerate(zip(leaves, self.closed.in_avals)):
            have = get_aval(x)
            if have.shape != want.shape or have.dtype != want.dtype:
                wrong.append(
                    f"argument {self._name(i)!r} compiled as {want.str_short()} and called with {have.str_short()}"
                )
        if wrong:
            raise TypeError(at_user_line(f"{name} was compiled for other argument types: " + "; ".join(wrong) + "."))
        jitted = self.lowered.traced_call.jitted
        outs = run_jaxpr(
            self.closed,
            leaves,
            name,
            () if watching() else self.given,
            self.lowered.device,
            jitted.keep_unused,
            self.options,
        )
        if watching():
            check_program(self.closed, leaves, outs, name)
        return tree_unflatten(self.out_tree, outs)

    def _name(self, i: int) -> str:
        """The path of a flat argument in the call, such as `params['w']`."""
        names = self.lowered.traced_call.names
        if i < len(names):
            return names[i]
        path, _ = tree_flatten_with_path(self.in_tree.unflatten([object()] * len(self.closed.in_avals)))[0][i]
        return keystr(path)

    def as_text(self, stage: str | None = None) -> str:
        """The compiled program as text."""
        return self.executable.as_text(stage)

    def cost_analysis(self) -> dict[Any, Any]:
        """The compiler's estimates of the program, by name."""
        return self.executable.cost_analysis()

    def memory_analysis(self) -> MemoryStats:
        """Bytes of arguments, results, temporary buffers and code, by name and as attributes."""
        return MemoryStats(self.executable.memory_analysis())

    def runtime_executable(self) -> Any:
        """The object that the backend runs: on XLA jaxlib's LoadedExecutable."""
        return backend_of(self.lowered.device).capabilities.runtime_executable(self.executable)

    @property
    def input_shardings(self) -> Any:
        """The sharding of each argument, in the structure (args, kwargs)."""
        device = self.lowered.device
        places = device.ins if type(device) is Partition else [SingleDeviceSharding(device)] * len(self.closed.in_avals)
        return self.in_tree.unflatten(places)

    @property
    def output_shardings(self) -> Any:
        """The sharding of each result."""
        device = self.lowered.device
        places = (
            device.outs
            if type(device) is Partition and device.outs is not None
            else [SingleDeviceSharding(device)] * len(self.closed.out_avals)
        )
        return tree_unflatten(self.out_tree, places)

    @property
    def input_formats(self) -> Any:
        """The layout and the sharding of each argument, in the structure (args, kwargs)."""
        return self.in_tree.unflatten(
            _formats(self.closed.in_avals, self.in_tree.flatten_up_to(self.input_shardings), self.executable, "layouts")
        )

    @property
    def output_formats(self) -> Any:
        """The layout and the sharding of each result."""
        shardings = self.out_tree.flatten_up_to(self.output_shardings)
        return tree_unflatten(self.out_tree, _formats(self.closed.out_avals, shardings, self.executable, "out_layouts"))


def _formats(avals: Any, shardings: Any, executable: Any, which: str) -> list[Format]:
    """Formats of values; executables of backends with one layout have no attribute `which`."""
    known = getattr(executable, which, ())
    layouts = [known[i] if known else None for i in range(len(avals))]
    return [
        Format(Layout(tuple(range(len(a.shape))), ()) if layout is None else layout, s)
        for a, layout, s in zip(avals, layouts, shardings)
    ]


def option_pairs(options: Any) -> tuple[Any, ...]:
    """Compiler options as sorted (name, value) pairs. Raises TypeError unless they are a dict from names to strings,
    numbers and booleans.
    """
    if options is None:
        return ()
    if not isinstance(options, dict) or not all(
        isinstance(k, str) and isinstance(v, (str, bool, int, float)) for k, v in options.items()
    ):
        raise TypeError(f"compiler_options is a dict of option names to strings, booleans or numbers; got {options!r}.")
    return tuple(sorted(options.items()))
