"""Exported programs: tracing one, calling it, its derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ..base.annotations import override
from ..base import dtypes
from ..base.avals import AbstractValue, ShapeDtypeStruct, ShapedArray, tangent_aval
from ..api.autodiff import vjp
from ..base.config import config, enable_x64
from ..higher_order.custom_vjp import custom_vjp
from ..symbolic.dims import Dim
from ..symbolic.scope import SymbolicScope, symbolic_shape
from ..core.jaxpr import ClosedJaxpr, Literal, eval_jaxpr
from ..serialization.portable import NotPortable
from ..symbolic.specialize import check_constraints, solve, specialize, symbolic_scope
from ..core.trace import Tracer, current_trace, get_aval, root
from ..core.verify import verify
from ..primitives.random_bits import random_unwrap_p, random_wrap_p
from ..base.errors import BackendError
from ..runtime.device import default_platform, get_backend
from ..runtime.dispatch import check_platform, device_of, program_for, run_jaxpr
from ..runtime.jit import JitFunction, jit
from ..base.source_info import api_boundary
from ..transforms.portable import portable
from ..transforms.valueless import without_valueless
from ..base.tree import (
    PyTreeDef,
    broadcast_prefix,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_structure,
    tree_unflatten,
)
from . import artifact
from .call import call_exported_p

if TYPE_CHECKING:
    from ..symbolic.dims import Scope
    from ..runtime import aot
    from ..base.annotations import PyTree
    from ..core.types import Value
    from ..base.mesh import AbstractMesh, Mesh

minimum_supported_calling_convention_version, maximum_supported_calling_convention_version = artifact.CONVENTIONS


_KEPT = 64  # forms that are stored for one program; sizes that do not recur must not accumulate


class DisabledSafetyCheck:
    """A check that `export` and calls leave out: the check of the platform, or the check of a custom call.

    Example:
        >>> from weft import export
        >>> export.DisabledSafetyCheck.platform()
        platform
    """

    __slots__ = ("_impl",)

    def __init__(self, _impl: str):
        self._impl = _impl

    @classmethod
    def platform(cls) -> "DisabledSafetyCheck":
        """Lets the program run on platforms that it was not exported for."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> "DisabledSafetyCheck":
        """Allows a custom call. The portable form holds no custom calls (backends choose theirs when they compile),
        so there is nothing to check.
        """
        return cls(f"custom_call:{target_name}")

    def is_custom_call(self) -> str | None:
        """The name of the custom call that it allows; None if it is the check of the platform."""
        return self._impl.removeprefix("custom_call:") if self._impl.startswith("custom_call:") else None

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, DisabledSafetyCheck) and self._impl == other._impl

    @override
    def __hash__(self) -> int:
        return hash(self._impl)

    @override
    def __repr__(self) -> str:
        return self._impl


