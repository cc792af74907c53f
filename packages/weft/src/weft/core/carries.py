"""How a primitive carries jaxprs: one description on the primitive, which all transformations and analyses read.

The operands of an equation fall into groups, in order, and each jaxpr takes those of some groups. A scan is

    Carries(
        Runs.REPEATED,
        groups={"consts": "num_consts", "carry": "num_carry", "rows": REST},
        takes={"jaxpr": ("consts", "carry", "rows")},
        counted=Counted("length", "reverse", "unroll"),
    )

Two groups have a special meaning. The operands of "carry" are replaced by the first results of the last jaxpr in the
next iteration. Those of "rows" are passed element by element along their first axis, and the other results are stacked.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, NamedTuple, Sequence, final

from .jaxpr import ClosedJaxpr, Jaxpr
from .wire import Kind

if TYPE_CHECKING:
    from .types import Params

REST = "rest"  # in place of a count: the operands that no other group counts
CARRY, ROWS = "carry", "rows"


PROGRAM = Kind("a program", lambda v: isinstance(v, ClosedJaxpr))
OPEN_PROGRAM = Kind("a program", lambda v: isinstance(v, Jaxpr))


class Runs(Enum):
    """How an equation runs the jaxprs that it carries."""

    ONCE = "a call: the results of its only jaxpr are the equation's"
    CHOSEN = "one of several, which the first operand picks; it is clamped to those there are"
    REPEATED = "the last one again and again: counted, or for as long as the first one gives true"
    COMBINING = "on pairs of elements, until one is left: it takes two scalars for each operand"
    ON_PARTS = "once on each device, on its parts of the operands"


class Counted(NamedTuple):
    """The parameters of a loop whose iterations are counted."""

    length: str  # how many rows there are
    reverse: str  # whether the last element comes first
    unroll: str  # how many iterations are compiled as one


class Program(NamedTuple):
    """A jaxpr that an equation runs."""

    closed: ClosedJaxpr
    operands: tuple[int, ...]  # which operand each argument is
    rows: int  # how many of the last arguments are elements of their operands

    def arguments(self, operands: Sequence[Any]) -> list[Any]:
        """The operands of an equation that belong to this group."""
        return [operands[i] for i in self.operands]


@final
class Carries:
    """How a primitive carries jaxprs. Parameters are given by name; "jaxprs.solve" is a field of a parameter.

    Args:
        runs: how the jaxprs are run.
        takes: the parameters that hold those jaxprs, or tuples of them, in order -> the groups that they take.
        groups: the groups of operands, in order -> the parameter that counts them, a number, or REST.
        aside: the parameters that hold jaxprs which are not run, such as a transpose.
        each: the parameters that have an entry for each operand where they are tuples -> that of an operand added.
        counted: the parameters of a loop that is counted.
        titles: what messages call the jaxprs of a loop, by parameter.
        extensible: whether it may take more operands and give more results, as nothing but its jaxprs speaks of them.
        callee: of a call that stands for a function of the user's, the parameter that holds its name.
        policy: the parameter that says which values inside are saved for the backward pass.
        on_parts: (*operands, evaluate, **params) runs the jaxpr on all parts at once, by `evaluate(jaxpr, consts,
            *arguments)`.
    """

    def __init__(
        self,
        runs: Runs,
        takes: Mapping[str, tuple[str, ...]],
        groups: Mapping[str, str | int] | None = None,
        *,
        aside: tuple[str, ...] = (),
        each: Mapping[str, Any] | None = None,
        counted: Counted | None = None,
        titles: Mapping[str, str] | None = None,
        extensible: bool = False,
        callee: str | None = None,
        policy: str | None = None,
        on_parts: Callable[..., Any] | None = None,
    ):
        self.runs, self.takes, self.aside = runs, takes, aside
        self.groups: Mapping[str, str | int] = groups or {"operands": REST}
        self.each, self.titles = each or {}, titles or {}
        self.extensible, self.counted, self.callee = extensible, counted, callee
        self.policy, self.on_parts = policy, on_parts
        self.counts = [c for c in self.groups.values() if isinstance(c, str) and c != REST]

    @property
    def has_condition(self) -> bool:
        """Whether it runs for as long as its first jaxpr gives true."""
        return self.runs is Runs.REPEATED and self.counted is None

    def sizes(self, params: Params, operands: int) -> dict[str, int]:
        """How many operands each group has."""
        sizes = {g: c if isinstance(c, int) else 0 if c == REST else get(params, c) for g, c in self.groups.items()}
        rest = operands - sum(sizes.values())
        return {g: rest if self.groups[g] == REST else n for g, n in sizes.items()}

    def split(self, params: Params, operands: Sequence[Any]) -> dict[str, list[Any]]:
        """The operands of each group."""
        found, at = {}, 0
        for group, n in self.sizes(params, len(operands)).items():
            found[group] = list(operands[at : at + n])
            at += n
        return found

    def jaxprs(self, params: Params) -> list[ClosedJaxpr]:
        """The jaxprs that are run. A carried Python function is not a jaxpr yet."""
        found = [_closed(value) for path in self.takes for value in _each(get(params, path))]
        return [closed for closed in found if closed is not None]

    def programs(self, params: Params, operands: int) -> list[Program]:
        """The jaxprs that are run, with their arguments. The jaxprs of folds take no operand directly."""
        if self.runs is Runs.COMBINING:
            return [Program(closed, (), 0) for closed in self.jaxprs(params)]
        found = []
        for path, (taken, rows) in self.places(params, operands).items():
            for value in _each(get(params, path)):
                closed = _closed(value)
                if closed is not None:
                    found.append(Program(closed, taken, rows))
        return found

    def places(self, params: Params, operands: int) -> dict[str, tuple[tuple[int, ...], int]]:
        """By parameter: which operands its jaxprs take, and how many of the last are rows."""
        groups = self.split(params, range(operands))
        return {
            path: (tuple([i for g in taken for i in groups[g]]), len(groups[ROWS]) if ROWS in taken else 0)
            for path, taken in self.takes.items()
        }

    def call(self, params: Params, operands: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]] | None:
        """The callee of a call, and its arguments; None for an equation that is not a call, or that calls a Python
        function.
        """
        if self.runs is not Runs.ONCE:
            return None
        return next(((p.closed, p.arguments(operands)) for p in self.programs(params, len(operands))), None)

    def chosen(self, params: Params, operands: Sequence[Any], index: int) -> Program:
        """The program that an index picks."""
        programs = self.programs(params, len(operands))
        return programs[min(max(index, 0), len(programs) - 1)]

    def with_jaxprs(self, params: Params, jaxprs: Iterable[ClosedJaxpr]) -> Params:
        """The parameters with other jaxprs in the same places; where they are open, these have no constants."""
        new, rest = dict(params), iter(jaxprs)
        for path in self.takes:
            old = get(params, path)
            put(new, path, tuple([_like(o, next(rest)) for o in old]) if _is_row(old) else _like(old, next(rest)))
        return new

    def rebuilt(
        self, params: Params, operands: Sequence[Any], jaxprs: Sequence[ClosedJaxpr]
    ) -> tuple[Params, list[Any]]:
        """An equation's parameters and operands with other jaxprs in the same places; where they are open, their
        constants lead the operands.
        """
        leading: dict[str, list[Any]] = {}
        made, new = [], iter(jaxprs)
        for path, groups in self.takes.items():
            for old in _each(get(params, path)):
                closed = next(new)
                if isinstance(old, Jaxpr) and closed.consts:
                    leading[groups[0]] = closed.consts
                    inner = closed.jaxpr
                    closed = ClosedJaxpr(inner.replace(constvars=[], invars=[*inner.constvars, *inner.invars]))
                made.append(closed)
        return self.insert(self.with_jaxprs(params, made), operands, leading)

    def regrouped(self, params: Params, groups: Mapping[str, Sequence[Any]]) -> Params:
        """The parameters for groups of other sizes."""
        new = dict(params)
        for group, count in self.groups.items():
            if isinstance(count, str) and count != REST:
                put(new, count, len(groups[group]))
        return new

    def insert(
        self, params: Params, operands: Sequence[Any], leading: Mapping[str, Sequence[Any]]
    ) -> tuple[Params, list[Any]]:
        """An equation's parameters and operands where more operands lead some of the groups."""
        grown = lambda groups, more: {g: [*more.get(g, ()), *mine] for g, mine in groups.items()}
        new = self.regrouped(params, grown(self.split(params, operands), leading))
        for key, filling in self.each.items():
            if _is_row(params[key]):
                flags = grown(self.split(params, params[key]), {g: [filling] * len(m) for g, m in leading.items()})
                new[key] = tuple([f for group in flags.values() for f in group])
        return new, [x for group in grown(self.split(params, operands), leading).values() for x in group]


def get(params: Params, path: str) -> Any:
    """A parameter, or a field of a parameter."""
    key, _, field = path.partition(".")
    return getattr(params[key], field) if field else params[key]


def put(params: Params, path: str, value: Any) -> None:
    """Sets a parameter, or a field of a parameter."""
    key, _, field = path.partition(".")
    params[key] = params[key]._replace(**{field: value}) if field else value


def _is_row(value: Any) -> bool:
    return isinstance(value, (tuple, list))


def _each(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else (value,)


def _closed(value: Any) -> ClosedJaxpr | None:
    return ClosedJaxpr(value, []) if isinstance(value, Jaxpr) else value if isinstance(value, ClosedJaxpr) else None


def _like(old: Any, new: ClosedJaxpr) -> Jaxpr | ClosedJaxpr:
    if isinstance(old, ClosedJaxpr):
        return new
    assert not new.consts, "an open jaxpr takes its constants as arguments"
    return new.jaxpr
