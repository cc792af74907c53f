"""einsum: Einstein summation, as a sequence of dot_general, diagonals, sums and transposes."""

from __future__ import annotations

import importlib
import itertools
import math
import operator
from functools import cache
from typing import TYPE_CHECKING, Any, Callable, Sequence

from ..base import dtypes
from ..core.trace import get_aval
from ..base.errors import at_user_line
from ..lax.dots import PrecisionLike, canonical_precision
from ..primitives import dot as dot_ops
from ..primitives import elementwise as el
from ..primitives import linear
from ..primitives.rules import dtype_of, shape_of
from ..primitives.shape import iota
from ..symbolic.dims import is_constant_shape
from ..typing import Array, ArrayLike, DTypeLike, OutSharding
from .util import asked_dtype, laid_out, on_device, only, operand, promote

if TYPE_CHECKING:
    from ..base.avals import Size
    from ..core.types import Value

__all__ = ["einsum", "einsum_path"]


def _labels(spec: str, what: str) -> list[str]:
    """The letters of one operand; '...' stays one entry."""
    spec = spec.replace(" ", "")
    head, dots, tail = spec.partition("...")
    if "." in head or "." in tail:
        raise ValueError(f"einsum: {what} {spec!r} is malformed: dots come in one group of three.")
    if set(head + tail) & set("->"):
        raise ValueError(f"einsum: {what} {spec!r} is malformed: '->' comes once, between operands and result.")
    return [*head, *(["..."] if dots else []), *tail]