class Exported:
    """A function traced for one structure and type of arguments, in a form that can be written to a file. `export` and
    `deserialize` return it.

    Attributes:
        fun_name: the function's name.
        in_tree, in_avals: the structure of (args, kwargs), and the type of each leaf; shapes may be symbolic.
        out_tree, out_avals: the same of the results.
        platforms: where it may run: "cpu", "cuda", "tpu", "wasm", "webgpu", "reference", "remote".
        disabled_safety_checks: checks that calls leave out.
        nr_devices: 1. in_shardings_hlo, out_shardings_hlo: None for each argument and result, since the program is for
            one device.
        ordered_effects, unordered_effects: empty, since programs with effects can't be exported.
        calling_convention_version: which of JAX's conventions the signature follows.
        module_kept_var_idx: the arguments that the program uses.
        uses_global_constants: whether the program has symbolic dimensions, which calls replace by numbers.

    Example:
        >>> import weft
        >>> from weft import export
        >>> exported = export.export(weft.jit(lambda x: x + 1))(1.0)
        >>> exported.fun_name, exported.in_avals
        ('<lambda>', (ShapedArray(float32[], weak_type=True),))
    """

    def __init__(
        self,
        *,
        fun_name: str,
        in_tree: PyTreeDef,
        in_avals: tuple[Any, ...],
        out_tree: PyTreeDef,
        out_avals: tuple[Any, ...],
        platforms: tuple[Any, ...],
        disabled_safety_checks: tuple[Any, ...],
        calling_convention_version: int,
        module_kept_var_idx: tuple[Any, ...],
        closed: ClosedJaxpr,
        scope: Scope | None,
        x64: bool,
        get_vjp: Callable[..., Any] | None,
    ):
        self.fun_name, self.platforms, self.disabled_safety_checks = fun_name, platforms, disabled_safety_checks
        self.in_tree, self.in_avals, self.out_tree, self.out_avals = in_tree, in_avals, out_tree, out_avals
        self.calling_convention_version, self.module_kept_var_idx = calling_convention_version, module_kept_var_idx
        self.nr_devices, self.uses_global_constants = 1, scope is not None
        self.in_shardings_hlo, self.out_shardings_hlo = (None,) * len(in_avals), (None,) * len(out_avals)
        self.ordered_effects: tuple[Any, ...] = ()
        self.unordered_effects: tuple[Any, ...] = ()
        # the program is on raw keys and without float0
        self._closed, self._scope, self._x64, self._get_vjp = closed, scope, x64, get_vjp
        self._variables = frozenset().union(*[n.variables() for a in in_avals for n in a.shape if isinstance(n, Dim)])
        self._real = [(i, a) for i, a in enumerate(in_avals) if a.dtype != dtypes.float0]
        self._forms: dict[Any, Any] = {}  # sizes -> (the program for them, the function that derivatives see)
        self._calls: dict[Any, Any] = {}  # the arguments' types -> the same

    @override
    def __repr__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    # what it is

    def mlir_module(self, serialized: bool = True, *, sizes: dict[str, int] | None = None) -> str:
        """The program lowered for XLA, as StableHLO text.

        Args:
            serialized: accepted for JAX's sake; the text is made afresh.
            sizes: an integer for each dimension variable, for a program that has some.

        Raises:
            ValueError: for a program with symbolic dimensions without `sizes`.
            BackendError: if XLA is not installed, or is not among the platforms.

        Example:
            >>> import weft
            >>> from weft import export
            >>> "stablehlo.add" in export.export(weft.jit(lambda x: x + 1))(1.0).mlir_module()
            True
        """
        return self._module(sizes)[0]

    @property
    def mlir_module_serialized(self) -> bytes:
        """The program lowered for XLA, as the bytes of a portable StableHLO artifact."""
        return self._module(None)[1]()

    def _module(self, sizes: Any) -> tuple[str, Callable[[], bytes]]:
        platform = next((p for p in self.platforms if p in ("cpu", "cuda", "tpu", "rocm")), None)
        if platform is None:
            raise ValueError(
                f"{self.fun_name} was exported for {self.platforms}, of which none is XLA's; add 'cpu', 'cuda' or 'tpu'"
                " to `platforms`."
            )
        given = {} if sizes is None else dict(sizes)
        if given.keys() != self._variables:
            raise ValueError(
                f"{self.fun_name} has the dimension variables {', '.join(sorted(self._variables)) or '(none)'}, and"
                f" StableHLO here has numbers: call mlir_module(sizes={{…}}) with an integer for each; got {given}."
            )
        if self._scope is not None:
            check_constraints(self._scope, given, self.fun_name)
        xla = get_backend("cpu")[0].capabilities.xla
        if xla is None:
            raise BackendError(
                "StableHLO is XLA's, and the backend of the platform 'cpu' here is not XLA; install weft-native."
            )
        with enable_x64(self._x64):
            program, _ = program_for(ClosedJaxpr(specialize(self._closed.jaxpr, given), self._closed.consts), platform)
            return xla.portable_module(program, self.fun_name, platform)

    def in_shardings_jax(self, mesh: Mesh | AbstractMesh) -> tuple[Any, ...]:
        """The shardings of the arguments on a mesh: None for each, since the program is for one device."""
        return self.in_shardings_hlo

    def out_shardings_jax(self, mesh: Mesh | AbstractMesh) -> tuple[Any, ...]:
        """The shardings of the results on a mesh: None for each."""
        return self.out_shardings_hlo

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The bytes of the program, for `deserialize` in any process with this release.

        Args:
            vjp_order: how many derivatives to write along: 0 for a program that can't be differentiated, 1 for `grad`,
                2 for `grad` of `grad`, …

        Raises:
            ValueError: for a pytree class without `register_pytree_node_serialization`, and if there is no derivative.
        """
        return artifact.serialize(self, vjp_order)

    def has_vjp(self) -> bool:
        """Whether it can be differentiated in reverse mode."""
        return self._get_vjp is not None

    def vjp(self) -> "Exported":
        """The derivative: an exported function of the flat arguments and the flat results' cotangents, to the flat
        arguments' cotangents.

        Raises:
            ValueError: if the program was serialized without a derivative.
        """
        if self._get_vjp is None:
            raise ValueError(
                f"No VJP is available for {self.fun_name}: it was serialized without. Serialize it with vjp_order=1 or"
                " more."
            )
        if "vjp" not in self._forms:
            self._forms["vjp"] = self._get_vjp(self)
        return self._forms["vjp"]

    # calls

    @api_boundary
    def call(self, *args: PyTree, **kwargs: PyTree) -> Any:
        """Runs the program. Under `jit`, `grad` and `vmap` it becomes part of the traced program.

        Raises:
            ValueError: for arguments of another structure, dtype, rank or shape, for sizes that break a constraint, and
                on a platform that is not among `platforms`.
        """
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise ValueError(
                "The invocation args and kwargs must have the same pytree structure as when the function"
                f" '{self.fun_name}' was exported: it was exported with {self.in_tree} and called with {tree}."
            )
        outs = iter(self._call_flat([x for x, a in zip(leaves, self.in_avals) if a.dtype != dtypes.float0]))
        return tree_unflatten(
            self.out_tree,
            [next(outs) if a.dtype != dtypes.float0 else _nothing_like(a, leaves, self) for a in self.out_avals],
        )

    def _call_flat(self, leaves: list[Any]) -> list[Any]:
        """The results of flat arguments, both without float0."""
        with enable_x64(True) if self._x64 and not config.enable_x64 else nullcontext():
            avals = tuple([get_aval(x) for x in leaves])
        known = self._calls.get(avals)
        if known is None:
            if len(self._calls) >= _KEPT:
                self._calls.pop(next(iter(self._calls)))
            known = self._calls[avals] = self._form(self._sizes_of(avals))
        closed, differentiable = known
        raw = [random_unwrap_p.bind(x) if dtypes.is_key(a.dtype) else x for x, (_, a) in zip(leaves, self._real)]
        if current_trace() is root and not any([isinstance(x, Tracer) for x in raw]):
            outs = self._run(closed, raw)
        else:
            if config.enable_x64 != self._x64 and self._x64:
                raise ValueError(
                    f"{self.fun_name} was exported with 64-bit types, and a program that is traced without can't"
                    " contain it: set weft.config.update('jax_enable_x64', True), or call it outside of jit."
                )
            outs = differentiable(*raw)
        real = [a for a in self.out_avals if a.dtype != dtypes.float0]
        return [random_wrap_p.bind(o, impl=a.dtype) if dtypes.is_key(a.dtype) else o for o, a in zip(outs, real)]

    def _run(self, closed: ClosedJaxpr, leaves: list[Any]) -> list[Any]:
        device = device_of(leaves)
        if self._allowed is not None:
            check_platform(self.fun_name, self._allowed, device)
        if config.enable_x64 == self._x64:
            return run_jaxpr(closed, leaves, self.fun_name, device=device)
        with enable_x64(self._x64):
            return run_jaxpr(closed, leaves, self.fun_name, device=device)

    @property
    def _allowed(self) -> tuple[Any, ...] | None:
        return None if DisabledSafetyCheck.platform() in self.disabled_safety_checks else self.platforms

    def _sizes_of(self, avals: Sequence[AbstractValue]) -> dict[Any, Any]:
        """Checks the arguments' types, and solves for the dimension variables."""
        equations = []
        for (i, want), have in zip(self._real, avals):
            if have.dtype == want.dtype and have.shape == want.shape and self._scope is None:
                continue
            where = self._place(i)
            if have.dtype != want.dtype:
                raise ValueError(
                    f"Dtype mismatch for {where}: expected {dtypes.name(want.dtype)} and called with"
                    f" {dtypes.name(have.dtype)}."
                )
            if len(have.shape) != len(want.shape):
                raise ValueError(f"Rank mismatch for {where}: expected {want.shape} and called with {have.shape}.")
            for d, (n, m) in enumerate(zip(want.shape, have.shape)):
                if isinstance(n, Dim):
                    equations.append((n, m, f"{where}.shape[{d}]"))
                elif n != m:
                    raise ValueError(
                        f"Shape mismatch for {where}.shape[{d}] (expected same constant): expected {want.shape} and"
                        f" called with {have.shape}."
                    )
        if not equations:
            return {}
        sizes = solve(equations, self._variables)
        assert self._scope is not None
        check_constraints(self._scope, sizes, self.fun_name)
        return sizes

    def _place(self, i: int) -> str:
        """The path of a leaf in the call, such as `args[0]['w']`."""
        args, kwargs = self.in_tree.unflatten([object()] * len(self.in_avals))
        (head, *rest), _ = tree_flatten_with_path((args, kwargs))[0][i]
        return ("args", "kwargs")[head.idx] + keystr(rest)

    def _form(self, sizes: dict[Any, Any]) -> tuple[ClosedJaxpr, Callable[..., Any]]:
        key = tuple(sorted(sizes.items(), key=lambda item: item[0]))
        if key not in self._forms:
            if len(self._forms) > _KEPT:
                self._forms.pop(next(k for k in self._forms if k != "vjp"))
            closed = self._closed
            if self._scope is not None:
                closed = ClosedJaxpr(specialize(closed.jaxpr, sizes), closed.consts)
                with enable_x64(self._x64):
                    verify(closed)  # a file that checks symbolically might still not for numbers
            self._forms[key] = closed, _differentiable(self, closed)
        return self._forms[key]


