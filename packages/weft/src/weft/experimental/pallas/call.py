"""pallas_call: from a kernel and the blocks that it sees to the primitive."""

from __future__ import annotations

import inspect
from contextvars import ContextVar
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

from ... import lax
from ... import numpy as jnp
from ...api.refs import OutsideOfReference
from ...base import dtypes
from ...base.annotations import PyTree
from ...base.avals import AbstractRef, AbstractValue, ShapedArray, array_aval, shaped
from ...base.errors import at_user_line
from ...base.scoped import scoped
from ...base.source_info import api_boundary
from ...base.tree import (
    PyTreeDef,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_structure,
    tree_unflatten,
)
from ...core.jaxpr import ClosedJaxpr, TypedScalar, eval_jaxpr
from ...core.trace import Tracer, get_aval, is_array_like
from ...higher_order.pallas_call import INDEX, Block, Call, Dim, Kernel, call_kernel, uninitialised
from ...transforms.stage import stage, stage_closed
from .specs import (
    Blocked,
    BlockSpec,
    CompilerParams,
    CostEstimate,
    Element,
    Grid,
    GridSpec,
    MemoryRef,
    NoBlockSpec,
    Squeezed,
    no_block_spec,
)


class _Point(NamedTuple):
    """The point of the grid at which the kernel that is traced runs."""

    ids: Sequence[Any]
    grid: tuple[int, ...]


_point: ContextVar[_Point | None] = ContextVar("point", default=None)


def _axis(who: str, axis: int) -> tuple[_Point, int]:
    point = _point.get()
    if point is None:
        raise ValueError(
            at_user_line(
                f"{who} belongs in a kernel, and no kernel is running. Call it in the function that is given to"
                " pallas_call."
            )
        )
    if isinstance(axis, Tracer) or not -len(point.grid) <= axis < len(point.grid):
        raise ValueError(
            at_user_line(
                f"{who}({axis}): the grid {point.grid} has {len(point.grid)} axes. Give one of them, or a grid with"
                " more axes to pallas_call."
            )
        )
    return point, axis


def program_id(axis: int) -> Any:
    """The index of this run of the kernel along an axis of the grid.

    Args:
        axis: int.

    Returns:
        scalar of int32, from 0 to `num_programs(axis)` - 1.

    Raises:
        ValueError: outside of a kernel, and for an axis that the grid does not have.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> def kernel(o_ref):
        ...     o_ref[pl.program_id(0)] = 10 * pl.program_id(0)
        >>> pl.pallas_call(kernel, weft.ShapeDtypeStruct((3,), jnp.int32), grid=3)()
        Array([ 0, 10, 20], dtype=int32)
    """
    point, axis = _axis("program_id", axis)
    return point.ids[axis]


def num_programs(axis: int) -> int:
    """How many points the grid has along an axis.

    Args:
        axis: int.

    Returns:
        int

    Raises:
        ValueError: outside of a kernel, and for an axis that the grid does not have.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> def kernel(o_ref):
        ...     o_ref[pl.program_id(0)] = pl.num_programs(0) - pl.program_id(0)
        >>> pl.pallas_call(kernel, weft.ShapeDtypeStruct((3,), jnp.int32), grid=3)()
        Array([3, 2, 1], dtype=int32)
    """
    point, axis = _axis("num_programs", axis)
    return point.grid[axis]


# blocks --------------------------------------------------------------------------------------------------------------


class _Cut(NamedTuple):
    """An array's blocks, and the padding (before, behind) after which they fill its axes."""

    block: Block
    padding: tuple[tuple[int, int], ...]

    @property
    def padded(self) -> bool:
        return any(p != (0, 0) for p in self.padding)


def _dim(d: Any, n: int, what: str) -> tuple[Dim, tuple[int, int]]:
    if isinstance(d, Squeezed) or d is None:
        return Dim(1, 1, True), (0, 0)
    if isinstance(d, Element):
        low, high = d.padding
        return Dim(d.block_size, 1), (low, max(high, d.block_size - n - low))
    size = d.block_size if isinstance(d, Blocked) else d
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ValueError(
            at_user_line(
                f"pallas_call: the shape of the blocks of {what} has an entry {d!r}. Give a positive int, None for an"
                " axis that the kernel does not see, or pl.Element(n)."
            )
        )
    return Dim(size, size), (0, -n % size)


