"""The results that a checkpoint policy saves of a program, at any depth.

A primitive that carries jaxprs has a rule `split_for_remat(eqn, split) -> (verdicts, equations, eqn)`: the equations
that compute its results and return the values saved inside, the verdicts of the policy on the variables that they add,
and the equation that computes the results again from these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, NamedTuple, Sequence

from ..base.avals import AbstractRef, AbstractToken
from ..core.jaxpr import ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, map_jaxprs
from ..core.memo import Memo, inner_jaxprs, memoized
from .inline import without_calls
from .policies import Offloadable, Recompute, Saveable

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..core.primitive import Primitive

MEMORIES = ("device", "pinned_host", "unpinned_host")
_WITH_OUTER_POLICY: Memo[Callable[..., Any], Jaxpr] = Memo()  # by the policy


def verdict(policy: Callable[..., Any], primitive: Primitive, avals: Sequence[Any], params: dict[Any, Any]) -> Any:
    """Saveable, Recompute or an Offloadable."""
    answer = policy(primitive, *avals, **params)
    if isinstance(answer, Offloadable):
        for memory in answer:
            if memory not in MEMORIES:
                raise ValueError(
                    f"a checkpoint policy offloads from {answer.src!r} to {answer.dst!r}; memories are called"
                    f" {', '.join(MEMORIES)}."
                )
    if answer is Saveable or answer is Recompute or isinstance(answer, Offloadable):
        return answer
    if not isinstance(answer, bool):
        raise TypeError(
            "a checkpoint policy answers with a bool, ad_checkpoint.Recompute, ad_checkpoint.Saveable or"
            f" ad_checkpoint.Offloadable(src, dst); for {primitive} it answered {answer!r} of type"
            f" {type(answer).__name__}."
        )
    return Saveable if answer else Recompute


class RematSplit(NamedTuple):
    """A program taken apart: `forward` hands out saved values behind its results, `recompute` computes the results from
    these, behind its arguments.
    """

    forward: ClosedJaxpr
    recompute: ClosedJaxpr
    saved: dict[Any, Any]  # variable of `forward` -> the policy's verdict on it


def equations(
    policy: Callable[..., Any] | None, eqns: Iterable[JaxprEqn]
) -> tuple[list[Any], list[Any], dict[Any, Any]]:
    """The equations of the first computation, those that are computed again, and the saved values, by variable."""
    if policy is None:
        return [*eqns], [*eqns], {}
    split = lambda closed: split_program(policy, closed)
    now, again, saved = [], [], {}
    for eqn in eqns:
        if eqn.primitive.split_for_remat is not None:
            found, first, second = eqn.primitive.split_for_remat(eqn, split)
            second = _shrunk(second)
        # zeros for the values that another branch saves
        elif eqn.primitive.name == "broadcast_in_dim" and type(eqn.invars[0]) is Literal:
            found, first, second = {}, [eqn], eqn
        else:
            answer = verdict(policy, eqn.primitive, [a.aval for a in eqn.invars], eqn.params)
            # a reference changes, so it is made and written again; a token holds no data
            kept = [v for v in eqn.outvars if not isinstance(v.aval, (AbstractRef, AbstractToken))]
            found, first, second = {} if answer is Recompute else dict.fromkeys(kept, answer), [eqn], eqn
        saved.update(found)
        now += first
        if not (second.outvars and all(v in saved for v in second.outvars)):  # prints too
            again.append(second)
    return now, again, {v: answer for v, answer in saved.items() if type(v) is not DropVar}


def _shrunk(eqn: JaxprEqn) -> JaxprEqn:
    """An equation without the parts that none of its results needs."""
    return eqn.primitive.dce([True] * len(eqn.outvars), eqn) or eqn if eqn.primitive.dce is not None else eqn


def split_program(policy: Callable[..., Any], closed: ClosedJaxpr) -> RematSplit:
    closed = without_calls(closed)
    body = closed.jaxpr
    now, again, saved = equations(policy, body.eqns)
    return RematSplit(
        closed.replace(jaxpr=body.replace(eqns=now, outvars=[*body.outvars, *saved])),
        closed.replace(jaxpr=body.replace(eqns=again, invars=[*body.invars, *saved])),
        saved,
    )


def recompute_whole(eqn: JaxprEqn, split: Callable[..., Any]) -> tuple[dict[Any, Any], list[Any], JaxprEqn]:
    """The rule of primitives that are computed again unchanged, whatever the policy says."""
    return {}, [eqn], eqn


# checkpoints inside of checkpoints -----------------------------------------------------------------------------------


def with_outer_policy(policy: Callable[..., Any] | None, jaxpr: Jaxpr) -> Jaxpr:
    """A program whose own checkpoints also return the values that `policy` saves, so that the surrounding checkpoint
    can save them.
    """
    if policy is None or not _has_checkpoints(jaxpr):
        return jaxpr
    known = _WITH_OUTER_POLICY.of(jaxpr)
    if policy not in known:
        known[policy] = jaxpr.replace(eqns=[_with_outer_policy(policy, eqn) for eqn in jaxpr.eqns])
    return known[policy]


def _with_outer_policy(policy: Callable[..., Any], eqn: JaxprEqn) -> JaxprEqn:
    params = {
        k: map_jaxprs(v, lambda closed: closed.replace(jaxpr=with_outer_policy(policy, closed.jaxpr)))
        for k, v in eqn.params.items()
    }
    own = _policy(eqn)
    if own is not None:
        params[own] = _either(policy, params[own])
    return eqn.replace(params=params)


def _policy(eqn: JaxprEqn) -> str | None:
    """Of a checkpoint, the parameter that holds its policy."""
    return None if eqn.primitive.carries is None else eqn.primitive.carries.policy


def _either(outer: Callable[..., Any], inner: Callable[..., Any] | None) -> Callable[..., Any]:
    def policy(prim: Primitive, *avals: AbstractValue, **params: Any) -> Any:
        if verdict(outer, prim, avals, params) is not Recompute:
            return Saveable  # the outer checkpoint decides where to
        return Recompute if inner is None else inner(prim, *avals, **params)

    return policy


@memoized
def _has_checkpoints(jaxpr: Jaxpr) -> bool:
    return any(_policy(e) is not None for e in jaxpr.eqns) or any(map(_has_checkpoints, inner_jaxprs(jaxpr)))
