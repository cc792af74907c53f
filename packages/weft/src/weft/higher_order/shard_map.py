"""shard_map as a primitive: the program of one device, run on all devices of a mesh.

`pmap` is the same primitive over a mesh of one axis. Inside another one its mesh has no devices (`AbstractMesh`): the
lowering of the outer one gives it an axis of the outer mesh.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Collection, ContextManager, Sequence

from ..base import dtypes
from ..base.avals import AbstractRef, array_aval, reshaped, shaped, tangent_aval
from ..core.carries import Carries, Runs
from ..core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, eval_jaxpr, subjaxprs
from ..core.memo import memoized, memoized_closed
from ..core.primitive import AsDecomposed, Primitive, UndefinedPrimal, Zero
from ..core.shardings import parts_of
from ..core.wire import COMMUNICATES
from ..core.trace import Axis, axis_env, get_aval, mapped_axes
from ..primitives.collective import all_gather_p, axis_index_p, psum_p
from ..primitives.elementwise import div
from ..primitives.dynamic_slice import dynamic_slice_p
from ..primitives.linear import expand_dims, full, moveaxis, reshape, squeeze
from ..primitives.rules import shape_of
from ..primitives.shape import slice_
from ..base.errors import at_user_line
from ..base.mesh import AbstractMesh, AxisType, Mesh, NamedSharding, P, axes_of, sharding_in_types
from ..transforms.batch import batch_flat, batch_jaxpr, to_front
from ..transforms.dce import dce_jaxpr
from ..transforms.discharge import hoist_refs
from ..transforms.jvp import instantiate, jvp_jaxpr
from ..transforms.linearize import split_jaxpr
from ..transforms.stage import stage_closed
from ..transforms.transpose import backward_pass
from .call import collective_names

if TYPE_CHECKING:
    from ..base.avals import AbstractValue, ShapedArray
    from ..core.types import Dims, Params, Value
    from ..base.mesh import PartitionSpec
    from ..transforms.linearize import PartialTrace

shard_map_p = Primitive("shard_map", multiple_results=True, wire=COMMUNICATES)


def bind_shard_map(
    args: Sequence[Any],
    jaxpr: ClosedJaxpr,
    mesh: Mesh | AbstractMesh,
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
    check_vma: bool,
    manual: frozenset[Any],
) -> list[Any]:
    """Runs `jaxpr`, a program of one device's parts, under the current trace."""
    (jaxpr,), refs = hoist_refs(jaxpr)
    args, in_specs = [*refs, *args], [*[P()] * len(refs), *in_specs]
    return shard_map_p.bind(
        *args,
        jaxpr=jaxpr,
        mesh=mesh,
        in_specs=tuple(in_specs),
        out_specs=tuple(out_specs),
        check_vma=check_vma,
        newly_manual_axes=manual,
    )


def scope(mesh: Mesh | AbstractMesh, manual: Collection[Any], check_vma: bool = False) -> ContextManager[None]:
    """The axes that the body communicates over."""
    return mapped_axes(*manual_axes(mesh, manual, check_vma))


def manual_axes(mesh: Mesh | AbstractMesh, manual: Collection[Any], check_vma: bool = False) -> tuple[Any, ...]:
    return tuple(Axis(n, s, True, check_vma) for n, s in mesh.shape_tuple if n in manual)


def inside() -> bool:
    """Whether a body of shard_map or pmap is being traced."""
    return any(a.manual for a in axis_env())


def mesh_inside(mesh: Mesh | AbstractMesh, manual: Collection[Any]) -> AbstractMesh:
    """The mesh as the body of a shard_map sees it."""
    return mesh.abstract_mesh.update_axis_types({n: AxisType.Manual for n in manual})


def local_aval(
    aval: AbstractValue,
    spec: PartitionSpec,
    mesh: Mesh | AbstractMesh,
    check_vma: bool = False,
    manual: Collection[Any] = (),
) -> AbstractValue:
    """One device's part of an aval. Raises ValueError if an axis can't be cut evenly, or the type says that the value
    is divided otherwise along the axes `manual`. With `check_vma`, the type of the part has the axes along which it
    varies.
    """
    if len(spec) > len(aval.shape):
        raise ValueError(f"the spec {spec} has more entries than the value of shape {aval.shape} has axes.")
    if type(aval) is AbstractRef:
        return AbstractRef(_local_array(aval.inner, spec, mesh, check_vma, manual))
    return _local_array(array_aval(aval), spec, mesh, check_vma, manual)


