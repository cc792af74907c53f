"""Shardings in types: how the sharding of an operation's results follows from that of its operands.

A type says of each axis of an array which explicit axes of a mesh divide it. A primitive has a rule for that
(`Primitive.shard`); where none of several results is the obvious one, it is an error that asks the user. Values whose
types are not divided are whole along all explicit axes, so that programs without explicit meshes never come here.

The rules that many primitives share stand here, the others beside their primitives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Collection, Iterable, NoReturn, Sequence

from ..base.avals import AbstractRef, AbstractValue, ShapedArray, reshaped, tangent_aval
from ..base.errors import ShardingTypeError, at_user_line
from ..base.mesh import AbstractMesh, NamedSharding, P, sharding_in_types
from ..base.spec import axes_of

if TYPE_CHECKING:
    from .types import Params

    Parts = tuple[Any, ...]  # for each axis of an array what divides it, as in a PartitionSpec
    # rule(params, types of the operands, types of the results): what divides each result
    ShardRule = Callable[[Params, Sequence[ShapedArray], Sequence[ShapedArray]], Sequence[Parts]]


def parts_of(aval: AbstractValue) -> Parts:
    """What divides each axis of a value of this type."""
    placed = placed_of(aval)
    return (None,) * len(aval.shape) if placed is None else placed.spec.partitions


def placed_of(aval: AbstractValue) -> NamedSharding | None:
    """How a value of this type is divided; None if it is not."""
    return aval.placed if isinstance(aval, ShapedArray) else aval.inner.placed if type(aval) is AbstractRef else None


def with_placed(aval: AbstractValue, placed: NamedSharding | None) -> Any:
    """The same type for a value that is divided so."""
    if isinstance(aval, AbstractRef):
        return AbstractRef(with_placed(aval.inner, placed))
    if not isinstance(aval, ShapedArray) or aval.placed == placed:
        return aval
    return aval.without_sharding() if placed is None else aval.update(sharding=placed)


def with_parts(aval: AbstractValue, like: AbstractValue, parts: Sequence[Any]) -> Any:
    """The same type for a value that is divided as `parts` say, and otherwise as one of the type `like` is: along the
    same mesh, unreduced and reduced along the same axes.
    """
    placed = placed_of(like)
    if placed is None:
        return with_placed(aval, None)
    spec = P(*parts, unreduced=placed.spec.unreduced, reduced=placed.spec.reduced)
    return with_placed(aval, sharding_in_types(placed.mesh.abstract_mesh, spec, len(aval.shape)))


def cotangent_placed(aval: AbstractValue) -> NamedSharding | None:
    """How the cotangent of a value of this type is divided: as the value, and unreduced where the value is reduced, and
    the other way round.
    """
    placed = placed_of(aval)
    if placed is None or not (placed.spec.unreduced or placed.spec.reduced):
        return placed
    spec = placed.spec.update(unreduced=placed.spec.reduced, reduced=placed.spec.unreduced)
    return placed.update(spec=spec)


def cotangent_aval(aval: AbstractValue) -> Any:
    """The type of cotangents of values of a type."""
    return with_placed(tangent_aval(aval), cotangent_placed(aval))


def refuse(name: str, operands: Iterable[AbstractValue], cause: str, cure: str = "") -> NoReturn:
    """Raises the error for operands whose shardings leave that of the result open."""
    types = ", ".join(a.str_short() for a in operands)
    raise ShardingTypeError(
        at_user_line(
            f"{name} of operands {types}: {cause}."
            f" {cure or 'Move an operand with weft.sharding.reshard(x, weft.P(…)) first.'}"
        )
    )


BILINEAR = "bilinear"  # of an operation: linear in each of two operands
SAY = "Say how the result shall be divided: out_sharding=weft.P(…)."


def with_axis(aval: AbstractValue, n: Any, at: int = 0, part: NamedSharding | None = None) -> Any:
    """The type of `n` values of a type, stacked along a new axis. `part` is how this axis is divided."""
    shape = (*aval.shape[:at], n, *aval.shape[at:])
    placed = placed_of(aval)
    if placed is None and part is None:
        return reshaped(aval, shape)
    parts = list(parts_of(aval))
    parts.insert(at, None if part is None else part.spec[0])
    spec = P(*parts) if placed is None else placed.spec.update(partitions=parts)
    mesh = (placed or part).mesh.abstract_mesh  # type: ignore[union-attr]
    return with_placed(reshaped(aval, shape), sharding_in_types(mesh, spec, len(shape)))


def without_axis(aval: AbstractValue, at: int = 0) -> Any:
    """The type of one element along an axis."""
    return with_parts(reshaped(aval, without((at,), aval.shape)), aval, without((at,), parts_of(aval)))


def axis_placed(avals: Sequence[Any], dims: Sequence[int | None]) -> NamedSharding | None:
    """How the axes are divided along which a function is mapped; None if they are whole.

    Raises:
        ValueError: if they are divided differently.
    """
    found = set()
    for a, d in zip(avals, dims):
        if d is not None:
            placed = placed_of(a)
            found.add(
                None if placed is None or placed.spec[d] is None else NamedSharding(placed.mesh, P(placed.spec[d]))
            )
    if len(found) > 1:
        types = ", ".join(f"axis {d} of {a.str_short()}" for a, d in zip(avals, dims) if d is not None)
        raise ValueError(
            at_user_line(
                f"vmap: the axes that are mapped must be divided alike, got {types}. Move an argument with"
                " weft.sharding.reshard(x, weft.P(…)) first."
            )
        )
    return next(iter(found), None)


def mesh_of(name: str, operands: Sequence[AbstractValue]) -> AbstractMesh | None:
    """The mesh along which operands are divided; None if none is."""
    meshes = {placed.mesh.abstract_mesh for a in operands if (placed := placed_of(a)) is not None}
    if len(meshes) > 1:
        refuse(name, operands, f"they are divided along different meshes: {', '.join(map(str, meshes))}")
    return next(iter(meshes), None)


def with_shardings(
    name: str,
    rule: ShardRule | None,
    linear: bool | str,
    params: Params,
    operands: Sequence[AbstractValue],
    results: Sequence[Any],
) -> Sequence[Any]:
    """The types of an operation's results, with how these are divided.

    Raises:
        ShardingTypeError: if that does not follow from the operands.
    """
    wanted = params.get("out_sharding", params.get("sharding"))
    if wanted is not None and name != "sharding_constraint":
        mesh_of(name, operands)
        return [_as_wanted(a, wanted) for a in results]
    mesh = mesh_of(name, operands)
    if mesh is None:
        return [with_placed(a, None) for a in results]
    if rule is None:
        refuse(
            name,
            operands,
            "it has no rule for divided operands",
            "Move them with weft.sharding.reshard(x, weft.P()), or let the compiler choose (weft.sharding.auto_axes).",
        )
    arrays = [a for a in operands if isinstance(a, ShapedArray)]
    made = rule(params, arrays, results)
    unreduced = _unreduced(name, linear, arrays)
    reduced = frozenset[Any]().union(*[a.placed.spec.reduced for a in arrays if a.placed is not None])
    typed = []
    for aval, parts in zip(results, made):
        used = {a for part in parts for a in axes_of(part)}
        spec = P(*parts, unreduced=unreduced, reduced=reduced - used)
        typed.append(with_placed(aval, sharding_in_types(mesh, spec, len(aval.shape))))
    return typed


def _as_wanted(aval: Any, wanted: Any) -> Any:
    if not isinstance(wanted, NamedSharding) or not isinstance(aval, ShapedArray):
        return aval
    return with_placed(aval, sharding_in_types(wanted.mesh.abstract_mesh, wanted.spec, len(aval.shape)))


def _unreduced(name: str, linear: bool | str, operands: Sequence[ShapedArray]) -> frozenset[Any]:
    """The axes along which results are unreduced: those of the operands, which must agree, of a linear operation. The
    other factor of a bilinear one must be reduced along them.
    """
    specs = [a.placed.spec if a.placed is not None else P() for a in operands]
    axes = frozenset[Any]().union(*[s.unreduced for s in specs])
    if not axes:
        return axes
    if not linear:
        refuse(name, operands, "it is not linear, and an unreduced operand is a sum whose terms lie on several devices")
    if linear == BILINEAR:
        if not any(x.unreduced == axes and axes <= y.reduced for x, y in (specs, specs[::-1])):
            refuse(name, operands, "where one factor is unreduced, the other must be reduced along the same axes")
    elif any(s.unreduced != axes for s in specs):
        refuse(name, operands, "either all operands must be unreduced along the same axes, or none")
    return axes


# rules that many primitives share -------------------------------------------------------------------------------------


def merged(name: str, operands: Sequence[ShapedArray], parts: Sequence[Parts]) -> Parts:
    """What divides a result whose axes are those of each operand: where operands differ, one of them must be whole."""
    made = []
    for i in range(max(map(len, parts))):
        here = {p[i] for p in parts if len(p) > i and p[i] is not None}
        if len(here) > 1:
            refuse(name, operands, f"their axes {i} are divided differently, along {' and '.join(map(repr, here))}")
        made.append(here.pop() if here else None)
    return checked(name, operands, made)


def checked(name: str, operands: Sequence[AbstractValue], parts: Sequence[Any], cure: str = "") -> Parts:
    """`parts`, in which no axis of the mesh may stand twice."""
    axes = [a for part in parts for a in axes_of(part)]
    twice = [a for a in axes if axes.count(a) > 1]
    if twice:
        refuse(name, operands, f"two axes of the result would be divided along the mesh's axis {twice[0]!r}", cure)
    return tuple(parts)


def elementwise(name: str) -> ShardRule:
    """Operands of one shape, sizes of one and scalars aside."""

    def rule(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
        _same_reduced(name, ins)
        rank = len(outs[0].shape)
        fitting = [parts_of(a) if len(a.shape) == rank else (None,) * rank for a in ins]
        # an axis of size one that is stretched is whole
        stretched = [
            tuple([None if n != m else p for p, n, m in zip(parts, a.shape or outs[0].shape, outs[0].shape)])
            for parts, a in zip(fitting, ins)
        ]
        return [merged(name, ins, stretched)] * len(outs)

    return rule


def _same_reduced(name: str, ins: Sequence[ShapedArray]) -> None:
    arrays = [a for a in ins if a.shape]
    reduced = [a.placed.spec.reduced if a.placed is not None else frozenset() for a in arrays]
    axes = frozenset[Any]().union(*reduced)
    if axes and any(one != axes for one in reduced):
        refuse(name, ins, f"one operand is reduced along {', '.join(map(repr, axes))}, and another is not")


def same(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
    """Each result is divided as the first operand."""
    return [parts_of(ins[0])] * len(outs)


def each_same(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
    """Each result is divided as the operand at its place."""
    return [parts_of(a) for a in ins]


def whole(name: str, operands: Sequence[ShapedArray], axes: Collection[int], what: str, cure: str = "") -> None:
    """Raises ShardingTypeError if one of these axes of an operand is divided."""
    for a in operands:
        for i in axes:
            if parts_of(a)[i] is not None:
                refuse(
                    name,
                    operands,
                    f"{what} along axis {i}, which is divided",
                    cure or "Gather it first, with weft.sharding.reshard(x, weft.P(…)) without that axis of the mesh.",
                )


def along(name: str, parameter: str) -> ShardRule:
    """Operations on operands of one shape that run along an axis, which the parameter gives, and have results of this
    shape, or with another size of that axis.
    """

    def rule(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
        whole(name, ins, (params[parameter],), "it runs")
        return [merged(name, ins, [parts_of(a) for a in ins])] * len(outs)

    return rule


def leading(name: str, core: Sequence[int]) -> ShardRule:
    """Operations on the last axes of each operand, of which there are `core[i]`, for all leading axes alike."""

    def rule(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
        for a, k in zip(ins, core):
            whole(name, [a], range(len(a.shape) - k, len(a.shape)), "it computes")
        rank = max(len(a.shape) - k for a, k in zip(ins, core))
        first = merged(name, ins, [parts_of(a)[:rank] for a in ins])
        return [(*first, *[None] * (len(o.shape) - rank)) for o in outs]

    return rule


def divisible(
    name: str, operands: Sequence[ShapedArray], out: ShapedArray, parts: Parts, changed: Iterable[int]
) -> Parts:
    """`parts`, where axes whose sizes have changed can be divided evenly."""
    mesh = mesh_of(name, operands)
    sizes = mesh.shape if mesh is not None else {}
    for i in changed:
        n = 1
        for a in axes_of(parts[i]):
            n *= sizes[a]
        if type(out.shape[i]) is int and out.shape[i] % n:
            refuse(name, operands, f"axis {i} of the result has {out.shape[i]} elements, no multiple of {n}, its parts")
    return parts


def resized(name: str) -> ShardRule:
    """The result has the operand's axes, some with other sizes, which must be divisible too."""

    def rule(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
        x = ins[0]
        return [
            divisible(name, ins, o, parts_of(x), [i for i, (n, m) in enumerate(zip(x.shape, o.shape)) if n != m])
            for o in outs
        ]

    return rule


def without(axes: Collection[int], parts: Parts) -> Parts:
    """`parts` without those of some axes."""
    return tuple([p for i, p in enumerate(parts) if i not in axes])


def reduced(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
    """Results without the axes `axes` of the operands. Where these are divided, devices exchange their parts."""
    return [without(params["axes"], parts_of(ins[0]))] * len(outs)