def _cut(spec: Any, aval: ShapedArray, grid: tuple[int, ...], what: str) -> _Cut:
    """The blocks that a spec makes of an array."""
    if isinstance(spec, NoBlockSpec):
        spec = BlockSpec()
    if not isinstance(spec, BlockSpec):
        raise TypeError(
            at_user_line(f"pallas_call: the spec of {what} is {spec!r}. Give a pl.BlockSpec, or pl.no_block_spec.")
        )
    shape = aval.shape
    dims = shape if spec.block_shape is None else tuple(spec.block_shape)
    if len(dims) != len(shape):
        raise ValueError(
            at_user_line(
                f"pallas_call: the blocks of {what} have the shape {_shown(dims)}, and the array is {aval.str_short()},"
                f" with {len(shape)} axes. Give an entry for each axis, None for one that the kernel does not see."
            )
        )
    # an axis without elements is one block
    made = [_dim(d, n, what) if n or not isinstance(d, int) else (Dim(0, 1), (0, 0)) for d, n in zip(dims, shape)]
    index = _index(spec.index_map, len(dims), grid, what)
    return _Cut(Block(tuple([d for d, _ in made]), index), tuple([p for _, p in made]))


def _shown(dims: Sequence[Any]) -> str:
    return f"({', '.join(map(repr, dims))}{',' * (len(dims) == 1)})"


def _index(index_map: Callable[..., Any] | None, axes: int, grid: tuple[int, ...], what: str) -> ClosedJaxpr:
    name = getattr(index_map, "__name__", repr(index_map))

    def flat(*ids: Any) -> list[Any]:
        found = (0,) * axes if index_map is None else index_map(*ids)
        found = tuple(found) if isinstance(found, (tuple, list)) else (found,)
        if len(found) != axes:
            raise ValueError(
                at_user_line(
                    f"pallas_call: the index map {name} of {what} returns {len(found)} values, and its blocks have"
                    f" {axes} axes. Return the number of the block along each of them."
                )
            )
        for i in found:
            if not is_array_like(i) or not dtypes.is_int(get_aval(i).dtype) or get_aval(i).shape:
                raise TypeError(
                    at_user_line(f"pallas_call: the index map {name} of {what} returns {i!r} where an integer belongs.")
                )
        return [
            TypedScalar(int(i), INDEX) if isinstance(i, int) else lax.convert_element_type(i, jnp.int32) for i in found
        ]

    if index_map is not None:
        _fits(
            index_map,
            grid,
            {},
            f"the index map {name} of {what}",
            f"an index for each of the {len(grid)} axes of the grid {grid}",
        )
    closed, arrays = _with_literals(flat, [INDEX] * len(grid), f"the index map {name}")
    if arrays:
        raise ValueError(
            at_user_line(
                f"pallas_call: the index map {name} of {what} closes over {arrays}; it may depend on the grid's indices"
                " and on Python numbers alone. Read whole arrays in the kernel for what depends on data:"
                " pl.BlockSpec(memory_space=pl.ANY), ref[pl.ds(start, n)]."
            )
        )
    return closed


def _with_literals(fun: Callable[..., Any], avals: Sequence[AbstractValue], what: str) -> tuple[ClosedJaxpr, str]:
    """A function as a program without constants: numbers that it closes over are part of it. The text has the types of
    the arrays that it closes over.
    """
    jaxpr, consts = stage(fun, avals, what)
    if not consts:
        return ClosedJaxpr(jaxpr, []), ""
    left = [c for c in consts if isinstance(c, Tracer) or get_aval(c).shape]
    if left:
        return ClosedJaxpr(jaxpr, consts), ", ".join(get_aval(c).str_short() for c in left)
    numbers = [TypedScalar(c.tolist(), array_aval(get_aval(c))) for c in consts]
    return stage_closed(lambda *xs: eval_jaxpr(jaxpr, numbers, *xs), avals, what), ""


