"""Along which devices values may differ, as part of their types.

Inside `shard_map(check_vma=True)` an aval's `vma` names the manual axes along which its value may differ from device to
device. A value without them is the same everywhere, and so is its cotangent. Results vary along the axes of the
operands. The exceptions are collectives, which have a rule (`Primitive.vary`), and primitives that carry jaxprs, whose
results have the types of the jaxprs' results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base.avals import AbstractRef, ShapedArray
from ..core.carries import Runs
from ..core.primitive import Primitive, registry
from ..core.trace import axis_env, get_aval

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..core.types import Params, Value

_NOWHERE: frozenset[Any] = frozenset()


def checks_varying_axes() -> bool:
    """Whether types say where values vary: inside a shard_map that checks it."""
    return any([a.checked for a in axis_env()])


def vma_of(aval: AbstractValue) -> frozenset[Any]:
    """The axes along which a value of this type may vary."""
    return aval.vma if isinstance(aval, ShapedArray) else aval.inner.vma if isinstance(aval, AbstractRef) else _NOWHERE


def with_varying_axes(
    primitive: Primitive, params: Params, operands: Sequence[Any], results: Sequence[Any]
) -> list[Any]:
    """The avals of an equation's results with the axes along which they vary."""
    ins = [vma_of(a) for a in operands]
    if primitive.vary is not None:
        places = primitive.vary(params, ins)
    else:
        inside = _inside(primitive, params, operands)
        places = [_NOWHERE.union(*ins)] * len(results) if inside is None else inside
    return [a.update(vma=v) if type(a) is ShapedArray and a.vma != v else a for a, v in zip(results, places)]


def _inside(primitive: Primitive, params: Params, operands: Sequence[Any]) -> list[frozenset[Any]] | None:
    """The axes along which the results of an equation vary, by the types of the jaxprs' results; None if these do not
    determine them.
    """
    carries = primitive.carries
    if carries is None or carries.runs in (Runs.COMBINING, Runs.ON_PARTS):
        return None
    programs = carries.programs(params, len(operands))
    for program in programs:  # a jaxpr speaks of arguments that vary no more than its own
        if any(not vma_of(a) <= vma_of(b) for a, b in zip(program.arguments(operands), program.closed.in_avals)):
            return None
    outs = [list(map(vma_of, p.closed.out_avals)) for p in programs]
    if carries.runs is Runs.CHOSEN:
        return [vma_of(operands[0]).union(*each) for each in zip(*outs)]
    return outs[-1] if outs else None


def sum_over_varying_axes(ct: Value, aval: AbstractValue) -> Value:
    """A cotangent for a value of type `aval`: where the value is the same and its uses are not, their cotangents are
    added up.
    """
    more = vma_of(get_aval(ct)) - vma_of(aval)
    return registry["psum"].bind(ct, axes=tuple(sorted(more, key=str)), axis_index_groups=None)[0] if more else ct