def _differentiable(exported: Exported, closed: ClosedJaxpr) -> Callable[..., Any]:
    """The program as a function with the derivative that came with it."""

    def fun(*leaves: Value) -> Any:
        return tuple(call_exported_p.bind(*leaves, jaxpr=closed, name=exported.fun_name, platforms=exported._allowed))

    fun.__name__ = exported.fun_name

    def fwd(*leaves: Value) -> Any:
        return wrapped(*leaves), leaves  # which an outer derivative differentiates in turn

    def bwd(leaves: Sequence[Value], cts: Any) -> Any:
        if any(dtypes.is_key(a.dtype) for a in (*exported.in_avals, *exported.out_avals)):
            raise ValueError(
                f"{exported.fun_name} takes or returns random keys, and its derivative can't be called; differentiate"
                " before exporting."
            )
        outs = iter(
            exported.vjp()._call_flat(
                [*leaves, *[ct for o, ct in zip(closed.out_avals, cts) if tangent_aval(o).dtype != dtypes.float0]]
            )
        )
        return tuple([next(outs) if tangent_aval(a).dtype != dtypes.float0 else None for a in closed.in_avals])

    wrapped = custom_vjp(fun)
    wrapped.defvjp(fwd, bwd)
    return wrapped


def _nothing_like(aval: ShapedArray, leaves: list[Any], exported: Exported) -> Any:
    """The zeros that represent a result of dtype float0."""
    sizes = exported._sizes_of([get_aval(x) for x, a in zip(leaves, exported.in_avals) if a.dtype != dtypes.float0])
    return dtypes.float0_zeros([n.substitute(sizes) if isinstance(n, Dim) else n for n in aval.shape])