def _fits(fun: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], who: str, given: str) -> None:
    """Raises an error that names what a function is called with, if it does not take that."""
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as e:
        raise TypeError(
            at_user_line(
                f"pallas_call: {who} is called with {given}, and does not take that: {e}. Its signature is {signature}."
            )
        ) from None


def _padded(x: Any, cut: _Cut) -> Any:
    """An array that its blocks fill; elements beyond its edges are as if memory had not been written."""
    if not cut.padded:
        return x
    aval = array_aval(get_aval(x))
    return lax.pad(x, uninitialised(shaped((), aval.dtype)), [(low, high, 0) for low, high in cut.padding])


def _padded_aval(aval: ShapedArray, cut: _Cut) -> ShapedArray:
    return shaped(tuple([n + low + high for n, (low, high) in zip(aval.shape, cut.padding)]), aval.dtype)


def _without_padding(x: Any, aval: ShapedArray, cut: _Cut) -> Any:
    if not cut.padded:
        return x
    begin = [low for low, _ in cut.padding]
    return lax.slice(x, begin, [b + n for b, n in zip(begin, aval.shape)])


def _specs(specs: Any, tree: PyTreeDef, paths: Sequence[str], what: str) -> list[Any]:
    """A spec for each leaf of a tree, whose outermost list counts as a tuple."""
    if isinstance(specs, NoBlockSpec):
        return [no_block_spec] * len(paths)
    leaf = lambda x: isinstance(x, (BlockSpec, NoBlockSpec))
    specs = tuple(specs) if isinstance(specs, list) else specs
    found, have = tree_flatten(specs, is_leaf=leaf)
    if have != tree and not (len(found) == len(paths) == 1 and all(map(leaf, found))):
        raise ValueError(
            at_user_line(
                f"pallas_call: {what} has the structure {have}, and what it speaks of {tree}. Give a pl.BlockSpec for"
                " each array, in the same structure."
            )
        )
    return found


# calls ---------------------------------------------------------------------------------------------------------------


class _Form(NamedTuple):
    """How a kernel is called."""

    kernel: Callable[..., None]
    name: str
    spec: GridSpec
    out_shape: Any
    aliases: Mapping[int, int]
    parallel: tuple[bool, ...]


class _Prepared(NamedTuple):
    """A call for operands of certain types."""

    call: Call
    cuts: list[_Cut]
    out_avals: list[ShapedArray]
    out_tree: PyTreeDef


def _out_aval(s: Any) -> ShapedArray:
    if not hasattr(s, "shape") or not hasattr(s, "dtype"):
        raise TypeError(
            at_user_line(
                f"pallas_call: out_shape has {s!r} where the type of a result belongs. Give a"
                " weft.ShapeDtypeStruct(shape, dtype) for each."
            )
        )
    return shaped(tuple(s.shape), dtypes.canonicalize(s.dtype))


def _grid(grid: tuple[Any, ...]) -> tuple[int, ...]:
    for n in grid:
        if isinstance(n, Tracer):
            raise TypeError(
                at_user_line(
                    f"pallas_call: the grid {grid} has a traced size. Programs of weft know the sizes of their loops"
                    " when they are compiled: give ints, the largest number of points, and leave out the rest with"
                    " pl.when."
                )
            )
        if not hasattr(n, "__index__") or isinstance(n, bool) or n.__index__() < 0:
            raise ValueError(
                at_user_line(f"pallas_call: the grid {grid} has an entry {n!r}. Give ints that are not negative.")
            )
    return tuple([n.__index__() for n in grid])