def parse(subscripts: str, shapes: Sequence[tuple[Any, ...]]) -> tuple[list[list[str]], list[str]]:
    """The labels of each operand and of the result, ellipses replaced by numbered labels."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = [_labels(t, "term") for t in left.split(",")]
    if len(terms) != len(shapes):
        raise ValueError(f"einsum: {subscripts!r} names {len(terms)} operands, but {len(shapes)} were given.")
    dots = 0
    for term, shape in zip(terms, shapes):
        named = sum(t != "..." for t in term)
        if "..." in term:
            if len(shape) < named:
                raise ValueError(
                    f"einsum: term {''.join(term)!r} names more axes than an operand of shape {shape} has."
                )
            dots = max(dots, len(shape) - named)
        elif len(shape) != named:
            raise ValueError(f"einsum: term {''.join(term)!r} does not fit an operand of shape {shape}.")
    broadcast = [f"...{i}" for i in range(dots)]
    for k, (term, shape) in enumerate(zip(terms, shapes)):
        if "..." in term:
            at, count = term.index("..."), len(shape) - len(term) + 1
            terms[k] = [*term[:at], *broadcast[dots - count :], *term[at + 1 :]]
    flat = list(itertools.chain(*terms))
    if arrow:
        out = _labels(right, "result")
        if "..." in out:
            at = out.index("...")
            out = [*out[:at], *broadcast, *out[at + 1 :]]
        if len(set(out)) != len(out):
            raise ValueError(f"einsum: result {right!r} names an axis twice.")
        missing = [c for c in out if c not in flat]
        if missing:
            raise ValueError(f"einsum: result label {missing[0]!r} does not appear in any operand.")
    else:
        out = broadcast + sorted(c for c in set(flat) if flat.count(c) == 1 and c not in broadcast)
    return terms, out


def _sizes(terms: list[list[str]], shapes: Sequence[tuple[Size, ...]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for k, (term, shape) in enumerate(zip(terms, shapes)):
        for label, n in zip(term, shape):
            known = sizes.get(label, 1)
            if known != 1 and n not in (1, known):
                raise ValueError(
                    at_user_line(
                        f"Size of label '{label}' for operand {k} ({n}) does not match previous terms ({known}). Use"
                        " one label for axes of one size only."
                    )
                )
            sizes[label] = (known if n == 1 else n) if 0 not in (known, n) else 0
    return sizes


def _diagonal(x: Value, labels: list[str]) -> tuple[Value, Value]:
    """`x` with every repeated label reduced to the diagonal."""
    for label in sorted(set(labels)):
        while labels.count(label) > 1:
            i = labels.index(label)
            j = labels.index(label, i + 1)
            shape = shape_of(x)
            mask = el.eq(iota(dtypes.int32, shape, i), iota(dtypes.int32, shape, j))
            x = linear.reduce_sum(el.select_n_p.bind(mask, linear.full(shape, 0, dtype_of(x)), x), (j,))
            labels = labels[:j] + labels[j + 1 :]
    return x, labels


def _sum_out(x: Value, labels: list[str], keep: set[str]) -> tuple[Value, list[str]]:
    gone = tuple(d for d, c in enumerate(labels) if c not in keep)
    return (linear.reduce_sum(x, gone), [c for c in labels if c in keep]) if gone else (x, labels)


def _squeeze_ones(x: Value, labels: list[str], sizes: dict[str, int]) -> tuple[Any, list[Any]]:
    """`x` without axes of size 1 that broadcast against a wider one."""
    ones = tuple(d for d, c in enumerate(labels) if shape_of(x)[d] == 1 and sizes[c] != 1)
    return linear.squeeze(x, ones), [c for d, c in enumerate(labels) if d not in ones]


def _pair(
    x: Value, xl: list[str], y: Value, yl: list[str], keep: set[str], dot: Callable[..., Any]
) -> tuple[Any, list[Any]]:
    """The product of two operands, summed over the labels that occur nowhere else."""
    x, xl = _sum_out(x, xl, keep | set(yl))
    y, yl = _sum_out(y, yl, keep | set(xl))
    both = [c for c in xl if c in yl]
    contract = [c for c in both if c not in keep]
    batch = [c for c in both if c in keep]
    numbers = (
        (tuple(xl.index(c) for c in contract), tuple(yl.index(c) for c in contract)),
        (tuple(xl.index(c) for c in batch), tuple(yl.index(c) for c in batch)),
    )
    return dot(x, y, numbers), [*batch, *[c for c in xl if c not in both], *[c for c in yl if c not in both]]


def _greedy(terms: list[list[str]], out: list[str], sizes: dict[str, int]) -> tuple[int, int]:
    """The pair whose product is smallest compared to its operands."""

    def cost(i: int, j: int) -> tuple[Value, Value, Value]:
        rest = set(out).union(*(t for k, t in enumerate(terms) if k not in (i, j)))
        size = lambda labels: math.prod(sizes[c] for c in labels)
        return size((set(terms[i]) | set(terms[j])) & rest) - size(terms[i]) - size(terms[j]), i, j

    pairs = [(i, j) for i in range(len(terms)) for j in range(i + 1, len(terms))]
    return pairs[0] if not is_constant_shape(sizes.values()) else min(cost(i, j) for i, j in pairs)[1:]


_OPTIMIZERS = (
    "auto",
    "auto-hq",
    "branch-1",
    "branch-2",
    "branch-all",
    "dp",
    "dynamic-programming",
    "eager",
    "greedy",
    "opportunistic",
    "optimal",
    "random-greedy",
    "random-greedy-128",
)


@cache
def _opt_einsum() -> Any:
    """The package opt_einsum, where it is installed."""
    try:
        return importlib.import_module("opt_einsum")
    except ImportError:
        return None


def _path(terms: list[Any], out: list[Any], sizes: dict[Any, Any], optimize: Any) -> list[tuple[Any, ...]]:
    """The positions of the operands that each step contracts. The result of a step is appended to the operands."""
    n = len(terms)
    if not isinstance(optimize, (str, bool)):
        path = [tuple(operator.index(k) for k in step) for step in optimize]
        for step in path:
            if len(step) > 2:
                raise NotImplementedError(
                    f"einsum: the path contracts {len(step)} operands at once; give pairs, such as [(0, 1), (0, 1)]."
                )
            if len(set(step)) != len(step) or any(not 0 <= k < n for k in step):
                raise IndexError(
                    f"einsum: the path {path} names an operand that is not there: step {step} of {n} operands."
                )
            n += 1 - len(step)
        return path + [(0, 1)] * (n - 1)
    if n < 3 or optimize is False or not is_constant_shape(sizes.values()):
        return [(0, 1)] * (n - 1)
    if isinstance(optimize, str) and optimize not in _OPTIMIZERS:
        raise KeyError(f"einsum: no optimizer {optimize!r}; there are {', '.join(_OPTIMIZERS)}.")
    package = _opt_einsum()
    if package is not None:
        symbols = {c: package.get_symbol(k) for k, c in enumerate(sizes)}
        spell = lambda labels: "".join(symbols[c] for c in labels)
        text = ",".join(map(spell, terms)) + "->" + spell(out)
        shapes = [tuple(sizes[c] for c in t) for t in terms]
        return [
            tuple(step)
            for step in package.contract_path(
                text, *shapes, shapes=True, optimize="optimal" if optimize is True else optimize
            )[0]
        ]
    path, terms = [], list(terms)
    while len(terms) > 1:
        i, j = _greedy(terms, out, sizes)
        rest = [t for k, t in enumerate(terms) if k not in (i, j)]
        keep = set(out).union(*rest)
        terms = rest + [[c for c in dict.fromkeys([*terms[i], *terms[j]]) if c in keep]]
        path.append((i, j))
    return path


def _interleaved(given: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """einsum(x, [0, 1], y, [1, 2], [0, 2]) as subscripts."""
    operands = list(given)
    result = operands.pop() if len(operands) % 2 else None
    names = sorted({c for labels in [*operands[1::2], result or ()] for c in labels if c is not Ellipsis})
    codes = (*range(ord("a"), ord("z") + 1), *range(ord("A"), ord("Z") + 1), *range(0x4E00, 0x4E00 + len(names)))
    letters = dict(zip(names, map(chr, codes)))
    spell = lambda labels: "".join("..." if c is Ellipsis else letters[c] for c in labels)
    return ",".join(map(spell, operands[1::2])) + ("" if result is None else "->" + spell(result)), tuple(operands[::2])


def einsum(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike | Sequence[Any],
    out: None = None,
    optimize: str | bool | Sequence[tuple[int, ...]] = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Callable[..., Array] | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Sums of products of arrays, as Einstein's notation names them: einsum('ij,jk->ik', a, b) is a matrix product.

    `optimize` chooses the order of contraction: a path as `einsum_path` gives it, False for the order of the operands,
    or the name of a method of opt_einsum, which finds it where it is installed (elsewhere every name means the smallest
    product first).

    Args:
        subscripts: string such as 'ij,jk->ik'; or the first operand, each followed by its list of axes.
        *operands: arrays of numbers, with an axis for each letter.
        out: None, since arrays are immutable.
        optimize: True, False, 'greedy', 'optimal', 'auto', or a path: the order of contraction.
        precision: `lax.Precision` or its name: how exact the products are; None for the default.
        preferred_element_type: dtype of the result; None for that to which the arguments promote.
        out_sharding: sharding of the result over the devices of a mesh; None to leave it open.

    Returns:
        array of the dtype to which the operands promote, with an axis for each letter of the result.

    Raises:
        ValueError: for malformed subscripts, and sizes of one label that differ. KeyError: for the name of a method
            that does not exist.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.einsum('ij,j->i', jnp.ones((2, 3)), jnp.ones(3))
        Array([3., 3.], dtype=float32)
    """
    only("einsum", out=out)
    if out_sharding is not None:
        return laid_out(
            "einsum",
            lambda: einsum(
                subscripts,
                *operands,
                optimize=optimize,
                precision=precision,
                preferred_element_type=preferred_element_type,
                _dot_general=_dot_general,
            ),
            out_sharding,
        )
    if not isinstance(subscripts, str):
        subscripts, operands = _interleaved((subscripts, *operands))
    if not operands:
        raise ValueError("einsum needs at least one operand.")
    xs = [on_device(x) for x in promote("einsum", *[operand("einsum", x) for x in operands])]
    preferred, weak = (
        asked_dtype("einsum", preferred_element_type) or dtype_of(xs[0]),
        preferred_element_type is None and get_aval(xs[0]).weak_type,
    )
    precision = canonical_precision(precision)
    terms, result = parse(subscripts, [shape_of(x) for x in xs])
    sizes = _sizes(terms, [shape_of(x) for x in xs])
    for k in range(len(xs)):
        xs[k], terms[k] = _diagonal(xs[k], list(terms[k]))
        xs[k], terms[k] = _squeeze_ones(xs[k], terms[k], sizes)
    multiply = _dot_general or dot_ops.dot_general
    dot = lambda x, y, numbers: multiply(x, y, numbers, precision=precision, preferred_element_type=preferred)
    for step in _path(terms, result, sizes, optimize):
        rest = [k for k in range(len(xs)) if k not in step]
        keep = set(result).union(*(terms[k] for k in rest))
        if len(step) == 2:
            i, j = sorted(step)
            x, labels = _pair(xs[i], terms[i], xs[j], terms[j], keep, dot)
        else:
            x, labels = _sum_out(xs[step[0]], terms[step[0]], keep)
        xs, terms = [xs[k] for k in rest] + [x], [terms[k] for k in rest] + [labels]
    x, labels = _sum_out(xs[0], terms[0], set(result))
    x = linear.transpose(x, [labels.index(c) for c in result if c in labels])
    missing = tuple(d for d, c in enumerate(result) if c not in labels)
    if missing:
        x = linear.broadcast_in_dim(
            x, tuple(sizes[c] for c in result), tuple(d for d in range(len(result)) if d not in missing)
        )
    return linear.convert(x, preferred, weak)


