"""How much a program computes, by its operations: an estimate that needs no compiler, so a page can make it too."""

from __future__ import annotations

from math import log2, prod
from typing import NamedTuple

from weft.base import dtypes
from weft.base.avals import AbstractValue, ShapedArray
from weft.core.carries import Runs, get
from weft.core.jaxpr import Jaxpr, JaxprEqn
from weft.core.memo import memoized

# how many times the product of a matrix's rows, columns and smaller side an operation takes
_CUBIC = {
    "cholesky": 0.33,
    "eig": 25.0,
    "eigh": 9.0,
    "householder_product": 2.0,
    "lu": 0.67,
    "qr": 2.0,
    "schur": 25.0,
    "svd": 20.0,
    "triangular_solve": 1.0,
}
_MOVES = frozenset(("broadcast_in_dim", "concatenate", "copy", "gather", "pad", "reshape", "rev", "slice", "transpose"))


class Work(NamedTuple):
    """What a program computes, and the bytes that it writes."""

    flops: float = 0.0
    bytes: float = 0.0
    exact: bool = True  # False where values decide how often a part of it runs

    def plus(self, other: Work, times: float = 1.0) -> Work:
        return Work(self.flops + times * other.flops, self.bytes + times * other.bytes, self.exact and other.exact)


@memoized
def work_of(jaxpr: Jaxpr) -> Work:
    """The work of a program. A loop of unknown length counts once."""
    found = Work()
    for eqn in jaxpr.eqns:
        found = found.plus(_of_equation(eqn))
    return found


def _of_equation(eqn: JaxprEqn) -> Work:
    carries = eqn.primitive.carries
    written = float(sum(nbytes(v.aval) for v in eqn.outvars))
    if carries is None:
        return Work(_flops(eqn), written)
    parts = [work_of(closed.jaxpr) for closed in carries.jaxprs(eqn.params)]
    if carries.runs is Runs.CHOSEN:
        return max(parts, default=Work())
    times = 1.0
    if carries.counted is not None:
        times = float(get(eqn.params, carries.counted.length))
    elif carries.runs is Runs.COMBINING:
        times = max([_size(a.aval) for a in eqn.invars], default=1.0)
    found = Work(0.0, written, not carries.has_condition)
    for part in parts:
        found = found.plus(part, times)
    return found


def _flops(eqn: JaxprEqn) -> float:
    name, params = eqn.primitive.name, eqn.params
    out = sum([_size(v.aval) for v in eqn.outvars])
    ins = [_shape(a.aval) for a in eqn.invars]
    if name == "dot_general":
        (contracted, _), _ = params["dimension_numbers"]
        return 2.0 * out * float(prod([ins[0][d] for d in contracted]))
    if name == "conv_general_dilated":
        outputs: int = ins[1][params["dimension_numbers"].rhs_spec[0]]
        return 2.0 * out * prod(ins[1]) / max(outputs, 1)
    largest = max([float(prod(s)) for s in ins], default=0.0)
    if name in _CUBIC and len(ins[0]) >= 2:
        rows, columns = ins[0][-2:]
        right = out if name == "triangular_solve" else 0.0
        return right * columns or _CUBIC[name] * largest * min(rows, columns)
    if name in ("sort", "fft"):
        return 5.0 * largest * log2(max(largest, 2.0))
    return 0.0 if name in _MOVES else max(out, largest)


def _shape(aval: AbstractValue) -> tuple[int, ...]:
    return tuple([n for n in aval.shape]) if isinstance(aval, ShapedArray) else ()


def _size(aval: AbstractValue) -> float:
    return float(prod(_shape(aval)))


def nbytes(aval: AbstractValue) -> int:
    """The bytes of an array; 0 for anything else."""
    return prod(_shape(aval)) * dtypes.itemsize(aval.dtype) if isinstance(aval, ShapedArray) else 0