def _prepare(form: _Form, avals: Sequence[ShapedArray], tree: PyTreeDef, names: Sequence[str]) -> _Prepared:
    grid = _grid(form.spec.grid)
    out_shape = tuple(form.out_shape) if isinstance(form.out_shape, list) else form.out_shape
    outs, out_tree = tree_flatten(out_shape)
    out_avals = [_out_aval(s) for s in outs]
    out_names = [f"out_shape{keystr(p)}" for p, _ in tree_flatten_with_path(out_shape)[0]]
    args_tree = tree.children()[0]
    cuts = [
        _cut(spec, aval, grid, name)
        for spec, aval, name in (
            *zip(_specs(form.spec.in_specs, args_tree, names, "in_specs"), avals, names),
            *zip(_specs(form.spec.out_specs, out_tree, out_names, "out_specs"), out_avals, out_names),
        )
    ]
    aliases = _aliases(form.aliases, avals, out_avals, cuts)
    scratch, scratch_tree = tree_flatten(
        tuple(s) if isinstance(s := form.spec.scratch_shapes, list) else s, is_leaf=lambda x: isinstance(x, MemoryRef)
    )
    for s in scratch:
        if not isinstance(s, MemoryRef):
            raise TypeError(at_user_line(f"pallas_call: scratch_shapes has {s!r}. Give pl.ANY(shape, dtype) for each."))
    held = [*avals, *out_avals]
    _no_keys(zip([*names, *out_names, *["scratch_shapes"] * len(scratch)], [*held, *[s.inner_aval for s in scratch]]))
    refs = [AbstractRef(shaped(c.block.shape, a.dtype)) for c, a in zip(cuts, held)]
    refs += [s.get_ref_aval() for s in scratch]
    closed = _traced(form, grid, refs, len(avals), tree, out_tree, scratch_tree, [*names, *out_names])
    padded = tuple([_padded_aval(a, c) for a, c in zip(out_avals, cuts[len(avals) :])])
    kernel = Kernel(form.name, closed, len(grid), form.parallel or (False,) * len(grid))
    call = Call(kernel, grid, tuple([c.block for c in cuts]), padded, aliases)
    return _Prepared(call, cuts, out_avals, out_tree)


def _no_keys(named: Iterable[tuple[str, ShapedArray]]) -> None:
    for name, aval in named:
        if dtypes.is_key(aval.dtype):
            raise TypeError(
                at_user_line(
                    f"pallas_call: {name} is {aval.str_short()}, random keys, which no reference of a kernel holds."
                    " Pass their words, weft.random.key_data(key), and make keys of them in the kernel:"
                    " weft.random.wrap_key_data(ref[...])."
                )
            )


def _traced(
    form: _Form,
    grid: tuple[int, ...],
    refs: Sequence[AbstractRef],
    inputs: int,
    tree: PyTreeDef,
    out_tree: PyTreeDef,
    scratch_tree: PyTreeDef,
    names: Sequence[str],
) -> ClosedJaxpr:
    """The kernel as a program of the grid's indices and of references."""
    outs = out_tree.num_leaves

    def flat(*values: Any) -> list[Any]:
        ids, given = values[: len(grid)], values[len(grid) :]
        args, _ = tree.unflatten(given[:inputs])
        results = out_tree.unflatten(given[inputs : inputs + outs])
        own = scratch_tree.unflatten(given[inputs + outs :])
        args = (*args, *(results if isinstance(results, (tuple, list)) else (results,)))
        kwargs = own if isinstance(own, dict) else {}
        args = args if isinstance(own, dict) else (*args, *(own if isinstance(own, tuple) else (own,)))
        _fits(
            form.kernel,
            args,
            kwargs,
            f"the kernel {form.name}",
            f"references to {inputs} operands, {outs} results and {scratch_tree.num_leaves} pieces of scratch memory",
        )
        with scoped(_point, _Point(ids, grid)):
            try:
                out = form.kernel(*args, **kwargs)
            except OutsideOfReference as e:
                which = next((name for name, ref in zip(names, given) if ref is e.ref), None)
                raise ValueError(_outside(form.name, e, which)) from e
        if out is not None:
            raise ValueError(
                at_user_line(
                    f"pallas_call: the kernel {form.name} returns a value, of structure {tree_structure(out)}. A kernel"
                    " returns nothing; it writes to the references of its results: o_ref[...] = x."
                )
            )
        return []

    closed, arrays = _with_literals(flat, [*[INDEX] * len(grid), *refs], f"the kernel {form.name}")
    if arrays:
        raise ValueError(
            at_user_line(
                f"pallas_call: the kernel {form.name} closes over arrays ({arrays}), which are on no block of the grid."
                " Pass them as operands."
            )
        )
    return closed