def _local_array(
    aval: ShapedArray, spec: PartitionSpec, mesh: Mesh | AbstractMesh, check_vma: bool, manual: Collection[Any]
) -> ShapedArray:
    _check_spec(aval, spec, mesh, manual)
    sizes, shape = mesh.shape, list(aval.shape)
    for i, part in enumerate(spec):
        n = math.prod(sizes[a] for a in axes_of(part))
        if shape[i] % n:
            raise ValueError(
                f"axis {i} of a value of shape {aval.shape} can't be cut evenly by {spec}: its size {shape[i]} must be"
                f" a multiple of {n}, the number of devices along {part!r}."
            )
        shape[i] //= n
    vma = aval.vma.union(a for part in spec for a in axes_of(part)) if check_vma else aval.vma
    inside = None
    if aval.placed is not None:
        parts = [tuple([a for a in axes_of(part) if a not in manual]) for part in aval.placed.spec]
        inside = sharding_in_types(mesh_inside(mesh, manual), P(*parts), len(shape))
    return shaped(tuple(shape), aval.dtype, aval.weak_type, vma, inside)


def _check_spec(aval: ShapedArray, spec: PartitionSpec, mesh: Mesh | AbstractMesh, manual: Collection[Any]) -> None:
    """Raises ValueError where a type and a spec say different things of explicit axes."""
    named = [axes_of(part) for part in (*spec, *[None] * (len(aval.shape) - len(spec)))]
    explicit = set(mesh.typed_axes).intersection(manual)
    for i, (have, want) in enumerate(zip(map(axes_of, parts_of(aval)), named)):
        if explicit.intersection(have) != explicit.intersection(want):
            raise ValueError(
                at_user_line(
                    f"axis {i} of {aval.str_short()} is not divided as the spec {spec} says. Leave in_specs out, which"
                    f" then follow from the types, or move the value first: weft.reshard(x, {spec})."
                )
            )


def global_aval(
    aval: AbstractValue, spec: PartitionSpec, mesh: Mesh | AbstractMesh, manual: frozenset[Any] = frozenset()
) -> ShapedArray:
    """The type of the whole array of which `aval` is one device's part."""
    aval, sizes = array_aval(aval), mesh.shape
    if len(spec) > len(aval.shape):
        raise ValueError(f"the out_spec {spec} has more entries than the result of shape {aval.shape} has axes.")
    shape = list(aval.shape)
    for i, part in enumerate(spec):
        shape[i] *= math.prod(sizes[a] for a in axes_of(part))
    named = [axes_of(part) for part in (*spec, *[None] * (len(shape) - len(spec)))]
    parts = P(*[(*a, *axes_of(part)) for a, part in zip(named, parts_of(aval))])
    placed = sharding_in_types(mesh.abstract_mesh, parts, len(shape)) if mesh.typed_axes else None
    return shaped(tuple(shape), aval.dtype, aval.weak_type, aval.vma - manual, placed)


def unmentioned(spec: PartitionSpec, mesh: Mesh | AbstractMesh, manual: frozenset[Any]) -> tuple[Any, ...]:
    """The manual axes along which a spec has copies."""
    named = {a for part in spec for a in axes_of(part)}
    return tuple(n for n in mesh.axis_names if n in manual and n not in named)


def _abstract(
    *avals: AbstractValue,
    jaxpr: ClosedJaxpr,
    mesh: Mesh | AbstractMesh,
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
    check_vma: bool,
    newly_manual_axes: frozenset[Any],
) -> list[AbstractValue]:
    return [global_aval(a, spec, mesh, newly_manual_axes) for a, spec in zip(jaxpr.out_avals, out_specs)]


# derivatives ---------------------------------------------------------------------------------------------------------


def _jvp(
    primals: Sequence[Value],
    tangents: Sequence[Value],
    *,
    jaxpr: ClosedJaxpr,
    mesh: Mesh | AbstractMesh,
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
    check_vma: bool,
    newly_manual_axes: frozenset[Any],
) -> tuple[Any, Any]:
    nonzeros = [type(t) is not Zero for t in tangents]
    with scope(mesh, newly_manual_axes, check_vma):
        both, out_nonzeros = jvp_jaxpr(jaxpr, nonzeros)
    live = lambda values, flags: [v for v, nz in zip(values, flags) if nz]
    outs = bind_shard_map(
        [*primals, *live(tangents, nonzeros)],
        both,
        mesh,
        [*in_specs, *live(in_specs, nonzeros)],
        [*out_specs, *live(out_specs, out_nonzeros)],
        check_vma,
        newly_manual_axes,
    )
    n = len(out_nonzeros)
    moving = iter(outs[n:])
    return outs[:n], [next(moving) if nz else Zero(tangent_aval(get_aval(o))) for nz, o in zip(out_nonzeros, outs)]


