"""Programs that differ between platforms: the choice is made when it is known where a program runs, and only the
chosen branch is compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes
from ..base.avals import ShapedArray, shaped
from ..core.carries import Runs
from ..core.jaxpr import ClosedJaxpr, Held, Jaxpr, JaxprEqn, TypedScalar, eval_equations, map_jaxprs
from ..core.memo import inner_jaxprs, memoized, memoized_closed
from ..core.primitive import Primitive, unsupported
from ..core.wire import NOTHING, TEXT, either, many, portable
from ..core.trace import tracing
from ..base.errors import type_error
from ..base.host import np
from .stage import JaxprTrace

if TYPE_CHECKING:
    from ..core.types import Value

# A branch for GPUs is a branch for both kinds.
_KINDS = {"cuda": ("cuda", "gpu"), "rocm": ("rocm", "gpu")}


def index_of(platform: str, platforms: Sequence[Any], branches_of: Sequence[str] = ()) -> int:
    """Which of the branches is for a platform; branches are tuples of names, or None for the default. If neither fits,
    a branch for one of the platforms `branches_of` is taken: WebAssembly runs on a CPU, but can't run everything that a
    branch for CPUs may call, so the default has precedence.
    """
    for i, names in enumerate(platforms):
        if names is not None and any(kind in names for kind in _KINDS.get(platform, (platform,))):
            return i
    if None in platforms:
        return platforms.index(None)
    for i, names in enumerate(platforms):
        if any(kind in names for kind in branches_of):
            return i
    known = ", ".join(name for names in platforms for name in names)
    raise NotImplementedError(
        f"platform_dependent has no branch for the platform {platform!r}, only for {known}, and no default. Give it a"
        " `default` branch."
    )


platform_index_p = Primitive("platform_index", basic=False, wire=portable(platforms=many(either(NOTHING, many(TEXT)))))


def _platform_index_abstract(*, platforms: tuple[Any, ...]) -> ShapedArray:
    if not platforms:
        raise type_error("platform_index takes at least one platform, or a default (None).")
    return shaped((), dtypes.int32)


platform_index_p.abstract = _platform_index_abstract
platform_index_p.batch = lambda axis, args, dims, *, platforms: (platform_index_p.bind(platforms=platforms), None)

platform_index_p.jvp = unsupported("it has no arguments, so no derivative meets it")


@memoized
def depends_on_platform(jaxpr: Jaxpr) -> bool:
    """Whether a program asks which platform it runs on."""
    held = [v.closed.jaxpr for e in jaxpr.eqns for v in e.params.values() if isinstance(v, Held)]
    return any([e.primitive is platform_index_p for e in jaxpr.eqns]) or any(
        map(depends_on_platform, [*inner_jaxprs(jaxpr), *held])
    )


platform_index_p.reference = lambda *, platforms: np.array(index_of("reference", platforms, ("cpu",)), np.int32)


def for_platform(closed: ClosedJaxpr, platform: str, branches_of: tuple[str, ...] = ()) -> ClosedJaxpr:
    """The same program for one platform; it may take branches for other platforms if it has none of its own."""
    if not depends_on_platform(closed.jaxpr):
        return closed
    return _for_platform(closed, platform, branches_of)


@memoized_closed
def _for_platform(closed: ClosedJaxpr, platform: str, branches_of: tuple[str, ...]) -> ClosedJaxpr:
    trace = JaxprTrace("a program")
    args = [trace.new_arg(a) for a in closed.in_avals]
    with tracing(trace):
        outs = _run(closed.jaxpr, closed.consts, args, platform, branches_of)
    return ClosedJaxpr(*trace.finish(outs))


def _run(
    jaxpr: Jaxpr, consts: Sequence[Value], args: Sequence[Value], platform: str, branches_of: tuple[str, ...]
) -> list[Any]:
    chosen = lambda closed: for_platform(closed, platform, branches_of)

    def apply(eqn: JaxprEqn, values: list[Value]) -> Sequence[Any]:
        primitive, params, carries = eqn.primitive, eqn.params, eqn.primitive.carries
        outs: Any
        if primitive is platform_index_p:
            outs = TypedScalar(index_of(platform, params["platforms"], branches_of), shaped((), dtypes.int32))
        elif carries is not None and carries.runs is Runs.CHOSEN and type(values[0]) is TypedScalar:
            branch = carries.chosen(params, values, values[0].val)
            outs = _run(branch.closed.jaxpr, branch.closed.consts, branch.arguments(values), platform, branches_of)
        else:
            given = {
                k: v.holding(chosen(v.closed)) if isinstance(v, Held) else map_jaxprs(v, chosen)
                for k, v in params.items()
            }
            outs = primitive.bind(*values, **given)
        return outs if primitive.multiple_results else [outs]

    return eval_equations(jaxpr, consts, args, apply)