def _outside(kernel: str, e: OutsideOfReference, name: str | None) -> str:
    shape = tuple(e.ref.shape)
    seen = f"its block of {name} has the shape {shape}" if name else f"the reference has the shape {shape}"
    return (
        f"pallas_call: the kernel {kernel} reads or writes outside of its block: {e.what} on axis {e.axis}, and {seen}."
        " Indices in a kernel count from the beginning of the block. Give larger blocks to the BlockSpec, or let its"
        f" index_map choose another block.{str(e)[len(e.text) :]}"
    )


def _aliases(
    aliases: Mapping[int, int], avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], cuts: Sequence[_Cut]
) -> tuple[tuple[int, int], ...]:
    for i, j in aliases.items():
        if not (0 <= i < len(avals) and 0 <= j < len(outs)):
            raise ValueError(
                at_user_line(
                    f"pallas_call: input_output_aliases has {i}: {j}, and there are {len(avals)} operands and"
                    f" {len(outs)} results. Their numbers begin at 0."
                )
            )
        a, b = avals[i], outs[j]
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            raise ValueError(
                at_user_line(
                    f"pallas_call: input_output_aliases has {i}: {j}, but operand {i} is {a.str_short()} and result"
                    f" {j} is {b.str_short()}. They share memory, so give both one shape and dtype."
                )
            )
        if cuts[i].padding != cuts[len(avals) + j].padding:
            raise ValueError(
                at_user_line(
                    f"pallas_call: input_output_aliases has {i}: {j}, and their blocks reach beyond the array"
                    " differently. Give both one shape of blocks."
                )
            )
    if len(set(aliases.values())) < len(aliases):
        raise ValueError(
            at_user_line(f"pallas_call: input_output_aliases gives a result two operands: {dict(aliases)}.")
        )
    return tuple(sorted(aliases.items()))


def _parallel(params: Any, grid: tuple[Any, ...]) -> tuple[bool, ...]:
    said = getattr(params, "dimension_semantics", None)
    if said is None:
        return ()
    words = [str(getattr(s, "name", s)).lower() for s in said]
    if len(words) != len(grid) or not {"parallel", "arbitrary"}.issuperset(words):
        raise ValueError(
            at_user_line(
                f"pallas_call: dimension_semantics is {said!r} for the grid {grid}. Give 'parallel' or 'arbitrary' for"
                " each axis."
            )
        )
    return tuple([w == "parallel" for w in words])


