"""How arrays are cut into blocks: `BlockSpec`, `GridSpec`, and what they are made of."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from enum import Enum
from typing import Any, Callable, NamedTuple, Sequence, TypeAlias

from ...base import dtypes
from ...base.annotations import PyTree, override
from ...base.avals import AbstractRef, ShapedArray, shaped
from ...base.errors import at_user_line
from ...typing import DTypeLike

Grid: TypeAlias = int | tuple[int, ...]


@dataclass(frozen=True)
class Blocked:
    """An axis that is cut into blocks of equal size; what an int in a block's shape means. The index map gives the
    number of the block.

    Args:
        block_size: int, elements of a block along the axis.

    Example:
        >>> from weft.experimental import pallas as pl
        >>> pl.BlockSpec((pl.Blocked(8), 128), lambda i: (i, 0)).block_shape
        (Blocked(block_size=8), 128)
    """

    block_size: int


@dataclass(frozen=True)
class Element:
    """An axis along which blocks may begin anywhere, and overlap. The index map gives the element where one begins.

    Args:
        block_size: int, elements of a block along the axis.
        padding: (int, int), elements that are added before and behind the array, with no particular content; the index
            map counts from the first of them.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> def total(x_ref, o_ref):
        ...     o_ref[0] = jnp.sum(x_ref[...])
        >>> windows = pl.pallas_call(
        ...     total, weft.ShapeDtypeStruct((3,), jnp.float32), grid=3,
        ...     in_specs=[pl.BlockSpec((pl.Element(4),), lambda i: 2 * i)], out_specs=pl.BlockSpec((1,), lambda i: i))
        >>> windows(jnp.arange(8.0)).tolist()
        [6.0, 14.0, 22.0]
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Squeezed:
    """An axis of blocks of one element, which the kernel does not see; what None in a block's shape means.

    Example:
        >>> from weft.experimental import pallas as pl
        >>> pl.squeezed
        Squeezed()
    """


squeezed = Squeezed()
BlockDim: TypeAlias = Element | Squeezed | Blocked


@dataclass(frozen=True)
class Buffered:
    """How many copies of a block are in flight, which a backend with a pipeline of its own would ask for. No backend of
    weft does: it changes no value.

    Args:
        buffer_count: int.
        use_lookahead: bool.
        revisit: None.

    Example:
        >>> from weft.experimental import pallas as pl
        >>> pl.BlockSpec((8,), lambda i: i, pl.Buffered(2)).pipeline_mode
        Buffered(buffer_count=2, use_lookahead=False, revisit=None)
    """

    buffer_count: int
    use_lookahead: bool = False
    revisit: None = None


class MemorySpace(Enum):
    """Where a reference's memory is. Weft's backends choose that themselves, so there is one space: `ANY`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> pl.ANY((8, 128), jnp.float32)
        MemoryRef(shape=(8, 128), dtype=float32)
    """

    ANY = "any"

    @override
    def __str__(self) -> str:
        return self.value

    def __call__(self, shape: Sequence[int], dtype: DTypeLike) -> MemoryRef:
        """Scratch memory of a shape and dtype."""
        return MemoryRef(shaped(tuple(shape), dtypes.canonicalize(dtype)), self)


ANY = MemorySpace.ANY


class MemoryRef:
    """Memory for a kernel's own use: an entry of `scratch_shapes`, an argument of `run_scoped`. Made by `pl.ANY(shape,
    dtype)`.

    Args:
        inner_aval: abstract array: the shape and dtype.
        memory_space: `MemorySpace`.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.experimental import pallas as pl
        >>> pl.ANY((8,), jnp.int32).shape
        (8,)
    """

    def __init__(self, inner_aval: ShapedArray, memory_space: MemorySpace):
        self.inner_aval, self.memory_space = inner_aval, memory_space

    shape = property(lambda self: self.inner_aval.shape)
    dtype = property(lambda self: self.inner_aval.dtype)

    def get_array_aval(self) -> ShapedArray:
        """The type of what the reference holds."""
        return self.inner_aval

    def get_ref_aval(self) -> AbstractRef:
        """The type of the reference."""
        return AbstractRef(self.inner_aval)

    @override
    def __repr__(self) -> str:
        return f"MemoryRef(shape={self.shape}, dtype={dtypes.name(self.dtype)})"