def deserialize(blob: bytes | bytearray) -> Exported:
    """Reads the exported program that `Exported.serialize` wrote.

    Args:
        blob: bytes.

    Returns:
        `Exported`.

    Raises:
        DeserializationError: for bytes that are truncated, damaged, of another version, or not a well-formed program.

    Example:
        >>> import weft
        >>> from weft import export
        >>> data = export.export(weft.jit(lambda x: x + 1))(1.0).serialize()
        >>> float(export.deserialize(data).call(2.0))
        3.0
    """
    return _from_fields(artifact.deserialize(blob))


def _from_fields(fields: dict[Any, Any]) -> Exported:
    derivative = fields.pop("vjp")
    checks = tuple(map(DisabledSafetyCheck, fields.pop("disabled_safety_checks")))
    return Exported(
        **fields,
        disabled_safety_checks=checks,
        get_vjp=(lambda _: _from_fields(dict(derivative))) if derivative is not None else None,
    )


# exporting -----------------------------------------------------------------------------------------------------------


def default_export_platform() -> str:
    """The platform for which `export` exports by default: that of the default device.

    Returns:
        str.

    Example:
        >>> from weft import export
        >>> export.default_export_platform()
        'cpu'
    """
    return default_platform()


@api_boundary
def export(
    fun_jit: Any, *, platforms: Sequence[str] | None = None, disabled_checks: Sequence[DisabledSafetyCheck] = ()
) -> Callable[..., Exported]:
    """Exports a jitted function: traces it for the types of its arguments, in a form that can be written to a file.

    Args:
        fun_jit: a function that `weft.jit` returned, of pytrees of arrays of any dtype and shape.
        platforms: sequence of the names of the platforms where the program may run; None for that of the default
            device. One file serves all of them.
        disabled_checks: sequence of `DisabledSafetyCheck`: checks that calls leave out.

    Returns:
        function of the same arguments, which may also be `ShapeDtypeStruct`s; it returns an `Exported`.

    Raises:
        ValueError: if `fun_jit` is not jitted, or the arguments' shapes do not determine a dimension variable.
        NotPortable: for programs with callbacks or effects; the message has the line.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft import export
        >>> double = export.export(weft.jit(lambda x: 2 * x))(weft.ShapeDtypeStruct((3,), jnp.float32))
        >>> double.call(jnp.arange(3.))
        Array([0., 2., 4.], dtype=float32)
    """
    if not isinstance(fun_jit, JitFunction) and not hasattr(fun_jit, "trace"):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit}")
    if platforms is not None and (
        isinstance(platforms, str) or not platforms or not all(isinstance(p, str) for p in platforms)
    ):
        raise ValueError(f"platforms must be a non-empty sequence of names such as ('cpu', 'wasm'); got {platforms!r}.")
    for check in disabled_checks:
        if not isinstance(check, DisabledSafetyCheck):
            raise ValueError(f"disabled_checks takes instances of export.DisabledSafetyCheck; got {check!r}.")

    @api_boundary
    def do_export(*args: PyTree, **kwargs: PyTree) -> Exported:
        where = tuple(platforms) if platforms is not None else (default_export_platform(),)
        return export_traced(fun_jit.trace(*args, **kwargs), where, tuple(disabled_checks))

    return do_export


