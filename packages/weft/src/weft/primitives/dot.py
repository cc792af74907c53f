"""dot_general: every product of arrays that sums over shared axes."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, NamedTuple, Sequence

from ..base.annotations import override
from ..base import dtypes, limits
from ..base.avals import shaped, tangent_aval
from ..core.primitive import Primitive, Zero
from ..core.shardings import BILINEAR, SAY, checked, cotangent_placed, merged, parts_of, placed_of, refuse
from ..core.wire import (
    AXES,
    COUNT,
    DTYPE,
    DTYPE_OR_NONE,
    FLAG,
    NOTHING,
    either,
    member,
    param_type,
    portable,
    record,
    row,
    word,
)
from ..core.trace import get_aval
from ..base.errors import type_error
from ..base.mesh import NamedSharding, P
from ..base.host import np
from .linear import add_any, batched_sharding, convert_element_type_p, transpose
from .rules import is_linear_arg, shape_of

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..base.dtypes import DTypeLike
    from ..core.trace import Axis
    from ..core.shardings import Parts
    from ..core.types import Dims, ElementType, Params, Value


@param_type
class DotAlgorithm(NamedTuple):
    """How a product is computed: the types to which factors are rounded and in which sums are accumulated, and into how
    many parts a factor is split.

    Example:
        >>> from weft import lax
        >>> algorithm = lax.DotAlgorithm('float32', 'float32', 'float32')
    """

    lhs_precision_type: DTypeLike
    rhs_precision_type: DTypeLike
    accumulation_type: DTypeLike
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


@param_type
class DotAlgorithmPreset(enum.Enum):
    """The algorithms of existing hardware: the types of the factors, then that of the sums; `_X3` uses three products
    for one.
    """

    DEFAULT = 0
    ANY_F8_ANY_F8_F32 = 1
    ANY_F8_ANY_F8_F32_FAST_ACCUM = 2
    ANY_F8_ANY_F8_ANY = 3
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = 4
    F16_F16_F16 = 5
    F16_F16_F32 = 6
    BF16_BF16_BF16 = 7
    BF16_BF16_F32 = 8
    BF16_BF16_F32_X3 = 9
    BF16_BF16_F32_X6 = 10
    BF16_BF16_F32_X9 = 11
    TF32_TF32_F32 = 12
    TF32_TF32_F32_X3 = 13
    F32_F32_F32 = 14
    F64_F64_F64 = 15

    @override
    def __str__(self) -> str:
        return self.name

    @override
    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"


_LEVEL = either(
    NOTHING,
    member("Precision"),
    word("default", "fastest", "high", "highest", "bfloat16", "bfloat16_3x", "tensorfloat32", "float32"),
)
_OPERAND_TYPE = either(DTYPE, word("tf32", *dtypes.names))
PRECISION = either(
    _LEVEL,
    row(_LEVEL, _LEVEL),
    member("DotAlgorithmPreset"),
    record("DotAlgorithm", _OPERAND_TYPE, _OPERAND_TYPE, _OPERAND_TYPE, COUNT, COUNT, COUNT, FLAG),
)
DOT_NUMBERS = row(row(AXES, AXES), row(AXES, AXES))
PRODUCT = {"precision": PRECISION, "preferred_element_type": DTYPE_OR_NONE, "out_sharding": NOTHING}
dot_general_p = Primitive(
    "dot_general",
    hidden=("precision", "preferred_element_type", "out_sharding"),
    wire=portable(dimension_numbers=DOT_NUMBERS, **PRODUCT),
)


def dot_abstract(
    x: ShapedArray,
    y: ShapedArray,
    *,
    dimension_numbers: Any,
    precision: Any,
    preferred_element_type: ElementType | None,
    out_sharding: Any,
) -> ShapedArray:
    (xc, yc), (xb, yb) = dimension_numbers
    for name, dims, aval in (("lhs", (*xc, *xb), x), ("rhs", (*yc, *yb), y)):
        if len(set(dims)) != len(dims):
            raise type_error(f"dot_general: {name} batch and contracting dimensions must be distinct, got {dims}.")
        if any(not 0 <= d < len(aval.shape) for d in dims):
            raise type_error(f"dot_general: {name} dimensions {dims} are out of range for shape {aval.shape}.")
    if len(xb) != len(yb) or len(xc) != len(yc):
        raise type_error(
            f"dot_general requires equal numbers of batch and of contracting dimensions, got {dimension_numbers}."
        )
    if any(x.shape[a] != y.shape[b] for a, b in zip(xb, yb)):
        raise type_error(
            "dot_general: the batch dimensions differ in size: "
            f"{[x.shape[a] for a in xb]} and {[y.shape[b] for b in yb]} (shapes {x.shape} and {y.shape})."
        )
    if any(x.shape[a] != y.shape[b] for a, b in zip(xc, yc)):
        raise type_error(
            "dot_general: the contracting dimensions differ in size: "
            f"{tuple(x.shape[a] for a in xc)} and {tuple(y.shape[b] for b in yc)} (shapes {x.shape} and {y.shape})."
        )
    if dtypes.is_key(x.dtype) or dtypes.is_key(y.dtype):
        raise type_error("dot_general does not accept random keys.")
    dt = _product_dtype(x, y, preferred_element_type, precision)
    shape = (
        *[x.shape[d] for d in xb],
        *[n for d, n in enumerate(x.shape) if d not in (*xc, *xb)],
        *[n for d, n in enumerate(y.shape) if d not in (*yc, *yb)],
    )
    return shaped(shape, dt, x.weak_type and y.weak_type)


def _width(dt: ElementType) -> tuple[bool, int, int, int, bool]:
    """The properties that decide which of two dtypes a product has: complex, range, digits, bits, signedness."""
    real = dtypes.real_of(dt) if dtypes.is_complex(dt) else dt
    info = limits.finfo(real) if dtypes.is_float(real) else None
    return (
        dtypes.is_complex(dt),
        -1 if info is None else int(info.maxexp),
        -1 if info is None else int(info.nmant),
        1 if dtypes.is_bool(real) else dtypes.bits(real),
        dtypes.kind(real) != "u",
    )


def _product_dtype(x: Value, y: Value, preferred: ElementType | None, precision: Any) -> ElementType:
    """The wider of the operands' dtypes, or the preferred one, which may not be narrower unless these are floats."""
    for aval in (x, y):
        if aval.dtype == dtypes.float0:
            raise type_error("dot_general does not accept dtype float0.")
    wide, other = (x.dtype, y.dtype) if _width(x.dtype) >= _width(y.dtype) else (y.dtype, x.dtype)
    if wide != other and _width(wide) == _width(other):
        raise type_error(
            f"dot_general: neither of the dtypes {dtypes.name(x.dtype)} and {dtypes.name(y.dtype)} is the wider one."
            " Convert one with astype."
        )
    if has_algorithm(precision) and dtypes.is_complex(wide):
        raise type_error(
            f"dot_general: the algorithm {precision} is for real numbers, got {dtypes.name(wide)}. Leave the precision"
            " out."
        )
    if preferred is None or preferred == wide:
        return wide
    if (
        not isinstance(precision, (DotAlgorithm, DotAlgorithmPreset))
        and not dtypes.is_float(wide)
        and _bits(preferred) < _bits(wide)
    ):
        raise type_error(
            "dot_general: preferred_element_type must not be narrower than the operands' type, got"
            f" {dtypes.name(preferred)} for {dtypes.name(wide)}."
        )
    return preferred


