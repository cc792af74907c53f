"""Dead-code elimination: removes equations whose results are not used, and arguments that only they use."""

from __future__ import annotations

from typing import Sequence

from ..core.jaxpr import Jaxpr, JaxprEqn, Literal
from ..core.memo import memoized


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: Sequence[bool], keep_inputs: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """The jaxpr that computes only the used results: it, and which arguments it still takes.

    Equations with effects are kept. A primitive's `dce` rule (used outputs, eqn) -> (used inputs, new eqn or None)
    shrinks equations that carry jaxprs.
    """
    if isinstance(keep_inputs, bool):
        keep_inputs = (keep_inputs,) * len(jaxpr.invars)
    outvars = [v for v, used in zip(jaxpr.outvars, used_outputs) if used]
    live = {v for v in outvars if type(v) is not Literal}
    eqns: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        used = [v in live for v in eqn.outvars]
        if not any(used) and not eqn.effects:
            continue
        new = eqn if eqn.primitive.dce is None or all(used) else eqn.primitive.dce(used, eqn)
        if new is None:
            continue
        eqns.append(new)
        live.update(a for a in new.invars if type(a) is not Literal)
    eqns.reverse()
    used_inputs = [v in live or keep for v, keep in zip(jaxpr.invars, keep_inputs)]
    constvars = jaxpr.constvars
    return Jaxpr(
        constvars, [v for v, u in zip(jaxpr.invars, used_inputs) if u], outvars, eqns, jaxpr.effects, jaxpr.debug_info
    ), used_inputs


@memoized
def live(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr without the equations that nothing depends on; the same arguments and results."""
    return dce_jaxpr(jaxpr, (True,) * len(jaxpr.outvars), keep_inputs=True)[0]