@memoized_closed
def _split(closed: ClosedJaxpr, unknown: tuple[Any, ...]) -> tuple[Any, ...]:
    """The body split into a known and an unknown part. The residuals of the known part differ from device to device, so
    they get a leading axis, which is sharded over the devices.
    """
    split = split_jaxpr(closed, unknown)
    n = len(split.known.out_avals) - split.num_handed_over

    handed = [where == "res" for where, _ in split.sources] + [False] * (
        len(split.staged.in_avals) - len(split.sources)
    )
    return split, n, _wide_out(split.known, n), _wide_in(split.staged, handed)


def _wide_out(closed: ClosedJaxpr, n: int) -> ClosedJaxpr:
    """A body whose results from the n-th on have the leading axis that is sharded over the devices."""

    def run(*args: Value) -> list[Value]:
        outs = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        return [*outs[:n], *[expand_dims(x, (0,)) for x in outs[n:]]]

    return stage_closed(run, closed.in_avals)


def _wide_in(closed: ClosedJaxpr, handed: Sequence[bool]) -> ClosedJaxpr:
    """A body that takes residuals with the leading axis."""
    return stage_closed(
        lambda *args: eval_jaxpr(
            closed.jaxpr, closed.consts, *[squeeze(x, (0,)) if h else x for x, h in zip(args, handed)]
        ),
        [reshaped(a, (1, *a.shape)) if h else a for a, h in zip(closed.in_avals, handed)],
    )


def _everywhere(mesh: Mesh | AbstractMesh, manual: frozenset[Any]) -> P:
    return P(tuple(a for a in mesh.axis_names if a in manual))


def _partial_eval(trace: PartialTrace, args: tuple[Value, ...], params: Params) -> Any:
    mesh, manual, in_specs, out_specs = (
        params["mesh"],
        params["newly_manual_axes"],
        params["in_specs"],
        params["out_specs"],
    )
    unknown, check_vma = tuple([trace.is_unknown(x) for x in args]), params["check_vma"]
    with scope(mesh, manual, check_vma):
        split, n, known, staged = _split(params["jaxpr"], unknown)
    of = lambda values, flags, want: [v for v, f in zip(values, flags) if f is want]
    everywhere = _everywhere(mesh, manual)
    known_args, known_specs, known_out_specs = (
        of(args, unknown, False),
        of(in_specs, unknown, False),
        of(out_specs, split.out_unknown, False),
    )
    outs = bind_shard_map(
        known_args, known, mesh, known_specs, known_out_specs + [everywhere] * split.num_handed_over, check_vma, manual
    )
    residuals = split.residuals(known_args, outs[:n], outs[n:])
    residual_specs = split.residuals(known_specs, known_out_specs, [everywhere] * split.num_handed_over)
    staged_outs: list[Any] = []
    if any(split.out_unknown):
        staged_outs = trace.staged.process(
            shard_map_p,
            (*residuals, *of(args, unknown, True)),
            dict(
                jaxpr=staged,
                mesh=mesh,
                in_specs=(*residual_specs, *of(in_specs, unknown, True)),
                out_specs=tuple(of(out_specs, split.out_unknown, True)),
                check_vma=check_vma,
                newly_manual_axes=manual,
            ),
        )
    known_outs, later = iter(outs[:n]), iter(staged_outs)
    return [next(later) if u else next(known_outs) for u in split.out_unknown]


