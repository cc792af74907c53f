"""What type checkers know and Python 3.11 lacks, and the variables of signatures that pass a function's own
signature on.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Callable, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, overload

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method):
        """Marks a method that replaces one of a base class. The type checker refuses the mark where there is none, and
        an override without it.

        Args:
            method: The method, or the property that wraps it.

        Returns:
            `method` itself.

        Example:
            >>> from weft.base.annotations import override
            >>> class Shape:
            ...     def area(self): return 0.0
            >>> class Square(Shape):
            ...     @override
            ...     def area(self): return 1.0
            >>> Square().area()
            1.0
        """
        return method


Args = ParamSpec("Args")  # the parameters of a function that a decorator takes,
Result = TypeVar("Result")  # and what it returns
_Rest = ParamSpec("_Rest")

# lists, tuples, dicts, None and registered classes of anything, however deep, and what is none of them: a leaf
PyTree: TypeAlias = object
Tree = TypeVar("Tree")  # a pytree, where the result has the same structure


class Function(Generic[Args, Result]):
    """What a type checker sees of the functions that transformations return: their parameters and result. There are no
    instances.

    `Callable[Args, Result]` would say the same, but mypy does not infer the type of a lambda that is transformed where
    any value may stand.
    """

    __name__: str

    if TYPE_CHECKING:

        def __call__(self, *args: Args.args, **kwargs: Args.kwargs) -> Result: ...
        @overload
        def __get__(self, obj: None, objtype: Any = None) -> Function[Args, Result]: ...
        @overload
        def __get__(
            self: Function[Concatenate[Any, _Rest], Result], obj: object, objtype: Any = None
        ) -> Function[_Rest, Result]: ...
        def __get__(self, obj: object, objtype: Any = None) -> Any: ...


def like(fun: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """`functools.wraps(fun)`, whose result a checker takes for whatever the function around it says that it returns."""
    return wraps(fun)


class Decorator(Protocol):
    """A decorator that leaves a function's signature as it is."""

    def __call__(self, fun: Callable[Args, Result], /) -> Function[Args, Result]: ...


__all__ = ["Args", "Decorator", "Function", "PyTree", "Result", "Tree", "like", "override"]