def export_traced(traced: aot.Traced, platforms: tuple[str, ...], checks: tuple[Any, ...] = ()) -> Exported:
    """The exported form of a result of `weft.jit(f).trace(…)`."""
    if any(s is not None for given in traced.shardings if given is not None for s in given):
        raise NotPortable(
            f"{traced.fun_name} has in_shardings or out_shardings, and an exported program is for one device. Leave"
            " them out of the function that is exported, and jit the call with them."
        )
    return _from_traced(traced.fun_name, traced.jaxpr, traced.in_tree, traced.out_tree, platforms, checks)


def _from_traced(
    name: str,
    closed: ClosedJaxpr,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    platforms: tuple[Any, ...],
    checks: tuple[Any, ...],
    in_avals: tuple[Any, ...] | None = None,
    out_avals: tuple[Any, ...] | None = None,
) -> Exported:
    """The exported form of a traced program; the types of its signature may have float0 where the program has
    nothing.
    """
    if in_avals is None or out_avals is None:
        in_avals, out_avals = tuple(closed.in_avals), tuple(closed.out_avals)
        closed = without_valueless(closed)
    _check_solvable(name, in_tree, in_avals, symbolic_scope(closed.jaxpr), closed)
    program, consts = program_for(closed)
    try:
        program, more = portable(program)
    except NotPortable as e:
        raise NotPortable(f"{name} can't be exported: {e}") from None
    for eqn in program.eqns:
        if eqn.effects:
            raise NotPortable(
                f"{name} can't be exported: {eqn.primitive.name} has the effect"
                f" {', '.join(sorted(map(str, eqn.effects)))}, and a host function can't be written to a file. Return"
                f" the value instead, or leave the call out of the exported function.\n  at {eqn.source_info}"
            )
    values = [*more, *consts]
    n = len(values)
    used = {a for eqn in program.eqns for a in eqn.invars if type(a) is not Literal} | {
        a for a in program.outvars if type(a) is not Literal
    }
    places = [i for i, a in enumerate(in_avals) if a.dtype != dtypes.float0]
    kept = tuple(i for i, v in zip(places, program.invars[n:]) if v in used)
    raw = ClosedJaxpr(program.replace(constvars=program.invars[:n], invars=program.invars[n:]), values)
    scope = symbolic_scope(program) or symbolic_scope(closed.jaxpr)
    return Exported(
        fun_name=name,
        in_tree=in_tree,
        in_avals=in_avals,
        out_tree=out_tree,
        out_avals=out_avals,
        platforms=platforms,
        disabled_safety_checks=checks,
        calling_convention_version=maximum_supported_calling_convention_version,
        module_kept_var_idx=kept,
        closed=raw,
        scope=scope,
        x64=config.enable_x64,
        get_vjp=lambda exported: _export_vjp(exported, closed),
    )