@api_boundary
def pallas_call(
    kernel: Callable[..., None],
    out_shape: PyTree,
    *,
    grid_spec: GridSpec | None = None,
    grid: Grid = (),
    in_specs: PyTree = no_block_spec,
    out_specs: PyTree = no_block_spec,
    scratch_shapes: PyTree = (),
    input_output_aliases: Mapping[int, int] = {},
    debug: bool = False,
    interpret: bool = False,
    name: str | None = None,
    compiler_params: CompilerParams | None = None,
    cost_estimate: CostEstimate | None = None,
    metadata: Mapping[str, str] | None = None,
) -> Callable[..., Any]:
    """A function that runs a kernel for each point of a grid, on blocks of its operands.

    The kernel takes references: to the block of each operand, then of each result, then to scratch memory. It reads
    them (`x_ref[...]`), writes to those of the results (`o_ref[...] = y`) and returns nothing. Points run in the order
    of the grid, the last axis fastest, as far as one can tell: a block that several points write keeps what was
    written, and so does scratch memory. Where the index maps show that points write different blocks, compilers run
    them at once. Blocks may reach beyond the end of an array: what they read there is undefined, and what they write
    there is dropped.

    Args:
        kernel: function of references.
        out_shape: pytree of `ShapeDtypeStruct`, the types of the results.
        grid_spec: `GridSpec`, in place of the four arguments that follow.
        grid: int or tuple of ints: how many points there are along each axis; () for one point.
        in_specs: pytree of `BlockSpec` with the structure of the operands; left out, the kernel sees whole arrays.
        out_specs: likewise for the results.
        scratch_shapes: sequence, or dict by the name of the kernel's parameter, of `pl.ANY(shape, dtype)`.
        input_output_aliases: dict from the number of an operand to that of a result of the same type, which holds the
            operand's elements at first.
        debug: bool: print the kernel's program.
        interpret: bool: run the kernel as a loop of ordinary operations on every backend, as XLA does in any case.
        name: str, for programs that are printed; by default the kernel's name.
        compiler_params: `CompilerParams`, or None.
        cost_estimate: `CostEstimate`, for readers alone.
        metadata: dict of strings, for readers alone.

    Returns:
        function of arrays, or pytrees of them; its results have the structure and types of `out_shape`.

    Raises:
        ValueError: for blocks that do not fit their arrays, a kernel that returns a value, closes over arrays, or reads
            outside of its block.
        TypeError: for a kernel or an index map that does not take what it is called with.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> def add(x_ref, y_ref, o_ref):
        ...     o_ref[...] = x_ref[...] + y_ref[...]
        >>> block = pl.BlockSpec((4,), lambda i: i)
        >>> f = pl.pallas_call(add, weft.ShapeDtypeStruct((8,), jnp.float32), grid=2, in_specs=[block, block],
        ...                    out_specs=block)
        >>> f(jnp.arange(8.0), jnp.ones(8))
        Array([1., 2., 3., 4., 5., 6., 7., 8.], dtype=float32)
    """
    if grid_spec is None:
        grid_spec = GridSpec(grid, in_specs, out_specs, scratch_shapes)
    elif grid != () or in_specs is not no_block_spec or out_specs is not no_block_spec or scratch_shapes:
        raise ValueError(
            at_user_line(
                "pallas_call: grid_spec stands for grid, in_specs, out_specs and scratch_shapes. Give either it, or"
                " these."
            )
        )
    if not callable(kernel):
        raise TypeError(at_user_line(f"pallas_call: the kernel is a {type(kernel).__name__}. Give a function."))
    function = getattr(kernel, "func", kernel)  # of a functools.partial
    title = name or str(getattr(function, "__name__", "kernel"))
    form = _Form(kernel, title, grid_spec, out_shape, input_output_aliases, _parallel(compiler_params, grid_spec.grid))
    prepared: dict[Any, _Prepared] = {}

    @api_boundary
    def call(*args: Any) -> Any:
        leaves, tree = tree_flatten((args, {}))
        for x in leaves:
            if not is_array_like(x):
                raise TypeError(at_user_line(f"pallas_call: an operand of {title} is {x!r}. Give arrays."))
        leaves = [jnp.asarray(x) for x in leaves]
        avals = tuple([shaped(get_aval(x).shape, get_aval(x).dtype) for x in leaves])
        if (avals, tree) not in prepared:
            names = [f"args{keystr(p)}" for p, _ in tree_flatten_with_path(args)[0]]
            prepared[avals, tree] = _prepare(form, avals, tree, names)
        ready = prepared[avals, tree]
        if debug:
            print(f"kernel {title}, grid {ready.call.grid}:\n{ready.call.kernel}")
        operands = [lax.convert_element_type(_padded(x, c), x.dtype) for x, c in zip(leaves, ready.cuts)]
        outs = call_kernel(operands, ready.call, bool(interpret))
        cuts = ready.cuts[len(leaves) :]
        outs = [_without_padding(x, a, c) for x, a, c in zip(outs, ready.out_avals, cuts)]
        return tree_unflatten(ready.out_tree, outs)

    call.__name__ = title
    return call