def has_algorithm(precision: Any) -> bool:
    """Whether the required product accumulates its sums in floats of a given type."""
    return (
        isinstance(precision, DotAlgorithm)
        or isinstance(precision, DotAlgorithmPreset)
        and precision is not DotAlgorithmPreset.DEFAULT
    )


def factor_dtype(x: ElementType, y: ElementType, out: ElementType, precision: Any) -> ElementType | None:
    """The dtype to which a product converts its factors before it multiplies them: that of its result, if the factors'
    dtypes differ. None if it multiplies them as they are, as it does floats of at most 8 bits, and what an algorithm
    converts.
    """
    small = all(dtypes.is_float(dt) and dtypes.bits(dt) <= 8 for dt in (x, y))
    return None if x == y or small or has_algorithm(precision) else out


def narrow_factor(precision: Any) -> ElementType | None:
    """The floats of 16 bits to which a preset converts the factors; None for other products."""
    if not isinstance(precision, DotAlgorithmPreset) or "_X" in precision.name:
        return None
    kind = {"F16": "float16", "BF16": "bfloat16"}.get(precision.name.partition("_")[0])
    return None if kind is None else dtypes.dtype(kind)


def _bits(dt: ElementType) -> int:
    """The properties of one part of a complex number."""
    return 1 if dtypes.is_bool(dt) else dtypes.bits(dtypes.real_of(dt) if dtypes.is_complex(dt) else dt)