def einsum_path(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike | Sequence[Any],
    optimize: str | bool | Sequence[tuple[int, ...]] = "auto",
) -> tuple[list[tuple[int, ...]], Any]:
    """The order in which `einsum` contracts its operands: a list of places, and a text about it (what opt_einsum tells,
    where it is installed).

    Args:
        subscripts: string such as 'ij,jk->ik'; or the first operand, each followed by its list of axes.
        *operands: arrays of any dtype, with an axis for each letter.
        optimize: True, False, 'greedy', 'optimal', 'auto', or a path: the order of contraction.

    Returns:
        (path, text): the path is a list of tuples, each int of which is the place of an operand.

    Example:
        >>> import weft.numpy as jnp
        >>> jnp.einsum_path('ij,jk->ik', jnp.ones((2, 3)), jnp.ones((3, 4)))[0]
        [(0, 1)]
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _interleaved((subscripts, *operands))
    shapes = [shape_of(operand("einsum_path", x)) for x in operands]
    terms, result = parse(subscripts, shapes)
    sizes = _sizes(terms, shapes)
    if (
        _opt_einsum() is not None
        and is_constant_shape(sizes.values())
        and (not isinstance(optimize, str) or optimize in _OPTIMIZERS)
    ):
        how = "optimal" if isinstance(optimize, bool) else optimize
        path, told = _opt_einsum().contract_path(subscripts, *shapes, shapes=True, optimize=how)
        return [tuple(step) for step in path], told
    path = _path(terms, result, sizes, optimize) or [(0,)]
    return path, f"{subscripts}: {len(path)} contractions, pairwise, smallest result first"
