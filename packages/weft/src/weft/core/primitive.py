"""Primitives: an operation and all its rules, in one object.

Each primitive has five rules, or states why it can't have one (`unsupported`): abstract, reference, jvp, transpose,
batch. A primitive that is linear in some arguments has a transpose; the others are marked `NotLinear`, and tests check
that. The other rules are for primitives that need them. A primitive with `multiple_results` takes and returns lists
where one with a single result has a value.
"""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Collection,
    Concatenate,
    Iterable,
    NoReturn,
    Sequence,
    TypeAlias,
    TypeGuard,
    final,
)

from ..base.annotations import override
from ..base.errors import at_user_line
from ..base.host import has_numpy, np
from .shardings import placed_of, with_shardings
from .trace import current_trace
from .wire import UNDECIDED, Wire

if TYPE_CHECKING:
    from .effects import Effect
    from .shardings import ShardRule
    from .trace import Axis
    from .types import AbstractValue, Dims, ElementType, Params, Shape, Value

# The rules. A primitive's parameters are passed by name, after the arguments written here. Equations (`JaxprEqn`) have
# the type Any here, since their module is above this one.
# abstract(*avals, **params): the type of the result, or an error that names the shapes
AbstractRule: TypeAlias = "Callable[..., AbstractValue | Sequence[AbstractValue]]"
# reference(*arrays, **params): its value, in plain NumPy; the oracle
ReferenceRule: TypeAlias = "Callable[..., Any]"
# jvp(primals, tangents, **params): (result, its tangent); tangents may be `Zero`
JvpRule: TypeAlias = "Callable[Concatenate[Sequence[Value], Sequence[Value], ...], tuple[Any, Any]]"
# transpose(ct, *args, **params): the cotangent of each argument, None for those in which the primitive is not linear;
# the linear arguments are `UndefinedPrimal`
TransposeRule: TypeAlias = "Callable[..., Sequence[Value | None]]"
# batch(axis, args, dims, **params): (result, its batch axis); an entry of dims is an axis, or None for an argument that
# is not batched
BatchRule: TypeAlias = "Callable[Concatenate[Axis, Sequence[Value], Dims, ...], tuple[Any, Any]]"
# partial_eval(trace, args, params): the results if some arguments are unknown; for primitives that carry jaxprs. See
# transforms.linearize, whose `PartialTrace` is above this module
PartialEvalRule: TypeAlias = "Callable[[Any, tuple[Value, ...], Params], Any]"
# decompose(*args, **params): the result in simpler primitives, for backends
DecomposeRule: TypeAlias = "Callable[..., Any]"
# impl(*args, **params): the result, where the eager trace does not compile the primitive
ImplRule: TypeAlias = "Callable[..., Any]"
# with_state(params, size, run): the parameters of an equation whose jaxprs take `size` values of state before their
# arguments and return them before their results. For primitives with rules from users: `run(rule, state or None, args)`
# -> (state, results) runs such a rule; see experimental.checkify
StateRule: TypeAlias = "Callable[[Params, int, Callable[..., Any]], Params]"
# dce(used, eqn): the equation without the unused results, or None if it can be dropped
DceRule: TypeAlias = "Callable[[Sequence[bool], Any], Any]"
# stage(trace, args, params): the results, where staging is more than recording; the trace is a `JaxprTrace` of
# transforms.stage
StageRule: TypeAlias = "Callable[[Any, Sequence[Value], Params], Any]"
# discharge(eqn, values): (results, final value of each reference), see transforms.discharge
DischargeRule: TypeAlias = "Callable[[Any, Sequence[Value]], tuple[Sequence[Value], dict[Any, Value]]]"
# show(eqn, name of an atom, binder of a variable): text, if jaxprs print the equation in a special way
ShowRule: TypeAlias = "Callable[[Any, Callable[[Any], str], Callable[[Any], str]], str]"
# shown(params): (name, value) of the parameters that jaxprs show, where these are not all, by name
ShownRule: TypeAlias = "Callable[[Params], Sequence[tuple[str, object]]]"
# vary(params, vma of each operand): vma of each result, where it is not their union
VaryRule: TypeAlias = "Callable[[Params, Sequence[frozenset[Any]]], Sequence[frozenset[Any]]]"

registry: dict[str, "Primitive"] = {}
RULE_NAMES = ("abstract", "reference", "jvp", "transpose", "batch")