def _dot_reference(
    x: Value,
    y: Value,
    *,
    dimension_numbers: Any,
    precision: Any,
    preferred_element_type: ElementType | None,
    out_sharding: Any,
) -> Any:
    (xc, yc), (xb, yb) = dimension_numbers
    dt = _product_dtype(x, y, preferred_element_type, precision)
    narrow = narrow_factor(precision)
    if narrow is not None:
        x, y = x.astype(narrow), y.astype(narrow)
    first = factor_dtype(x.dtype, y.dtype, dt, precision)
    if first is not None:
        x, y = (convert_element_type_p.reference(v, new_dtype=first, weak_type=False, sharding=None) for v in (x, y))
    involved = (x.dtype, y.dtype, dt)
    wide = (
        np.complex128
        if any(map(dtypes.is_complex, involved))
        else (
            np.float64
            if has_algorithm(precision) or any(map(dtypes.is_float, involved))
            else dt
            if dtypes.bits(dt) >= 8
            else np.int32
        )
    )
    x, y = x.astype(wide), y.astype(wide)
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    xs, ys = [next(letters) for _ in x.shape], [next(letters) for _ in y.shape]
    for a, b in [*zip(xc, yc), *zip(xb, yb)]:
        ys[b] = xs[a]
    out = (
        [xs[d] for d in xb]
        + [s for d, s in enumerate(xs) if d not in (*xc, *xb)]
        + [s for d, s in enumerate(ys) if d not in (*yc, *yb)]
    )
    product = np.einsum(f"{''.join(xs)},{''.join(ys)}->{''.join(out)}", x, y)
    return convert_element_type_p.reference(product, new_dtype=dt, weak_type=False, sharding=None)


def _dot_jvp(primals: Sequence[Value], tangents: Sequence[Value], **params: Any) -> tuple[Value, Value]:
    (x, y), (tx, ty) = primals, tangents
    out = dot_general_p.bind(x, y, **params)
    if dtypes.is_int(get_aval(out).dtype) or type(tx) is Zero and type(ty) is Zero:
        return out, Zero(tangent_aval(get_aval(out)))
    terms = []
    if type(tx) is not Zero:
        terms.append(dot_general_p.bind(tx, y, **params))
    if type(ty) is not Zero:
        terms.append(dot_general_p.bind(x, ty, **params))
    return out, terms[0] if len(terms) == 1 else add_any(*terms)


def _dot_transpose(ct: Value, x: Value, y: Value, *, dimension_numbers: Any, **params: Any) -> list[Value | None]:
    (xc, yc), (xb, yb) = dimension_numbers
    if is_linear_arg(x):
        return [_transpose_lhs(ct, x.aval, y, (xc, yc), (xb, yb), False, params), None]
    return [None, _transpose_lhs(ct, y.aval, x, (yc, xc), (yb, xb), True, params)]


def _transpose_lhs(
    ct: Value, x: Value, y: Value, contracting: Any, batching: Any, swapped: bool, params: Params
) -> Value:
    """The cotangent of the operand with aval `x`: ct times the other operand over the other's free axes, put in
    order.
    """
    (xc, yc), (xb, yb) = contracting, batching
    rank_y = len(shape_of(y))
    x_free = [d for d in range(len(x.shape)) if d not in (*xc, *xb)]
    y_free = [d for d in range(rank_y) if d not in (*yc, *yb)]
    nb = len(xb)
    # where ct has the free axes of y
    ct_y = range(nb, nb + len(y_free)) if swapped else range(nb + len(x_free), nb + len(x_free) + len(y_free))
    dims = ((tuple(ct_y), tuple(y_free)), (tuple(range(nb)), tuple(yb)))
    # the result's axes: batch, the free axes of x, then the axes of y contracted with x, in y's order
    order_y = sorted(range(len(yc)), key=lambda i: yc[i])
    have = [*xb, *x_free, *[xc[i] for i in order_y]]
    placed = cotangent_placed(x)
    if placed is not None:
        placed = placed.update(spec=placed.spec.update(partitions=[placed.spec[i] for i in have]))
    elif any(placed_of(get_aval(v)) is not None for v in (ct, y)):
        mesh = next(p.mesh for v in (ct, y) if (p := placed_of(get_aval(v))) is not None)
        placed = NamedSharding(mesh, P(*[None] * len(have)))
    out = dot_general(ct, y, dims, precision=params["precision"], preferred_element_type=x.dtype, out_sharding=placed)
    return transpose(out, tuple(sorted(range(len(have)), key=have.__getitem__)))