def _check_solvable(name: str, in_tree: PyTreeDef, in_avals: Any, scope: Any, closed: ClosedJaxpr) -> None:
    """Raises unless the arguments' shapes determine all dimension variables."""
    if scope is None:
        return
    known: set[Any] = set()
    wanted = [n for a in in_avals for n in a.shape if isinstance(n, Dim)]
    while True:
        new = {
            next(iter(rest))
            for n in wanted
            if len(rest := n.variables() - known) == 1 and _is_linear(n, next(iter(rest)))
        }
        if not new:
            break
        known |= new
    unknown = (_all_variables(closed) | frozenset().union(*[n.variables() for n in wanted])) - known
    if unknown:
        args, kwargs = in_tree.unflatten([object()] * len(in_avals))
        paths = [("args", "kwargs")[p[0].idx] + keystr(p[1:]) for p, _ in tree_flatten_with_path((args, kwargs))[0]]
        told = "; ".join(f"{p}.shape = {a.shape}" for p, a in zip(paths, in_avals) if a.shape)
        raise ValueError(
            f"Cannot solve for values of dimension variables {set(sorted(unknown))} of {name} from the shapes of its"
            f" arguments: {told or 'all are scalars'}. A variable is found from a dimension 'k*variable + c' in which"
            " it alone is unknown; add an argument or a dimension that has it in that form."
        )


def _is_linear(dim: Dim, name: str) -> bool:
    """Whether a variable occurs once, to the first power, in a term without other factors."""
    hits = 0
    for monomial, _ in dim.terms:
        for f, n in monomial:
            if f.operands and any(isinstance(x, Dim) and name in x.variables() for x in f.operands):
                return False
            if f.name == name and not f.operands:
                if n != 1 or len(monomial) != 1:
                    return False
                hits += 1
    return hits == 1


