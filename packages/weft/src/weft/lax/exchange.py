"""Communication that few programs need: parts of different sizes, and sending apart from receiving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..base.avals import ShapeDtypeStruct, shaped
from ..core.trace import get_aval
from ..base.errors import type_error
from ..base.host import from_flat
from ..primitives import collective as ops
from ..primitives import linear
from ..primitives.dynamic_slice import dynamic_slice_p
from ..primitives.elementwise import add, and_p, clamp, ge, lt, select, sub
from ..primitives.gather import GatherDimensionNumbers, gather
from ..primitives.linear import broadcast_in_dim, full
from ..primitives.rules import shape_of
from ..primitives.shape import iota
from ..base.registration import register_pytree_node
from ..typing import Array, ArrayLike, AxisName
from .collectives import _groups, _names, all_gather, axis_index, ppermute
from .common import operand as checked

if TYPE_CHECKING:
    from ..core.types import Value

__all__ = ["precv", "psend", "ragged_all_to_all"]


def ragged_all_to_all(
    operand: ArrayLike,
    output: ArrayLike,
    input_offsets: ArrayLike,
    send_sizes: ArrayLike,
    output_offsets: ArrayLike,
    recv_sizes: ArrayLike,
    *,
    axis_name: AxisName,
    axis_index_groups: Sequence[Sequence[int]] | None = None,
) -> Array:
    """Exchanges parts of different sizes: member i sends `operand[input_offsets[j]:][:send_sizes[j]]` to member j,
    where it stands at `output_offsets[j]` of what is otherwise `output`.

    The four vectors of integers have one entry for each member; `output_offsets` are positions at the receiver, and
    `recv_sizes` what it is sent. It is computed with `all_gather`, so each member holds all operands for a while.

    Args:
        operand: array of any dtype, shape (k, …).
        output: array of the dtype of operand, shape (m, …) with the same axes after the first.
        input_offsets: integers, shape (n,), for n members: where each part begins.
        send_sizes: integers, shape (n,): the sizes of the parts.
        output_offsets: integers, shape (n,): positions at the receivers.
        recv_sizes: integers, shape (n,): what this member is sent.
        axis_name: the name of an axis in scope, or a tuple of names.
        axis_index_groups: lists of members, all of one size, each of which works for itself; None for all together.

    Returns:
        array of the dtype and shape of output.

    Raises:
        WeftTypeError: if shapes or dtypes do not fit.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> ones = jnp.array([1, 1])
        >>> swap = lambda x: weft.lax.ragged_all_to_all(
        ...     x, jnp.zeros(2), jnp.array([0, 1]), ones, ones * weft.lax.axis_index('i'), ones, axis_name='i')
        >>> weft.vmap(swap, axis_name='i')(jnp.array([[1., 2.], [3., 4.]]))
        Array([[1., 3.],
               [2., 4.]], dtype=float32)
    """
    operand, out = checked("ragged_all_to_all", operand), checked("ragged_all_to_all", output)
    names, groups = _names(axis_name), _groups("ragged_all_to_all", axis_index_groups, axis_name)
    have, want, n = get_aval(operand), get_aval(out), ops.group_size(names, groups)
    if have.dtype != want.dtype or have.shape[1:] != want.shape[1:] or not have.shape or not want.shape:
        raise type_error(
            "ragged_all_to_all: operand and output must have the same dtype and the same axes after the first, got"
            f" {have.str_short()} and {want.str_short()}."
        )
    vectors = []
    for name, v in (
        ("input_offsets", input_offsets),
        ("send_sizes", send_sizes),
        ("output_offsets", output_offsets),
        ("recv_sizes", recv_sizes),
    ):
        v = checked("ragged_all_to_all", v)
        if shape_of(v) != (n,) or not dtypes.is_int(get_aval(v).dtype):
            raise type_error(
                f"ragged_all_to_all: {name} must be a vector of {n} integers, one for each member, got"
                f" {get_aval(v).str_short()}."
            )
        vectors.append(linear.convert(v, dtypes.int32))
    everybody = all_gather(operand, axis_name, axis_index_groups=axis_index_groups)
    begins, sizes, places = (all_gather(v, axis_name, axis_index_groups=axis_index_groups) for v in vectors[:3])
    me = axis_index(axis_name)
    if groups is not None:  # the position in the group
        order = [group.index(m) for m in range(ops.axis_size(names)) for group in groups if m in group]
        me = _row(from_flat(order, (len(order),), dtypes.int32), me)
    rows, length, rest = want.shape[0], have.shape[0], want.shape[1:]
    at = iota(dtypes.int32, (rows,), 0)
    spread = lambda x, shape=(rows,): broadcast_in_dim(x, shape, ())
    numbers = GatherDimensionNumbers(tuple(range(1, 1 + len(rest))), (0,), (0,))
    for i in range(n):
        begin, size, place = (_row(_row(table, full((), i, dtypes.int32)), me) for table in (begins, sizes, places))
        offset = sub(at, spread(place))
        source = clamp(
            spread(full((), 0, dtypes.int32)),
            add(offset, spread(begin)),
            spread(full((), max(length - 1, 0), dtypes.int32)),
        )
        sent = gather(
            _row(everybody, full((), i, dtypes.int32)), linear.reshape(source, (rows, 1)), numbers, (1, *rest)
        )
        mine = and_p.bind(ge(offset, spread(full((), 0, dtypes.int32))), lt(offset, spread(size)))
        out = select(broadcast_in_dim(mine, want.shape, (0,)), sent, out)
    return out


def _row(table: Value, i: Value) -> Value:
    """table[i]"""
    shape = shape_of(table)
    starts = [i, *[full((), 0, dtypes.int32)] * (len(shape) - 1)]
    return linear.reshape(dynamic_slice_p.bind(table, *starts, slice_sizes=(1, *shape[1:])), shape[1:])


class Sent:
    """A value that has been sent and not yet received: `psend` returns it, and `precv` takes it."""

    __slots__ = ("value", "route")

    def __init__(self, value: Value, route: tuple[Any, ...]):
        self.value, self.route = value, route


register_pytree_node(Sent, lambda s: ((s.value,), s.route), lambda route, children: Sent(children[0], route))


def psend(x: ArrayLike, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Sent:
    """Sends a value along pairs of members; `precv` takes the result and gives the value.

    Args:
        x: array of any dtype, any shape.
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.
        perm: pairs of ints (source, destination), the sources distinct and the destinations distinct.

    Returns:
        a token for `precv`.

    Raises:
        ValueError: if sources or destinations are no members or not distinct.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> swap = lambda x: weft.lax.precv(weft.lax.psend(x, 'i', [(0, 1), (1, 0)]), x, 'i', [(0, 1), (1, 0)])
        >>> weft.vmap(swap, axis_name='i')(jnp.arange(2.))
        Array([1., 0.], dtype=float32)
    """
    pairs = tuple((int(a), int(b)) for a, b in perm)
    return Sent(ppermute(checked("psend", x), axis_name, pairs), (_names(axis_name), pairs))


def precv(token: Sent, out_shape: ShapeDtypeStruct, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Array:
    """Receives the value that a `psend` along the same pairs has sent; members that receive nothing get zeros.

    Args:
        token: what `psend` returned.
        out_shape: `ShapeDtypeStruct` of the value.
        axis_name: the name of an axis in scope (of `vmap`, `shard_map` or `pmap`), or a tuple of names.
        perm: pairs of ints (source, destination), as of the `psend`.

    Returns:
        array of the shape and dtype of `out_shape`.

    Raises:
        ValueError: if the token is none of `psend`, or the pairs or the type are others than those of the value sent.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> swap = lambda x: weft.lax.precv(weft.lax.psend(x, 'i', [(0, 1)]), x, 'i', [(0, 1)])
        >>> weft.vmap(swap, axis_name='i')(jnp.array([1., 2.]))
        Array([0., 1.], dtype=float32)
    """
    if not isinstance(token, Sent):
        raise ValueError(f"precv takes a result of psend, got a {type(token).__name__}.")
    route = (_names(axis_name), tuple((int(a), int(b)) for a, b in perm))
    want = shaped(tuple(out_shape.shape), dtypes.canonicalize(out_shape.dtype))
    have = get_aval(token.value)
    if route != token.route:
        raise ValueError(
            f"precv: the value was sent along {token.route[1]} of {token.route[0]}, and is received along {route[1]} of"
            f" {route[0]}."
        )
    if (have.shape, have.dtype) != (want.shape, want.dtype):
        raise ValueError(f"precv: a value of type {have.str_short()} was sent, and out_shape is {want.str_short()}.")
    return token.value