class Unsupported:
    """A rule that can't exist, and why: a text that may name parameters in braces."""

    def __init__(self, why: str, error: type[Exception] = NotImplementedError):
        self.why, self.error = why, error

    def __call__(self, *args: Any, **params: Any) -> NoReturn:
        raise self.error(at_user_line(self.why.format(**params)))


class Missing(Unsupported):
    """The place of a rule that a primitive has not been given."""

    def __init__(self, primitive: str, rule: str):
        super().__init__(f"the primitive {primitive} has no {rule} rule. Give it one: {primitive}_p.{rule} = …")


class NotLinear(Unsupported):
    """In the place of a transpose: no linear program holds the primitive, since its derivative is made of others."""

    def __init__(self, primitive: str):
        super().__init__(
            f"{primitive} is not linear, so it can't be transposed. weft.linear_transpose is for linear functions;"
            " weft.vjp and weft.grad differentiate others."
        )


class AsDecomposed:
    """A reference rule: the primitive computes what its decomposition does. For primitives that carry programs, whose
    inner primitives have reference rules.
    """

    def __init__(self, primitive: Primitive):
        self.primitive = primitive

    def __call__(self, *args: Value, **params: Any) -> Any:
        assert self.primitive.decompose is not None
        out = self.primitive.decompose(*args, **params)
        return list(out) if self.primitive.multiple_results else out


def unsupported(why: str, error: type[Exception] = NotImplementedError) -> Unsupported:
    return Unsupported(why, error)


class Primitive:
    """One operation of the language. A new primitive is added to `registry` under its name, unless it is `foreign`:
    from a library.
    """

    def __init__(
        self,
        name: str,
        *,
        multiple_results: bool = False,
        hidden: tuple[str, ...] = (),
        basic: bool = True,
        foreign: bool = False,
        wire: Wire = UNDECIDED,
    ):
        self.name, self.multiple_results, self.basic, self.foreign = name, multiple_results, basic, foreign
        self.wire = wire  # what a program from outside may contain of it
        self.hidden = hidden  # parameters that jaxprs do not print while they are None or False
        self.abstract: AbstractRule | Unsupported = Missing(name, "abstract")
        self.reference: ReferenceRule | Unsupported = Missing(name, "reference")
        self.jvp: JvpRule | Unsupported = Missing(name, "jvp")
        self.transpose: TransposeRule | Unsupported = Missing(name, "transpose") if foreign else NotLinear(name)
        self.batch: BatchRule | Unsupported = Missing(name, "batch")
        self.carries: Any = None  # how it carries jaxprs, if it does: a `Carries` of core.carries
        self.partial_eval: PartialEvalRule | None = None
        self.dce: DceRule | None = None
        # (eqn, apart) -> ..., what checkpoint policies save inside it, see higher_order.remat_split
        self.split_for_remat: Callable[..., Any] | None = None
        # the parameter that may hold a Python function, which may close over tracers
        self.function_form: str | None = None
        self.with_state: StateRule | None = None
        self.decompose: DecomposeRule | None = None
        self.impl: ImplRule | None = None
        self.stage: StageRule | None = None
        self.effects: Callable[[Params], frozenset[Effect]] | None = None  # for primitives that have some
        self.discharge: DischargeRule | None = None
        self.show: ShowRule | None = None
        self.shown: ShownRule | None = None
        # of a linear function: only its transpose is known, not the function
        self.in_reverse_only = False
        self.makes_reference = False  # transformations always apply their rules to it, whatever its arguments
        # names of mapped axes it communicates over
        self.axis_names: Callable[[Params], Collection[Any]] | None = None
        # the required shardings (of operands, of results), or None for no requirement
        self.asks_shardings: Callable[[Params], tuple[Sequence[Any], Sequence[Any]]] | None = None
        # (name, platforms) where it is a program that runs on these alone
        self.only_on: Callable[[Params], tuple[str, tuple[str, ...]] | None] | None = None
        self.vary: VaryRule | None = None
        # how explicit axes of a mesh divide its results; and whether unreduced operands give unreduced results
        self.shard: ShardRule | None = None
        self.linear_in_sums: bool | str = False
        self.has_typed_results = False  # whether its rule `abstract` says that itself
        # the mapped axes that are in scope in its jaxprs
        self.binds: Callable[[Params], Iterable[Axis]] | None = None
        # (key dtype, *raw args, **params): primitives of random keys, on raw keys
        self.on_raw: Callable[..., Any] | None = None
        # platform, or None for all -> XLA's rule, if it comes with the primitive (weft.compat.mlir)
        self.lowerings: dict[str | None, Any] = {}
        # (avals, params) -> abstract result; None if it depends on anything else
        self.cache: dict[Any, Any] | None = {}
        if foreign:
            return
        if name in registry:
            raise ValueError(f"there is a primitive {name!r} already")
        registry[name] = self

    def add_rules(
        self,
        *,
        reference: ReferenceRule | None = None,
        transpose: TransposeRule | None = None,
        batch: BatchRule | None = None,
        decompose: DecomposeRule | None = None,
        impl: ImplRule | None = None,
        discharge: DischargeRule | None = None,
    ) -> None:
        """Gives the primitive rules that are made in a module above its own.

        Raises:
            ValueError: for a rule that the primitive has already.
        """
        given = {
            "reference": reference,
            "transpose": transpose,
            "batch": batch,
            "decompose": decompose,
            "impl": impl,
            "discharge": discharge,
        }
        for name, rule in given.items():
            if rule is None:
                continue
            if not (getattr(self, name) is None or isinstance(getattr(self, name), (Missing, NotLinear))):
                raise ValueError(f"the primitive {self.name} has a rule {name!r} already")
            setattr(self, name, rule)

    def bind(self, *args: Value, **params: Any) -> Any:
        """Applies the primitive under the current trace."""
        return current_trace().process(self, args, params)

    def get_bind_params(self, params: Params) -> Params:
        """The parameters with which `bind` applies the primitive of an equation again: those of the equation."""
        return dict(params)

    def abstract_eval(self, avals: tuple[AbstractValue, ...], params: Params) -> Any:
        """The aval (or list of avals) of the result; remembered, since programs repeat themselves."""
        cache = self.cache
        if cache is None:
            return self.result_types(avals, params)
        try:
            key = (avals, *exact(params))
            found = cache.get(key)
        except TypeError:  # an unhashable parameter
            return self.result_types(avals, params)
        if found is None:
            found = cache[key] = self.result_types(avals, params)
            if len(cache) > 10_000:
                cache.clear()
        return found

    def result_types(self, avals: tuple[AbstractValue, ...], params: Params) -> Any:
        """The types of the results, with how they are divided along explicit axes of a mesh."""
        out = self.abstract(*avals, **params)
        if self.shard is None and (self.carries is not None or self.has_typed_results):
            return out  # by the types of a jaxpr's results
        if (
            params.get("out_sharding") is None
            and params.get("sharding") is None
            and not any([placed_of(a) is not None for a in avals])
        ):
            return out
        outs: Any = out if self.multiple_results else [out]
        typed = with_shardings(self.name, self.shard, self.linear_in_sums, params, avals, outs)
        return typed if self.multiple_results else typed[0]

    @override
    def __repr__(self) -> str:
        return self.name