def _transpose(
    cts: Sequence[Value],
    *args: Value,
    jaxpr: ClosedJaxpr,
    mesh: Mesh | AbstractMesh,
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
    check_vma: bool,
    newly_manual_axes: frozenset[Any],
) -> list[Value | None]:
    """Copies of a result share its cotangent; the cotangents of an argument's copies are summed. If types determine
    what is a copy, the cotangents of copies are copies.
    """
    manual = newly_manual_axes
    linear, nonzero = tuple([type(x) is UndefinedPrimal for x in args]), tuple([type(ct) is not Zero for ct in cts])
    with scope(mesh, manual, check_vma):
        program = _transposed(jaxpr, linear, nonzero, mesh, tuple(in_specs), tuple(out_specs), manual, check_vma)
    inputs = [x for x, lin in zip(args, linear) if not lin] + [ct for ct in cts if type(ct) is not Zero]
    specs = [s for s, lin in zip(in_specs, linear) if not lin] + [s for s, nz in zip(out_specs, nonzero) if nz]
    outs = iter(
        bind_shard_map(inputs, program, mesh, specs, [s for s, lin in zip(in_specs, linear) if lin], check_vma, manual)
    )
    return [next(outs) if lin else None for lin in linear]


@memoized_closed
def _transposed(
    closed: ClosedJaxpr,
    linear: tuple[bool, ...],
    nonzero: tuple[bool, ...],
    mesh: Mesh | AbstractMesh,
    in_specs: tuple[PartitionSpec, ...],
    out_specs: tuple[PartitionSpec, ...],
    manual: frozenset[Any],
    check_vma: bool,
) -> ClosedJaxpr:
    """The body (values of the non-linear arguments, nonzero cotangents) -> cotangents of the linear arguments."""
    sizes = mesh.shape
    copies_of = lambda spec: () if check_vma else unmentioned(spec, mesh, manual)

    def back(*values: Value) -> list[Value]:
        given, parts = iter(values), []
        primals = [UndefinedPrimal(aval) if lin else next(given) for aval, lin in zip(closed.in_avals, linear)]
        for aval, spec, nz in zip(closed.out_avals, out_specs, nonzero):
            copies = math.prod(sizes[a] for a in copies_of(spec))
            ct = next(given) if nz else Zero(tangent_aval(aval))
            parts.append(div(ct, full(shape_of(ct), copies, get_aval(ct).dtype)) if nz and copies > 1 else ct)
        results = []
        for ct, spec, lin in zip(backward_pass(closed.jaxpr, closed.consts, primals, parts), in_specs, linear):
            if lin:
                copies = copies_of(spec)
                ct = instantiate(ct)
                results.append(psum_p.bind(ct, axes=copies, axis_index_groups=None)[0] if copies else ct)
        return results

    plain = [a for a, lin in zip(closed.in_avals, linear) if not lin]
    cts = [_ct_aval(a, s, manual, check_vma) for a, s, nz in zip(closed.out_avals, out_specs, nonzero) if nz]
    return stage_closed(back, [*plain, *cts])


def _ct_aval(aval: AbstractValue, spec: PartitionSpec, manual: frozenset[Any], check_vma: bool) -> ShapedArray:
    """The type of one device's part of a result's cotangent."""
    made = array_aval(tangent_aval(aval))
    return made.update(vma=(made.vma - manual).union(a for part in spec for a in axes_of(part))) if check_vma else made


# batching and the rest -----------------------------------------------------------------------------------------------