@dataclass(frozen=True)
class BlockSpec:
    """How an array is cut into blocks, and which of them a kernel sees at a point of the grid.

    Args:
        block_shape: an entry for each axis: an int n for blocks of n elements, None (or `pl.squeezed`) for an axis of
            one element that the kernel does not see, `pl.Element(n)` for blocks that may begin anywhere. None: the
            whole array.
        index_map: function of an index for each axis of the grid; it returns the number of the block along each axis
            of the array, ints of int32, as a tuple or, for one axis, alone. None: always the first block.
        pipeline_mode: `pl.Buffered`, or None; it changes no value.
        memory_space: `pl.ANY`, or None, which means the same.

    Example:
        >>> from weft.experimental import pallas as pl
        >>> rows = pl.BlockSpec((8, 128), lambda i: (i, 0))
        >>> rows.block_shape
        (8, 128)
    """

    block_shape: Sequence[BlockDim | int | None] | None = None
    index_map: Callable[..., Any] | None = None
    pipeline_mode: Buffered | None = None
    memory_space: MemorySpace | None = None

    def __init__(
        self,
        block_shape: Sequence[BlockDim | int | None] | None = None,
        index_map: Callable[..., Any] | None = None,
        pipeline_mode: Buffered | None = None,
        *,
        memory_space: MemorySpace | None = None,
    ):
        if callable(block_shape) and not isinstance(block_shape, (tuple, list)):
            raise TypeError(
                at_user_line(
                    "BlockSpec: the shape of a block comes first, and then the index map: BlockSpec((8, 128), lambda i:"
                    " (i, 0))."
                )
            )
        for name, value in (
            ("block_shape", None if block_shape is None else tuple(block_shape)),
            ("index_map", index_map),
            ("pipeline_mode", pipeline_mode),
            ("memory_space", memory_space),
        ):
            object.__setattr__(self, name, value)

    def replace(self, **changes: Any) -> BlockSpec:
        """The spec with other values of some of its arguments."""
        return replace(self, **changes)


class NoBlockSpec:
    """The type of `pl.no_block_spec`: the kernel sees the whole array."""

    @override
    def __repr__(self) -> str:
        return "no_block_spec"


no_block_spec = NoBlockSpec()


class GridSpec:
    """A grid, and how the operands and results of a kernel are cut into blocks along it.

    Args:
        grid: int or tuple of ints: how many points it has along each axis; () for one point.
        in_specs: pytree of `BlockSpec` with the structure of the operands; left out, the kernel sees whole arrays.
        out_specs: likewise for the results.
        scratch_shapes: sequence, or dict by the name of the kernel's parameter, of `pl.ANY(shape, dtype)`.

    Example:
        >>> from weft.experimental import pallas as pl
        >>> pl.GridSpec(grid=4).grid
        (4,)
    """

    def __init__(
        self,
        grid: Grid = (),
        in_specs: PyTree = no_block_spec,
        out_specs: PyTree = no_block_spec,
        scratch_shapes: PyTree = (),
    ):
        self.grid = grid if isinstance(grid, tuple) else tuple(grid) if isinstance(grid, list) else (grid,)
        self.in_specs, self.out_specs, self.scratch_shapes = in_specs, out_specs, scratch_shapes

    @override
    def __repr__(self) -> str:
        return (
            f"GridSpec(grid={self.grid}, in_specs={self.in_specs}, out_specs={self.out_specs},"
            f" scratch_shapes={self.scratch_shapes})"
        )


@dataclass(frozen=True)
class CostEstimate:
    """What a call of a kernel costs, in numbers of operations and bytes. Weft's compilers count for themselves; the
    estimate is kept with the program for readers.

    Args:
        flops: int, arithmetic operations.
        transcendentals: int, elementary functions such as exp.
        bytes_accessed: int, bytes read and written.
        remote_bytes_transferred: int.

    Example:
        >>> from weft.experimental import pallas as pl
        >>> pl.CostEstimate(flops=100, transcendentals=0, bytes_accessed=400).flops
        100
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def to_json(self) -> bytes:
        """The numbers by name, as JSON."""
        return json.dumps(asdict(self)).encode()


class CompilerParams(NamedTuple):
    """What a kernel promises to its compiler.

    Args:
        dimension_semantics: for each axis of the grid "parallel", which promises that its points may run in any order
            or at once, each with scratch memory of its own; or "arbitrary", for points that run one after another. None
            lets the compiler find out from the index maps.

    Example:
        >>> from weft.experimental import pallas as pl
        >>> pl.CompilerParams(dimension_semantics=("parallel", "arbitrary")).dimension_semantics
        ('parallel', 'arbitrary')
    """

    dimension_semantics: tuple[str, ...] | None = None