_NUMBERS = frozenset((bool, int, float, complex))


def exact(params: Params) -> list[Any]:
    """Parameters as part of a key: their names, since callers pass them in different orders, and their values. Numbers
    that are equal but not identical, such as 0.0 and -0.0, or 1 and True, are kept apart, also inside tuples.
    """
    return [*params, *[v if v is None else _exact(v) for v in params.values()]]


def _exact(v: Any) -> Any:
    kind = type(v)
    if kind is tuple:
        for x in v:
            if type(x) is not int:
                return (kind, *map(_exact, v))
        return v  # most are shapes, and asked for with each operation
    if kind in _NUMBERS or has_numpy and isinstance(v, np.generic):
        return kind, repr(v)
    return (kind, *map(_exact, v)) if isinstance(v, tuple) else v


@final
class Zero:
    """A tangent or cotangent that is known to be zero, and so is never computed with."""

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    @property
    def shape(self) -> Shape:
        return self.aval.shape

    @property
    def dtype(self) -> ElementType:
        return self.aval.dtype

    @override
    def __repr__(self) -> str:
        return f"Zero({self.aval!s})"


@final
class UndefinedPrimal:
    """The place of a linear argument while a program is transposed: only its aval is known."""

    __slots__ = ("aval",)

    def __init__(self, aval: AbstractValue):
        self.aval = aval

    @override
    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval!s})"


def is_undefined_primal(x: object) -> TypeGuard[UndefinedPrimal]:
    """Whether `x` is the operand of a linear operation that transposition looks for.

    Args:
        x: an operand in a transpose rule: an `UndefinedPrimal`, or a value of any shape and dtype.

    Returns:
        bool

    Example:
        >>> from weft.experimental import hijax
        >>> hijax.is_undefined_primal(1.0)
        False
    """
    return type(x) is UndefinedPrimal