def _batch(
    axis: Axis,
    args: Sequence[Value],
    dims: Dims,
    *,
    jaxpr: ClosedJaxpr,
    mesh: Mesh | AbstractMesh,
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
    check_vma: bool,
    newly_manual_axes: frozenset[Any],
) -> tuple[Any, Any]:
    """The new axis comes first. Each device has all of it, or it is cut along the mesh axes of
    `vmap(spmd_axis_name=…)`.
    """
    along = tuple(a for a in axis.spmd if a in mesh.axis_names)
    parts = math.prod(mesh.shape[a] for a in along)
    if axis.size % parts:
        raise ValueError(
            f"vmap(spmd_axis_name={along!r}): the mapped axis of size {axis.size} can't be cut evenly over {parts}"
            " devices."
        )
    with scope(mesh, newly_manual_axes, check_vma and not along):
        new, out_batched = batch_jaxpr(jaxpr, axis._replace(size=axis.size // parts), [d is not None for d in dims])
    lead = along if len(along) > 1 else along[0] if along else None
    wider = lambda specs, flags: [P(lead, *s) if b else s for s, b in zip(specs, flags)]
    outs = bind_shard_map(
        [x if d is None else to_front(axis, x, d) for x, d in zip(args, dims)],
        new,
        mesh,
        wider(in_specs, [d is not None for d in dims]),
        wider(out_specs, out_batched),
        check_vma and not along,
        newly_manual_axes | set(along),
    )
    return outs, [0 if b else None for b in out_batched]


def _dce(used_outputs: Sequence[bool], eqn: JaxprEqn) -> JaxprEqn | None:
    closed, params = eqn.params["jaxpr"], eqn.params
    jaxpr, used_inputs = dce_jaxpr(closed.jaxpr, used_outputs)
    params = dict(
        params,
        jaxpr=ClosedJaxpr(jaxpr, closed.consts),
        in_specs=tuple(s for s, u in zip(params["in_specs"], used_inputs) if u),
        out_specs=tuple(s for s, u in zip(params["out_specs"], used_outputs) if u),
    )
    return eqn.replace(
        invars=[a for a, u in zip(eqn.invars, used_inputs) if u],
        outvars=[v for v, u in zip(eqn.outvars, used_outputs) if u],
        params=params,
    )


def by_vmap(
    *args: Value,
    jaxpr: ClosedJaxpr,
    mesh: Mesh | AbstractMesh,
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
    newly_manual_axes: frozenset[Any],
    evaluate: Callable[..., Any] = eval_jaxpr,
    **_: Any,
) -> list[Any]:
    """The same result on one device, with the devices' parts as batch axes."""
    axes = manual_axes(mesh, newly_manual_axes)
    parts = [_cut(x, spec, axes) for x, spec in zip(args, in_specs)]

    def run(k: int, values: Sequence[Value]) -> list[Value]:
        if k == len(axes):
            return evaluate(jaxpr.jaxpr, jaxpr.consts, *values)
        name = axes[k].name
        outs, dims = batch_flat(
            lambda *xs: run(k + 1, xs), axes[k], values, [0 if _names(spec, name) else None for spec in in_specs]
        )
        return [
            to_front(axes[k], x, d) if _names(spec, name) else _first(x, d) for x, d, spec in zip(outs, dims, out_specs)
        ]

    return [_join(x, spec, axes) for x, spec in zip(run(0, parts), out_specs)]


def _names(spec: PartitionSpec, name: str) -> bool:
    return any(name in axes_of(part) for part in spec)


def _first(x: Value, dim: int | None) -> Value:
    """Takes one of several copies."""
    if dim is None:
        return x
    x = moveaxis(x, dim, 0)
    shape = shape_of(x)
    return reshape(slice_(x, (0,) * len(shape), (1, *shape[1:])), shape[1:])


def _order(spec: PartitionSpec, axes: Sequence[Axis]) -> list[Any]:
    """(position among the leading axes, array axis, place within it) of each mesh axis that the spec names."""
    where = {a: (i, j) for i, part in enumerate(spec) for j, a in enumerate(axes_of(part))}
    return [(a.name, *where[a.name]) for a in axes if a.name in where]


def _cut(x: Value, spec: PartitionSpec, axes: Sequence[Axis]) -> Value:
    """An array with one leading axis for each mesh axis that cuts it, in the order of the mesh."""
    sizes = {a.name: a.size for a in axes}
    split: list[Any] = []
    at: dict[Any, Any] = {}
    for i, n in enumerate(shape_of(x)):
        for name in axes_of(spec[i]) if i < len(spec) else ():
            at[name] = len(split)
            split.append(sizes[name])
            n //= sizes[name]
        split.append(n)
    x = reshape(x, tuple(split))
    for k, (name, *_) in enumerate(_order(spec, axes)):
        x = moveaxis(x, at[name], k)
        at = {m: p + 1 if k <= p < at[name] else p for m, p in at.items()}
    return x


def _join(x: Value, spec: PartitionSpec, axes: Sequence[Axis]) -> Value:
    """The inverse of `_cut`."""
    order, shape = [name for name, *_ in _order(spec, axes)], shape_of(x)
    local = shape[len(order) :]
    permutation, out = [], []
    for i, n in enumerate(local):
        names = axes_of(spec[i]) if i < len(spec) else ()
        permutation += [order.index(a) for a in names] + [len(order) + i]
        out.append(n * math.prod(shape[order.index(a)] for a in names))
    for k in range(len(permutation)):  # bring each axis to its place, from the first on
        source = permutation[k]
        x = moveaxis(x, source, k)
        permutation = [p + 1 if k <= p < source else p for p in permutation]
    return reshape(x, tuple(out))


# nested pmap ---------------------------------------------------------------------------------------------------------


@memoized
def nested_sizes(jaxpr: Jaxpr) -> tuple[Any, ...]:
    """The sizes of the pmaps nested inside a body, outermost first, along the branch that needs the most devices."""
    best: tuple[Any, ...] = ()
    for eqn in jaxpr.eqns:
        for sub in subjaxprs(eqn.params):
            sizes = nested_sizes(sub)
            if eqn.primitive is shard_map_p and isinstance(eqn.params["mesh"], AbstractMesh):
                sizes = (*eqn.params["mesh"].axis_sizes, *sizes)
            best = max(best, sizes, key=math.prod)
    return best


def on_outer_axis(
    *args: Value,
    jaxpr: ClosedJaxpr,
    mesh: Mesh | AbstractMesh,
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
    newly_manual_axes: frozenset[Any],
    **_: Any,
) -> list[Any]:
    """A nested pmap on an axis of the outer mesh, along which all devices hold the same values: each takes its part,
    and all give theirs back.
    """
    (axis,) = manual_axes(mesh, newly_manual_axes)

    def part(x: Value, spec: PartitionSpec) -> Value:
        if not _names(spec, axis.name):
            return x
        d, shape = next(i for i, p in enumerate(spec) if axis.name in axes_of(p)), shape_of(x)
        starts = [full((), 0, dtypes.int32)] * len(shape)
        starts[d] = axis_index_p.bind(axis_name=axis.name)
        return dynamic_slice_p.bind(x, *starts, slice_sizes=tuple(1 if i == d else n for i, n in enumerate(shape)))

    def whole(x: Value, spec: PartitionSpec) -> Value:
        if not _names(spec, axis.name):
            return x
        d = next(i for i, p in enumerate(spec) if axis.name in axes_of(p))
        return all_gather_p.bind(
            x, axis_name=(axis.name,), all_gather_dimension=d, axis_size=axis.size, tiled=True, axis_index_groups=None
        )

    outs = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *[part(x, s) for x, s in zip(args, in_specs)])
    return [whole(x, s) for x, s in zip(outs, out_specs)]


def _split_for_remat(eqn: JaxprEqn, split: Callable[..., Any]) -> tuple[Any, Any, Any]:
    params = eqn.params
    mesh, manual = params["mesh"], params["newly_manual_axes"]
    with scope(mesh, manual, params["check_vma"]):
        part = split(params["jaxpr"])
        n, m = len(eqn.outvars), len(eqn.invars)
        forward, recompute = (
            _wide_out(part.forward, n),
            _wide_in(part.recompute, [False] * m + [True] * len(part.saved)),
        )
    everywhere = _everywhere(mesh, manual)
    handed = [Var(global_aval(a, everywhere, mesh, manual)) for a in forward.out_avals[n:]]
    first = eqn.replace(
        outvars=[*eqn.outvars, *handed],
        params=dict(params, jaxpr=forward, out_specs=(*params["out_specs"], *[everywhere] * len(handed))),
    )
    second = eqn.replace(
        invars=[*eqn.invars, *handed],
        params=dict(params, jaxpr=recompute, in_specs=(*params["in_specs"], *[everywhere] * len(handed))),
    )
    return dict(zip(handed, part.saved.values())), [first], second


def _shardings(params: Params) -> tuple[Sequence[Any], Sequence[Any]]:
    mesh = params["mesh"]
    if not isinstance(mesh, Mesh):
        return (), ()
    return [NamedSharding(mesh, s) for s in params["in_specs"]], [NamedSharding(mesh, s) for s in params["out_specs"]]


shard_map_p.carries = Carries(Runs.ON_PARTS, {"jaxpr": ("operands",)}, on_parts=by_vmap)
shard_map_p.split_for_remat = _split_for_remat
shard_map_p.abstract, shard_map_p.reference = _abstract, AsDecomposed(shard_map_p)
shard_map_p.jvp, shard_map_p.partial_eval, shard_map_p.transpose, shard_map_p.batch, shard_map_p.dce = (
    _jvp,
    _partial_eval,
    _transpose,
    _batch,
    _dce,
)
shard_map_p.decompose, shard_map_p.asks_shardings = by_vmap, _shardings
shard_map_p.effects = lambda params: params["jaxpr"].effects
shard_map_p.axis_names = lambda params: collective_names(params["jaxpr"]) - params["newly_manual_axes"]
shard_map_p.binds = lambda params: manual_axes(params["mesh"], params["newly_manual_axes"], params["check_vma"])
