"""composite: a named operation with a decomposition, which a compiler that knows the name may replace by its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from ..base.annotations import Args, Function, Result
from ..core.interpret import interpret
from ..core.carries import Carries, Runs
from ..core.jaxpr import ClosedJaxpr, eval_jaxpr
from ..core.primitive import Primitive, unsupported
from ..core.wire import param_type, stays
from ..core.trace import Tracer, get_aval
from ..base.errors import UnexpectedTracerError
from ..base.host import is_host_array, to_bytes
from ..base.source_info import api_boundary
from ..base.tree import tree_flatten, tree_unflatten
from .common import trace_open

if TYPE_CHECKING:
    from ..core.types import Value

composite_p = Primitive(
    "composite",
    multiple_results=True,
    basic=False,
    wire=stays("it stands for an operation that a compiler knows by name"),
)


@param_type
class Attribute(NamedTuple):
    """A keyword argument of a call: its leaves, and their structure as text. An array is represented by (dtype, shape,
    bytes).
    """

    name: str
    leaves: tuple[Any, ...]
    structure: str


def _run(*args: Value, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
    return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)


composite_p.carries = Carries(Runs.ONCE, {"jaxpr": ("operands",)})
composite_p.abstract = lambda *args, jaxpr, **params: list(jaxpr.out_avals)
composite_p.reference = lambda *args, jaxpr, **params: interpret(jaxpr, args)
composite_p.decompose, composite_p.impl = _run, _run
composite_p.jvp = unsupported(
    "composite {name!r} has no derivative, as it stands for an operation that only its name describes. "
    "Give it one with weft.custom_jvp or weft.custom_vjp around the call.",
    ValueError,
)
composite_p.transpose = unsupported(
    "composite {name!r} can't be transposed, as it stands for an operation that only its name describes. "
    "Give it a transpose with weft.custom_derivatives.linear_call around the call.",
    ValueError,
)
composite_p.batch = unsupported(
    "composite {name!r} can't be batched, as it stands for an operation that only its name describes. "
    "Give it a rule with weft.custom_batching.custom_vmap, or apply it to one element at a time with lax.map."
)


def _frozen(value: Any) -> Any:
    return (str(value.dtype), tuple(value.shape), bytes(to_bytes(value))) if is_host_array(value) else value


@api_boundary
def composite(decomposition: Callable[Args, Result], name: str, version: int = 0) -> Function[Args, Result]:
    """`decomposition` as one operation that programs show by name: a function of arrays (positional) and attributes
    (keywords).

    Args:
        decomposition: function of arrays of any dtype and shape, and of attributes by keyword.
        name: str, with a namespace, such as 'my.double'.
        version: int.

    Returns:
        function of the same arguments and results, of the same dtypes and shapes.

    Raises:
        UnexpectedTracerError: if it closes over traced values; they must be arguments.

    Example:
        >>> import weft
        >>> from weft import lax
        >>> double = lax.composite(lambda x: x * 2, name='my.double')
        >>> float(weft.jit(double)(3.0))
        6.0
    """

    def call(*args: Value, **kwargs: Any) -> Any:
        flat, tree = tree_flatten(args)
        jaxpr, consts, out_tree = trace_open(
            lambda *xs: decomposition(*xs, **kwargs), tree, [get_aval(x) for x in flat], f"the decomposition of {name}"
        )
        if any(isinstance(c, Tracer) for c in consts):
            raise UnexpectedTracerError(
                f"the decomposition of the composite {name!r} closes over a traced value. Give it to the decomposition"
                " as an argument: all that a composite knows besides is fixed when it is compiled."
            )
        attributes = []
        for key, value in kwargs.items():
            leaves, structure = tree_flatten(value)
            attributes.append(Attribute(key, tuple(map(_frozen, leaves)), str(structure)))
        outs = composite_p.bind(
            *consts, *flat, name=name, version=int(version), attributes=tuple(attributes), jaxpr=ClosedJaxpr(jaxpr, [])
        )
        return tree_unflatten(out_tree, outs)

    call.__name__ = getattr(decomposition, "__name__", "composite")
    call.__doc__ = getattr(decomposition, "__doc__", None)
    made: Any = call
    return made
