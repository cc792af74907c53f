"""Makes the functions of a distribution: their arguments become arrays of one float dtype that broadcast, and the
docstring of each follows from its name.
"""

from __future__ import annotations

from functools import update_wrapper
from inspect import signature
from typing import Callable

from ... import numpy as jnp
from ...numpy.util import on_device, promote_inexact, promote_shapes, strong

_TEXTS = {
    "pdf": "The density at x",
    "pmf": "The probability of k",
    "cdf": "The probability of values <= {x}",
    "sf": "The probability of values > {x}",
    "ppf": "The value that `cdf` takes to {x}",
    "isf": "The value that `sf` takes to {x}",
    "entropy": "The entropy",
}


def log1mexp(x):
    """log(1 - exp(x)) of x <= 0."""
    near = x > -0.7
    return jnp.where(near, jnp.log(-jnp.expm1(jnp.where(near, x, -1))), jnp.log1p(-jnp.exp(jnp.where(near, -1, x))))


class Distribution:
    """Decorates the functions of one distribution; `example` has arguments for an example, of a value and the
    parameters without defaults.
    """

    def __init__(self, what: str, *example: float, weak: bool = False):
        # weak: results of Python numbers alone keep their type
        self.what, self.example, self.weak = what, example, weak

    def __call__(self, f: Callable, name: str | None = None) -> Callable:
        bind = signature(f).bind
        home, name = f.__module__.rpartition(".")[2], name or f.__name__
        title = f"{home}.{name}"

        def function(*args, **kwargs):
            bound = bind(*args, **kwargs)
            bound.apply_defaults()
            given = [on_device(x) for x in promote_shapes(title, *promote_inexact(title, *bound.args))]
            return f(*(map(strong, given) if not self.weak and any(x.shape for x in given) else given))

        parameters = signature(f).parameters
        first = next(iter(parameters))
        text = _TEXTS[name.removeprefix("log")].format(x=first)
        text = f"The logarithm of {text[0].lower()}{text[1:]}" if name.startswith("log") else text
        call = f"{title}({', '.join(map(str, self.example[name == 'entropy' :]))})"
        update_wrapper(function, f)
        function.__name__ = function.__qualname__ = name
        takes = "".join(
            [
                f"\n        {n}: array of real numbers that broadcasts with the others"
                f"{'' if p.default is p.empty else f'; {p.default} by default'}."
                for n, p in parameters.items()
            ]
        )
        function.__doc__ = f"""{text}, of {self.what}.

    Arguments promote to one float dtype and broadcast.

    Args:{takes}

    Returns:
        array of floats, the broadcast shape.

    Raises:
        TypeError: for lists, and shapes that do not broadcast.

    Example:
        >>> from weft.scipy.stats import {home}
        >>> y = {call}
    """
        return function

    def exp(self, log: Callable) -> Callable:
        """The exponential of the function `log`."""
        return self._after(jnp.exp, log, log.__name__.removeprefix("log"))

    def log(self, f: Callable) -> Callable:
        """The logarithm of a function."""
        return self._after(jnp.log, f, f"log{f.__name__}")

    def _after(self, outer: Callable, f: Callable, name: str) -> Callable:
        return self(update_wrapper(lambda *args: outer(f(*args)), f), name)