def _all_variables(closed: ClosedJaxpr) -> frozenset[Any]:
    """The dimension variables of results and of intermediate values."""
    found: set[Any] = set()
    for var in (*closed.jaxpr.outvars, *[v for e in closed.jaxpr.eqns for v in e.outvars]):
        for n in getattr(var.aval, "shape", ()):
            if isinstance(n, Dim):
                found |= n.variables()
    return frozenset(found)


def _export_vjp(exported: Exported, closed: ClosedJaxpr) -> Exported:
    """The derivative, traced from the original program, including its custom rules. Values without tangents (integers)
    are left out of the program; in the signature they have the dtype float0.
    """
    n = len(closed.in_avals)
    moving = [tangent_aval(a).dtype != dtypes.float0 for a in closed.in_avals]
    shown = [tangent_aval(a).dtype != dtypes.float0 for a in closed.out_avals]

    def fun_vjp(*args: PyTree) -> list[Value]:
        primals, cts = args[:n], args[n:]

        def fun(*xs: Value) -> Any:
            rest = iter(xs)
            outs = eval_jaxpr(closed.jaxpr, closed.consts, *[next(rest) if m else p for m, p in zip(moving, primals)])
            return tuple([o for o, s in zip(outs, shown) if s])

        _, back = vjp(fun, *[p for m, p in zip(moving, primals) if m])
        return back(tuple(cts))

    fun_vjp.__name__ = f"{exported.fun_name}_vjp"
    avals = [*closed.in_avals, *[tangent_aval(a) for a, s in zip(closed.out_avals, shown) if s]]
    with enable_x64(exported._x64):
        traced = jit(fun_vjp).trace(*[ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type) for a in avals])
        in_avals = (*exported.in_avals, *map(tangent_aval, exported.out_avals))
        out_avals = tuple(map(tangent_aval, exported.in_avals))
        return _from_traced(
            fun_vjp.__name__,
            traced.jaxpr,
            tree_structure((in_avals, {})),
            tree_structure(out_avals),
            exported.platforms,
            exported.disabled_safety_checks,
            in_avals,
            out_avals,
        )


def symbolic_args_specs(
    args: PyTree, shapes_specs: PyTree, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """Types of arguments with symbolic shapes, for `export`.

    Args:
        args: pytree of arrays, or of values with a shape and a dtype.
        shapes_specs: pytree prefix of `args`, of specs as `symbolic_shape` takes them. None and `...` stand for an
            argument's own sizes.
        constraints: sequence of strings, as for `symbolic_shape`.
        scope: `SymbolicScope`, as for `symbolic_shape`.

    Returns:
        pytree like `args`, of `ShapeDtypeStruct`s.

    Raises:
        ValueError: for both `scope` and `constraints`, and for specs that do not fit.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import export
        >>> export.symbolic_args_specs((jnp.ones((3, 4)), jnp.ones(4)), ("b, ...", None))
        (ShapeDtypeStruct(shape=(b, 4), dtype=float32), ShapeDtypeStruct(shape=(4,), dtype=float32))
    """
    if scope is not None and constraints:
        raise ValueError("Cannot use both `scope` and `constraints` in symbolic_args_specs.")
    scope = SymbolicScope(constraints) if scope is None else scope
    leaves, tree = tree_flatten(args)
    avals = [
        (
            x
            if isinstance(x, ShapeDtypeStruct)
            else get_aval(x)
            if not (hasattr(x, "shape") and hasattr(x, "dtype"))
            else x
        )
        for x in leaves
    ]
    specs = (
        [shapes_specs] * len(leaves)
        if shapes_specs is None or isinstance(shapes_specs, str)
        else broadcast_prefix(shapes_specs, args, is_leaf=lambda x: x is None or isinstance(x, str))
    )
    return tree.unflatten(
        [ShapeDtypeStruct(symbolic_shape(s, like=tuple(a.shape), scope=scope), a.dtype) for s, a in zip(specs, avals)]
    )
