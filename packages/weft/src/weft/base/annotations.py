"""Typing names that Python 3.11 lacks, and the type variables of functions that preserve a function's signature."""

from __future__ import annotations

from functools import wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, Callable, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, overload

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method):
        """Marks a method that overrides one of a base class. The type checker refuses the mark if there is no such
        method, and an override without the mark.

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
Result = TypeVar("Result")  # and of its result
_Rest = ParamSpec("_Rest")
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def alias(fun: AnyFunction, name: str) -> AnyFunction:
    """The same function under another name, which it says is its own: messages and pickles name what was called.

    Args:
        fun: A function of Python.
        name: The name of the other.

    Returns:
        function like `fun`.

    Example:
        >>> from weft.base.annotations import alias
        >>> alias(alias, "other").__name__
        'other'
    """
    plain: Any = fun
    other: Any = FunctionType(plain.__code__, plain.__globals__, name, plain.__defaults__, plain.__closure__)
    other.__kwdefaults__, other.__annotations__ = plain.__kwdefaults__, plain.__annotations__
    other.__doc__, other.__module__, other.__qualname__ = plain.__doc__, plain.__module__, name
    other.__dict__.update(plain.__dict__)
    return other


# lists, tuples, dicts, None and registered classes, nested to any depth; every other value is a leaf
PyTree: TypeAlias = object
Tree = TypeVar("Tree")  # a pytree, where the result has the same structure


class Function(Generic[Args, Result]):
    """The type of the functions that transformations return: their parameters and their result. The class has no
    instances.

    `Callable[Args, Result]` would mean the same, but mypy would not infer the type of a transformed lambda in a place
    that takes any value.
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
    """`functools.wraps(fun)`, typed so that a checker believes the declared result of the surrounding function."""
    return wraps(fun)


class Decorator(Protocol):
    """A decorator that leaves a function's signature as it is."""

    def __call__(self, fun: Callable[Args, Result], /) -> Function[Args, Result]: ...


__all__ = ["Args", "Decorator", "Function", "PyTree", "Result", "Tree", "like", "override"]
