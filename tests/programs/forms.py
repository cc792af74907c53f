"""Forms of a program: its derivatives and its batched form, one after the other, and the numbers that they are
called with.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

import weft

from .tree import Argument, Program
from .types import DIFFERENTIABLE, Type, real_of

Function = Callable[..., list]


@dataclass(frozen=True)
class Form:
    """A function and how its arguments are drawn."""

    call: Function
    args: tuple[Argument, ...]

    def draw(self, seed: int) -> list[np.ndarray]:
        """Arguments; an argument that is passed twice is one array."""
        rng = np.random.default_rng(seed)
        out: list[np.ndarray] = []
        for a in self.args:
            out.append(draw(a, rng) if a.same_as is None else out[a.same_as])
        return out


def form_of(program: Program, log: list | None = None) -> Form:
    """The program in its form. log: where functions of the host keep what they have seen."""
    function = program.function(log)
    form = Form(lambda *xs: list(function(*xs)), program.args)
    for k, name in enumerate(program.form):
        form = TRANSFORMATIONS[name](form, random.Random(program.seed * 5 + k))
    return form


def inexact(values: list) -> list[int]:
    """Which of some arrays have derivatives."""
    return [k for k, v in enumerate(values) if Type(str(v.dtype), ()).kind in DIFFERENTIABLE]


def divided(form: Form, xs: tuple) -> tuple[Callable, list]:
    """The function of the inexact arguments alone, with the other results beside, and these arguments."""
    places = [k for k, a in enumerate(form.args) if a.type.kind in DIFFERENTIABLE]

    def call(*given: Any) -> tuple[list, list]:
        whole = list(xs)
        for k, v in zip(places, given):
            whole[k] = v
        results = form.call(*whole)
        floats = inexact(results)
        return [results[k] for k in floats], [v for k, v in enumerate(results) if k not in floats]

    return call, [xs[k] for k in places]


def jvp(form: Form, rng: random.Random) -> Form:
    n = len(form.args)
    tangents = [Argument(a.type) for a in form.args if a.type.kind in DIFFERENTIABLE]

    def call(*xs: Any) -> list:
        fun, primals = divided(form, xs[:n])
        out, slopes, rest = weft.jvp(fun, tuple(primals), tuple(xs[n:]), has_aux=True)
        return [*out, *slopes, *rest]

    return Form(call, (*form.args, *tangents))


def vjp(form: Form, rng: random.Random) -> Form:
    n = len(form.args)
    like = [weft.ShapeDtypeStruct(a.type.shape, dtype_of(a.type.dtype)) for a in form.args]
    outs = weft.eval_shape(lambda *xs: divided(form, xs)[0](*divided(form, xs)[1])[0], *like)
    cotangents = [Argument(Type(str(o.dtype), o.shape)) for o in outs]

    def call(*xs: Any) -> list:
        fun, primals = divided(form, xs[:n])
        out, back, rest = weft.vjp(fun, *primals, has_aux=True)
        return [*out, *back(list(xs[n:])), *rest]

    return Form(call, (*form.args, *cotangents))


def vmap(form: Form, rng: random.Random) -> Form:
    size = rng.choice((1, 2, 2, 3, 3, 0)) if rng.random() < 0.3 else 2
    axes: list[int | None] = []
    for k, a in enumerate(form.args):
        axes.append(
            axes[a.same_as]
            if a.same_as is not None
            else None
            if k and rng.random() < 0.35 or a.type.rank > 6
            else rng.randint(0, a.type.rank)
        )
    if all(a is None for a in axes):
        axes = [0 if 0 in (k, a.same_as) else None for k, a in enumerate(form.args)]
    grown = [
        a if d is None else replace(a, type=a.type.shaped(*a.type.shape[:d], size, *a.type.shape[d:]))
        for a, d in zip(form.args, axes)
    ]
    return Form(weft.vmap(form.call, in_axes=tuple(axes), axis_size=size), tuple(grown))


TRANSFORMATIONS: dict[str, Callable[[Form, random.Random], Form]] = {"jvp": jvp, "vjp": vjp, "vmap": vmap}


# numbers --------------------------------------------------------------------------------------------------------------


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def draw(a: Argument, rng: np.random.Generator) -> np.ndarray:
    """Numbers for one argument, laid out as it says."""
    shape, axis = a.type.shape, a.type.rank - 1
    if axis < 0 or a.layout == "plain":
        return numbers(a, shape, rng)
    if a.layout == "strided":
        return numbers(a, (*shape[:-1], 2 * shape[-1]), rng)[..., ::2]
    if a.layout == "reversed":
        return numbers(a, shape, rng)[::-1]
    if a.layout == "transposed":
        return numbers(a, shape[::-1], rng).T
    return np.broadcast_to(numbers(a, (1, *shape[1:]), rng), shape)


SPECIAL = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e30, -1e-30, 2.5, 1e4)


def numbers(a: Argument, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    kind, dtype = a.type.kind, dtype_of(a.type.dtype)
    if kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if kind == "c":
        part = replace(a, type=Type(real_of(a.type.dtype), a.type.shape))
        return np.asarray(numbers(part, shape, rng) + 1j * numbers(part, shape, rng)).astype(dtype)
    if kind in "iu":
        info = np.iinfo(dtype)
        if a.numbers == "special":
            return np.asarray(rng.integers(info.min, info.max, shape, dtype, endpoint=True))
        return np.asarray(rng.integers(-9 if kind == "i" else 0, 10, shape)).astype(dtype)
    if kind == "q":
        info = ml_dtypes.iinfo(dtype)
        return np.asarray(rng.integers(info.min, info.max, shape, endpoint=True)).astype(dtype)
    if kind == "s":
        return np.asarray(rng.integers(-4, 5, shape) * 0.5).astype(dtype)
    if a.numbers == "whole":
        return np.asarray(rng.integers(-16, 17, shape) / 4).astype(dtype)
    values = np.clip(rng.normal(size=shape), -4, 4)
    if a.numbers == "special":
        values = np.where(rng.random(shape) < 0.4, rng.choice(SPECIAL, shape), values)
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(dtype)
