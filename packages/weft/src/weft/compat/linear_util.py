"""jax.extend.linear_util: functions with a stack of transformations around them."""

from __future__ import annotations

from functools import partial, wraps
from typing import Any, Callable
from weakref import WeakKeyDictionary

from ..base.annotations import override


class StoreException(Exception):
    """A side result was read before it was stored, or was stored twice."""


class Store:
    """Holds the side result of a call of a transformation."""

    __slots__ = ("_value",)

    def __init__(self):
        self._value: tuple = ()

    def store(self, value) -> None:
        self._value = (value,)

    @property
    def val(self):
        if not self._value:
            raise StoreException("Store empty: the function has not been called yet.")
        return self._value[0]

    def reset(self) -> None:
        self._value = ()

    __call__ = property(lambda self: lambda: self.val)


class WrappedFun:
    """A function `f` called with `params`, inside transformations (generator, static arguments, store), the
    innermost first.
    """

    def __init__(
        self,
        f: Callable,
        transforms: tuple = (),
        params: dict | None = None,
        debug_info: Any = None,
        in_type: Any = None,
    ):
        self.f, self.transforms, self.params, self.debug_info, self.in_type = (
            f,
            transforms,
            dict(params or {}),
            debug_info,
            in_type,
        )

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed function>")

    def wrap(self, apply: Callable, static: tuple, store: Store | None) -> "WrappedFun":
        return WrappedFun(
            self.f, (*self.transforms, (apply, static, store)), self.params, self.debug_info, self.in_type
        )

    def with_debug_info(self, debug_info) -> "WrappedFun":
        return WrappedFun(self.f, self.transforms, self.params, debug_info, self.in_type)

    def call_wrapped(self, *args, **kwargs):
        """The result of the whole stack for these arguments."""
        call = partial(self.f, **self.params)
        for apply, static, store in self.transforms:
            call = partial(apply, call, static, store)
        return call(*args, **kwargs)

    def _key(self):
        return self.f, tuple((a, s) for a, s, _ in self.transforms), tuple(sorted(self.params.items()))

    @override
    def __hash__(self):
        return hash(self._key())

    @override
    def __eq__(self, other):
        return isinstance(other, WrappedFun) and self._key() == other._key()

    @override
    def __repr__(self):
        return f"WrappedFun({self.__name__}, {len(self.transforms)} transformations)"


def wrap_init(f: Callable, params: dict | None = None, *, debug_info=None) -> WrappedFun:
    """A function without transformations."""
    return WrappedFun(f, (), params, debug_info)


class _ByGenerator:
    """A transformation written as a generator: it yields (args, kwargs), is sent the result, and yields its own (and
    a side result).
    """

    __slots__ = ("gen",)

    def __init__(self, gen: Callable):
        self.gen = gen

    def __call__(self, call: Callable, static: tuple, store: Store | None, *args, **kwargs):
        running = self.gen(*static, *args, **kwargs)
        inner_args, inner_kwargs = next(running)
        try:
            inner = call(*inner_args, **inner_kwargs)
        except BaseException as e:
            running.throw(e)  # with statements in the generator end, and the error goes on
            raise
        out = running.send(inner)
        running.close()
        if store is not None:
            out, aux = out
            store.store(aux)
        return out

    @override
    def __eq__(self, other):
        return type(other) is _ByGenerator and self.gen == other.gen

    @override
    def __hash__(self):
        return hash((_ByGenerator, self.gen))


class _ByFunction:
    """A transformation written as a function `(call, [store,] *static, *args)`."""

    __slots__ = ("fun",)

    def __init__(self, fun: Callable):
        self.fun = fun

    def __call__(self, call: Callable, static: tuple, store: Store | None, *args, **kwargs):
        return self.fun(call, *([] if store is None else [store]), *static, *args, **kwargs)

    @override
    def __eq__(self, other):
        return type(other) is _ByFunction and self.fun == other.fun

    @override
    def __hash__(self):
        return hash((_ByFunction, self.fun))


def _decorator(kind: type, has_aux: bool) -> Callable:
    def transformation(gen: Callable) -> Callable:
        @wraps(gen)
        def apply(fun: WrappedFun, *static):
            if not has_aux:
                return fun.wrap(kind(gen), static, None)
            store = Store()
            return fun.wrap(kind(gen), static, store), lambda: store.val

        return apply

    return transformation


transformation = _decorator(_ByGenerator, False)
transformation_with_aux = _decorator(_ByGenerator, True)
transformation2 = _decorator(_ByFunction, False)
transformation_with_aux2 = _decorator(_ByFunction, True)


def cache(call: Callable, *, explain: Callable | None = None) -> Callable:
    """Remembers the results of `call(wrapped_function, *args)` for as long as the function lives."""
    known: WeakKeyDictionary = WeakKeyDictionary()

    @wraps(call)
    def cached(fun: WrappedFun, *args):
        results = known.setdefault(fun.f, {})
        key = (fun, args)
        if key not in results:
            out = call(fun, *args)
            results[key] = out, [s._value if s is not None else None for _, _, s in fun.transforms]
        out, values = results[key]
        for (_, _, store), value in zip(fun.transforms, values):
            if store is not None:
                store._value = value
        return out

    setattr(cached, "cache_clear", known.clear)  # noqa: B010
    return cached


def merge_linear_aux(aux1: Callable, aux2: Callable) -> tuple:
    """(True, the first side result) or (False, the second): whichever is there."""
    try:
        out = True, aux1()
    except StoreException:
        return False, aux2()
    try:
        aux2()
    except StoreException:
        return out
    raise StoreException("both side results are there; one of the two functions should have been called.")
