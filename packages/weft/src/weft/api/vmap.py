"""vmap: a function over an additional axis of its arguments."""

from __future__ import annotations

from typing import Callable

from ..typing import AxisName
from ..base.annotations import Args, Function, PyTree, Result, like
from ..core.shardings import axis_placed
from ..core.trace import Axis, get_aval, is_array_like
from ..base.errors import at_user_line
from .functions import as_arrays, check_callable, flat_function, as_given
from ..primitives.linear import moveaxis, reduce_sum
from ..base.source_info import api_boundary
from ..transforms.batch import batch_flat, to_front
from ..base.tree import broadcast_prefix, keystr, tree_flatten, tree_flatten_with_path, tree_leaves, tree_unflatten


def vmap(
    fun: Callable[Args, Result],
    in_axes: int | PyTree | None = 0,
    out_axes: int | PyTree | None = 0,
    axis_name: AxisName | None = None,
    axis_size: int | None = None,
    spmd_axis_name: AxisName | None = None,
    sum_match: bool = False,
) -> Function[Args, Result]:
    """Maps `fun` over an additional axis of its arguments.

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        in_axes: for each argument the axis to map over, or None for an argument that is not mapped; a pytree prefix of
            the arguments.
        out_axes: where the mapped axis goes in the results; a pytree prefix of them.
        axis_name: a name by which collectives inside refer to the axis.
        axis_size: its size, if no argument is mapped.
        spmd_axis_name: the axis (or axes) of a device mesh along which sharding constraints and shard_maps inside place
            the mapped axis.
        sum_match: sum results over the mapped axis where `out_axes` is None, instead of refusing them.

    Returns:
        function of the same arguments, each mapped array of which has one axis more; so have its results, of the same
        dtypes.

    Raises:
        TypeError: for `in_axes` that are not ints.
        ValueError: when it is called, for axes that do not exist, and for sizes that differ.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.vmap(jnp.dot, in_axes=(0, None))(jnp.ones((3, 2)), jnp.ones(2))
        Array([2., 2., 2.], dtype=float32)
    """
    check_callable(fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not all(
        a is None or isinstance(a, int) and not isinstance(a, bool)
        for a in tree_leaves(in_axes, is_leaf=lambda x: x is None)
    ):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed"
            f" to the function, but got {in_axes}."
        )

    spmd = (
        ()
        if spmd_axis_name is None
        else tuple(spmd_axis_name)
        if isinstance(spmd_axis_name, (tuple, list))
        else (spmd_axis_name,)
    )

    @like(fun)
    @api_boundary
    def vmap_f(*args, **kwargs):
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments"
                f" passed to the function, but got {len(in_axes)=}, {len(args)=}."
            )
        leaves, in_tree = tree_flatten((args, kwargs))
        try:
            dims = broadcast_prefix((in_axes, 0), (args, kwargs))
        except ValueError as e:
            raise ValueError(
                at_user_line(
                    f"vmap in_axes must be a tree prefix of the arguments: {in_axes} does not fit"
                    f" {in_tree.children()[0]}: {e}"
                )
            ) from e
        # a value that is not mapped passes through unchanged, whatever its type
        leaves = [
            x if d is None and not is_array_like(x) else as_arrays([x], "vmap", "Give it None in in_axes")[0]
            for d, x in zip(dims, leaves)
        ]
        dims = [_checked_axis(d, x, i) for i, (d, x) in enumerate(zip(dims, leaves))]
        size = _mapped_size(leaves, dims, axis_size, (args, kwargs))
        flat, box = flat_function(lambda a, k: fun(*a, **k), in_tree)
        axis = Axis(
            axis_name,
            size,
            spmd=spmd,
            placed=axis_placed([get_aval(x) if d is not None else None for x, d in zip(leaves, dims)], dims),
        )
        outs, out_dims = batch_flat(flat, axis, leaves, dims)
        for x in outs:
            if not is_array_like(x):
                raise TypeError(f"Output from batched function {x!r} with type {type(x)} is not a valid JAX type")
        out_tree = box[-1]
        try:
            wanted = broadcast_prefix(out_axes, out_tree.unflatten(outs))
        except ValueError as e:
            raise ValueError(
                "vmap out_axes specification must be a tree prefix of the corresponding value, got specification"
                f" {out_axes} for value of structure {out_tree}."
            ) from e
        return tree_unflatten(
            out_tree, [_place(axis, x, d, want, sum_match) for x, d, want in zip(outs, out_dims, wanted)]
        )

    return vmap_f


def _checked_axis(dim, x, i: int):
    if dim is None:
        return None
    rank = len(get_aval(x).shape)
    if not -rank <= dim < rank:
        raise ValueError(
            at_user_line(
                f"vmap was requested to map its argument along axis {dim}, and an argument of shape {get_aval(x).shape}"
                f" has {f'only axes 0 to {rank - 1}' if rank else 'no axes'}. Choose another axis in in_axes, or None"
                " for an argument that is not mapped."
            )
        )
    return dim % rank


def _mapped_size(leaves, dims, axis_size, tree) -> int:
    sizes = {get_aval(x).shape[d] for x, d in zip(leaves, dims) if d is not None}
    if axis_size is not None:
        sizes.add(axis_size)
    if not leaves and axis_size is None:
        raise ValueError(
            "vmap wrapped function must be passed at least one argument containing an array or axis_size must be"
            " specified, got empty *args=() and **kwargs={}"
        )
    if not sizes:
        raise ValueError(
            at_user_line(
                "vmap maps nothing: in_axes is None for all arguments, and axis_size is not given. Map an argument"
                " (in_axes=0), give axis_size, or call the function itself."
            )
        )
    if len(sizes) > 1:
        paths = [keystr(p[1:]) for p, _ in tree_flatten_with_path(tree)[0]]
        what = "; ".join(
            f"argument {p} of shape {get_aval(x).shape} has size {get_aval(x).shape[d]} along axis {d}"
            for p, x, d in zip(paths, leaves, dims)
            if d is not None
        )
        raise ValueError(
            at_user_line(
                "vmap got inconsistent sizes for array axes to be mapped:"
                f" {what}{f'; axis_size is {axis_size}' if axis_size is not None else ''}."
            )
        )
    return sizes.pop()


def _place(axis, x, dim, want, sum_match: bool):
    if want is None:
        if dim is not None and sum_match:
            return reduce_sum(x, (dim,))
        if dim is not None:
            raise ValueError(
                at_user_line(
                    f"vmap: out_axes is None for an output that is batched (on axis {dim}): an output of type"
                    f" {get_aval(x).str_short()} depends on mapped arguments. Give it an axis, or sum_match=True for"
                    " their sum."
                )
            )
        return as_given(x)
    x, dim = (to_front(axis, x, None), 0) if dim is None else (x, dim)
    rank = len(get_aval(x).shape)
    if not -rank <= want < rank:
        raise ValueError(
            f"axis {want} is out of bounds for array of dimension {rank}: vmap's out_axes says where the mapped axis"
            " goes in an output of that rank."
        )
    return moveaxis(x, dim, want % rank)