def _dot_batch(
    axis: Axis, args: Sequence[Value], dims: Dims, *, dimension_numbers: Any, **params: Any
) -> tuple[Value, Any]:
    (x, y), (dx, dy) = args, dims
    (xc, yc), (xb, yb) = dimension_numbers
    nb = len(xb)

    def shift(ds: Sequence[int], dim: int | None) -> tuple[int, ...]:
        return tuple(d + (dim is not None and d >= dim) for d in ds)

    def batched(params: Params, at: int) -> Params:
        if params["out_sharding"] is None:
            return params
        v, d = (x, dx) if dx is not None else (y, dy)
        return dict(params, out_sharding=batched_sharding(params["out_sharding"], v, d, at))

    if dx is not None and dy is not None:
        new = ((shift(xc, dx), shift(yc, dy)), ((dx, *shift(xb, dx)), (dy, *shift(yb, dy))))
        return dot_general_p.bind(x, y, dimension_numbers=new, **batched(params, 0)), 0
    new = ((shift(xc, dx), shift(yc, dy)), (shift(xb, dx), shift(yb, dy)))
    if dx is not None:
        free = [d for d in range(len(shape_of(x))) if d not in (*new[0][0], *new[1][0])]
        at = nb + free.index(dx)
    else:
        x_free = len(shape_of(x)) - len(xc) - nb
        free = [d for d in range(len(shape_of(y))) if d not in (*new[0][1], *new[1][1])]
        at = nb + x_free + free.index(dy)
    return dot_general_p.bind(x, y, dimension_numbers=new, **batched(params, at)), at


def _dot_shard(params: Params, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Parts]:
    """Batch axes are divided alike, free axes as in the factor; axes that are summed may be divided in one factor."""
    (xc, yc), (xb, yb) = params["dimension_numbers"]
    x, y = (parts_of(a) for a in ins)
    lead = merged("dot_general", ins, [tuple([p[i] for i in axes]) for p, axes in ((x, xb), (y, yb))])
    if any(x[i] is not None and y[j] is not None for i, j in zip(xc, yc)):
        refuse(
            "dot_general", ins, "axes that are summed are divided in both, which leaves the result's division open", SAY
        )
    free = lambda p, used: [q for i, q in enumerate(p) if i not in used]
    return [checked("dot_general", ins, [*lead, *free(x, (*xc, *xb)), *free(y, (*yc, *yb))], SAY)]


def _shown(params: Params) -> list[tuple[str, object]]:
    lists = lambda pair: (list(pair[0]), list(pair[1]))
    contracted, batched = params["dimension_numbers"]
    params = {k: v for k, v in params.items() if k != "out_sharding"}  # the result's type says it
    return sorted(dict(params, dimension_numbers=str((lists(contracted), lists(batched)))).items())


dot_general_p.shown = _shown
dot_general_p.abstract, dot_general_p.reference, dot_general_p.jvp = dot_abstract, _dot_reference, _dot_jvp
dot_general_p.transpose, dot_general_p.batch = _dot_transpose, _dot_batch
dot_general_p.shard, dot_general_p.linear_in_sums = _dot_shard, BILINEAR


def dot_general(
    x: Value,
    y: Value,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: ElementType | None = None,
    out_sharding: NamedSharding | None = None,
) -> Value:
    """Contracts `x` and `y`: batch axes first, then the free axes of `x`, then those of `y`."""
    (xc, yc), (xb, yb) = dimension_numbers
    numbers = ((tuple(map(int, xc)), tuple(map(int, yc))), (tuple(map(int, xb)), tuple(map(int, yb))))
    if preferred_element_type is not None:
        preferred_element_type = dtypes.canonicalize(preferred_element_type)
    return dot_general_p.bind(
        x,
        y,
        dimension_numbers=numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )
