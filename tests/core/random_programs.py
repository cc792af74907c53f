"""Random programs over the whole basis, with control flow inside: functions of a few arrays of every kind, the same for the same seed.

A program is a list of steps; each adds one value to a pool from which later steps take their operands. A step that shrinking leaves out is replaced by a value of the
same type made from its first operand, so that all later steps stay what they were.
"""
from __future__ import annotations

import random
from typing import Callable, Iterator

import numpy as np

import weft
import weft.numpy as jnp
from weft import lax

MOST = 40      # equations of a program, not counting those inside others
FLOATS, INTS = ("float32", "bfloat16", "float16"), ("int32", "uint8", "int8", "uint32", "int16")


class Program:
    """A random function of float32, int32 and bool arrays (`args`), of which the first `num_floats` are differentiable."""

    def __init__(self, seed: int, dropped: frozenset = frozenset(), result: int | None = None, wide: bool = False):
        self.seed, self.dropped, self.result, self.wide = seed, dropped, result, wide      # wide: with complex numbers and those of eight bits and fewer
        rng, values = random.Random(seed), np.random.default_rng(seed)
        self.length = rng.randint(3, 20)
        self.forward = rng.random() < 0.8          # without custom_vjp, which has no forward derivative
        self.reverse = not self.forward or rng.random() < 0.75      # without while loops, which have no reverse derivative
        self.low = rng.random() < 0.25             # with half precision
        shapes = [rng.choice([(3,), (2, 3), (), (4, 2), (1, 3), (2, 2, 2)]) for _ in range(rng.randint(1, 3))]
        self.num_floats = len(shapes)
        ints, bools = rng.choice([(3,), (2, 3), ()]), rng.choice([(3,), (2,), ()])
        self.args = [*[values.normal(size=s).astype(np.float32) for s in shapes], values.integers(-9, 9, size=ints).astype(np.int32), np.asarray(values.random(size=bools) < 0.5)]
        while len(weft.make_jaxpr(self)(*self.args).eqns) > MOST:
            self.length -= 1

    def __call__(self, *args):
        maker = Maker(random.Random(self.seed * 7 + 1), list(map(jnp.asarray, args)), self)
        for i in range(self.length):
            maker.add((i,))
        results = maker.pool[-3:]
        return results if self.result is None else [results[self.result]]

    def replace(self, dropped=None, result=None) -> "Program":
        return Program(self.seed, self.dropped if dropped is None else frozenset(dropped), self.result if result is None else result, self.wide)

    def __repr__(self):
        return f"Program({self.seed}, dropped=frozenset({sorted(self.dropped)}), result={self.result}, wide={self.wide})"


class Maker:
    """Adds random steps to a pool of values."""

    def __init__(self, rng: random.Random, pool: list, program: Program, depth: int = 0):
        self.rng, self.pool, self.program, self.depth = rng, pool, program, depth

    def kind(self, *kinds: str):
        """A value whose dtype is of one of these kinds ("f" is float32 alone)."""
        of_kind = [v for v in self.pool if kind_of(v) in kinds]
        return self.rng.choice(of_kind or [v for v in self.pool if kind_of(v) == "f"])

    def add(self, path: tuple) -> None:
        """One more step. Its random choices are made whether it is dropped or not."""
        step, first = self.pick(path)
        self.pool.append(stand_in(first, weft.eval_shape(step)) if path in self.program.dropped else step())

    def pick(self, path: tuple) -> tuple[Callable, object]:
        rng, chance, n = self.rng, self.rng.random(), self.rng.getrandbits(20)
        x, y, i, b = self.kind("f"), self.kind("f"), self.kind("i"), self.kind("b")
        if self.program.wide and rng.random() < 0.3:
            return (lambda: trim(small(WIDE[n % len(WIDE)](x, fit(y, x), few(whole(i)), n >> 8)))), x
        if chance < 0.22:
            return (lambda: UNARY[n % len(UNARY)](x)), x
        if chance < 0.36:
            return (lambda: small(BINARY[n % len(BINARY)](x, fit(y, x)))), x
        if chance < 0.46:
            j = self.kind("i")
            return (lambda: INTEGER[n % len(INTEGER)](whole(i), fit(whole(j), i))), i
        if chance < 0.52:
            return (lambda: LOGICAL[n % len(LOGICAL)](x, y, i, truth(b))), b
        if chance < 0.59:
            return (lambda: conversion(n, x, i, b, self.program.low)), x
        if chance < 0.80 or self.depth:
            ops = STRUCTURAL if x.shape else SCALAR
            return (lambda: trim(small(ops[n % len(ops)](x, y, whole(i), n >> 8)))), x
        if chance < 0.86:
            return (lambda: trim(small(ALGEBRA[n % len(ALGEBRA)](x, y)))), x
        return self.control(rng.getrandbits(30), n, path, x, y, whole(i))

    def control(self, inner: int, n: int, path: tuple, x, y, i) -> tuple[Callable, object]:
        """A step with functions of its own."""
        def body(*values):
            """A few random steps; the result has the type of the first value."""
            maker = Maker(random.Random(inner), list(values), self.program, self.depth + 1)
            for k in range(1 + inner % 3):
                maker.add((*path, k))
            last = [v for v in maker.pool if kind_of(v) == "f"][-1]
            return small(fit(last, values[0]))
        choices = [*CONTROL, *(FORWARD_ONLY if not self.program.reverse else REVERSE_ONLY if not self.program.forward else BOTH_WAYS)]
        return (lambda: choices[n % len(choices)](body, x, y, i, n >> 8)), x


# values --------------------------------------------------------------------------------------------------------------


def kind_of(v) -> str:
    name = str(v.dtype)
    return "b" if name == "bool" else "f" if name == "float32" else "h" if name in FLOATS else "i"


def whole(v):
    return v if kind_of(v) == "i" else lax.convert_element_type(lax.stop_gradient(v) * 4.0, "int32")


def truth(v):
    return v if kind_of(v) == "b" else v > 0


def small(v):
    """Keeps float values of one size, so that rounding errors stay comparable."""
    return lax.asinh(v) if kind_of(v) == "f" else v


def trim(v):
    return jnp.ravel(v)[:24] if v.size > 40 else v


def fit(v, like):
    """`v` cut or repeated to the shape of `like`."""
    if v.shape == like.shape:
        return v
    flat, size = jnp.ravel(v), int(np.prod(like.shape))
    if flat.shape[0] == 0 or size == 0:
        return jnp.zeros(like.shape, v.dtype)
    return jnp.concatenate([flat] * -(-size // flat.shape[0]))[:size].reshape(like.shape)


def stand_in(v, like):
    """A value of the type of `like`, made of `v`."""
    return fit(v, like).astype(like.dtype)


# steps ---------------------------------------------------------------------------------------------------------------

inside = lambda x: lax.tanh(x) * 0.9       # into (-1, 1)
above = lambda x: x * x + 0.5              # above 0
UNARY = [lax.sin, lax.cos, lax.tanh, lax.logistic, lax.neg, lax.abs, lax.square, lax.erf, lax.erfc, lax.atan, lax.asinh, lax.sign, lambda x: lax.exp(lax.tanh(x)),
         lambda x: lax.sqrt(above(x)), lambda x: lax.log(above(x)), lambda x: lax.integer_pow(x, 3) * 0.1, lambda x: lax.round(x * 3.0) * 0.3 + x,
         lambda x: lax.floor(x * 2.0) + x, lambda x: lax.ceil(x * 2.0) - x, lambda x: lax.log1p(x * x), lambda x: lax.expm1(lax.tanh(x)), lambda x: lax.exp2(lax.tanh(x)),
         lambda x: lax.cbrt(above(x)), lambda x: lax.rsqrt(above(x)), lambda x: lax.asin(inside(x)), lambda x: lax.acos(inside(x)), lambda x: lax.sinh(inside(x)),
         lambda x: lax.cosh(inside(x)), lambda x: lax.acosh(above(x) + 1.0), lambda x: lax.atanh(inside(x)), lambda x: lax.tan(inside(x)), lambda x: lax.erf_inv(inside(x)),
         lambda x: lax.lgamma(above(x)), lambda x: lax.clamp(-1.0, x, 1.0), lambda x: lax.integer_pow(above(x), -2) * 0.1, lambda x: weft.nn.relu(x), lambda x: weft.nn.gelu(x),
         lambda x: weft.nn.softmax(x.reshape(-1)).reshape(x.shape), lambda x: lax.stop_gradient(x) * x, lambda x: jnp.nan_to_num(x)]
BINARY = [lax.add, lax.sub, lax.mul, lax.max, lax.min, lambda x, y: lax.div(x, above(y)), lambda x, y: lax.select(x > y, x * 0.5, y), lambda x, y: lax.pow(above(x), inside(y)),
          lambda x, y: lax.atan2(x, above(y)), lambda x, y: lax.select_n(x > y, x, y), lambda x, y: lax.clamp(jnp.minimum(x, y), x, jnp.maximum(x, y)), lambda x, y: jnp.hypot(x, above(y)),
          lambda x, y: jnp.logaddexp(x, y), lambda x, y: jnp.where(jnp.isfinite(x), x, y), lambda x, y: lax.rem(x, above(y)), lambda x, y: x - y * jnp.floor(x)]
few = lambda i: i & i.dtype.type(7) if hasattr(i.dtype, "type") else i & 7
INTEGER = [lax.add, lax.sub, lax.mul, lax.max, lax.min, lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lambda i, j: same(i, j, lax.div, 1), lambda i, j: same(i, j, lax.rem, 1),
           lambda i, j: same(i, j, lax.shift_left, 0), lambda i, j: same(i, j, lax.shift_right_logical, 0), lambda i, j: same(i, j, lax.shift_right_arithmetic, 0),
           lambda i, j: lax.population_count(i), lambda i, j: lax.clz(i), lambda i, j: lax.bitwise_not(i), lambda i, j: jnp.cumsum(jnp.ravel(i)), lambda i, j: jnp.sort(jnp.ravel(i)),
           lambda i, j: jnp.sum(i), lambda i, j: jnp.argsort(jnp.ravel(i)), lambda i, j: lax.sign(i), lambda i, j: jnp.abs(i), lambda i, j: jnp.dot(jnp.ravel(i), fit(j, jnp.ravel(i)).astype(i.dtype)),
           lambda i, j: jnp.where(i > 3, i, fit(j, i).astype(i.dtype)), lambda i, j: jnp.prod(i), lambda i, j: jnp.floor_divide(i, few(j).astype(i.dtype) + i.dtype.type(1)),
           lambda i, j: lax.bitcast_convert_type(i.astype("int32"), "uint32"), lambda i, j: lax.reduce_xor(i, tuple(range(i.ndim)))]
INTEGER = [(lambda i, j, f=f: f(i, j.astype(i.dtype))) for f in INTEGER]


def same(i, j, op: Callable, least: int):
    """`op` with a small second operand that is at least `least`."""
    return op(i, few(j).astype(i.dtype) + i.dtype.type(least))


LOGICAL = [lambda x, y, i, b: x > fit(y, x), lambda x, y, i, b: lax.bitwise_not(b), lambda x, y, i, b: lax.bitwise_and(b, fit(b[..., None], b)), lambda x, y, i, b: lax.eq(whole(i), fit(whole(i)[..., None], i)),
           lambda x, y, i, b: lax.is_finite(x), lambda x, y, i, b: jnp.any(b), lambda x, y, i, b: jnp.all(b), lambda x, y, i, b: fit(whole(i) >= 0, b) ^ b, lambda x, y, i, b: jnp.isnan(x) | (x < 0.3)]


def conversion(n: int, x, i, b, low: bool):
    """A value of another dtype."""
    dt = INTS[(n >> 4) % len(INTS)]
    ops = [lambda: whole(i).astype("float32") * 0.05, lambda: truth(b).astype("float32") - 0.4, lambda: lax.convert_element_type(jnp.abs(inside(x)) * 50.0, dt), lambda: whole(i).astype(dt),
           lambda: truth(b).astype(dt), lambda: jnp.where(fit(truth(b), x), x, -x), lambda: lax.convert_element_type(x, "bool")]
    if low:
        half = FLOATS[1 + (n >> 4) % 2]
        ops += [lambda: (lax.tanh(x.astype(half)) * 0.5 + 1).astype("float32"), lambda: jnp.sum(x.astype(half)).astype("float32") * 0.2, lambda: lax.reduce_precision(x, 8, 10),
                lambda: lax.max(x.astype(half), x.astype(half) * half_of(half, 0.5)).astype("float32")]
    return ops[n % len(ops)]()


def half_of(name: str, value: float):
    return jnp.asarray(value, name)


SCALAR = [lambda x, y, i, n: lax.broadcast_in_dim(x, (3,), ()) * fit(y, jnp.zeros(3)), lambda x, y, i, n: jnp.stack([x, x * 2.0, x - 1.0]), lambda x, y, i, n: x.reshape(1, 1),
          lambda x, y, i, n: x + jnp.arange(4.0), lambda x, y, i, n: jnp.full((2, 2), x), lambda x, y, i, n: lax.expand_dims(x, (0,))]
_axis = lambda x, n: n % x.ndim
_flat = jnp.ravel
_index = lambda x, i: few(jnp.ravel(i)).astype("int32")[:4]
STRUCTURAL = [
    lambda x, y, i, n: lax.transpose(x, tuple(reversed(range(x.ndim)))), lambda x, y, i, n: lax.rev(x, (_axis(x, n),)), lambda x, y, i, n: _flat(x),
    lambda x, y, i, n: lax.reduce_sum(x, (_axis(x, n),)), lambda x, y, i, n: lax.reduce_max(x, (_axis(x, n),)), lambda x, y, i, n: lax.reduce_min(x, (_axis(x, n),)),
    lambda x, y, i, n: lax.reduce_prod(lax.tanh(x), (_axis(x, n),)), lambda x, y, i, n: lax.cumsum(x, _axis(x, n), bool(n & 8)), lambda x, y, i, n: lax.cumprod(lax.tanh(x), _axis(x, n)),
    lambda x, y, i, n: lax.cummax(x, _axis(x, n), bool(n & 8)), lambda x, y, i, n: lax.cummin(x, _axis(x, n)), lambda x, y, i, n: lax.cumlogsumexp(x, _axis(x, n)),
    lambda x, y, i, n: lax.pad(x, np.float32(0.5), [(1, -1 if x.shape[0] > 1 else 0, n % 2)] + [(0, 1, 0)] * (x.ndim - 1)),
    lambda x, y, i, n: lax.concatenate([x, x * 2.0], _axis(x, n)), lambda x, y, i, n: lax.sort(x, dimension=_axis(x, n)),
    lambda x, y, i, n: lax.sort((x, fit(y, x)), dimension=_axis(x, n), num_keys=1)[1], lambda x, y, i, n: lax.top_k(x, 1)[0], lambda x, y, i, n: x[_index(x, i)],
    lambda x, y, i, n: jnp.take(x, _index(x, i), axis=_axis(x, n), mode=("clip", "fill", "wrap")[n // 8 % 3], fill_value=0.25),
    lambda x, y, i, n: x.at[_index(x, i)].add(0.5), lambda x, y, i, n: x.at[_index(x, i)].mul(0.5), lambda x, y, i, n: x.at[_index(x, i)].max(y.sum() * 0.1),
    lambda x, y, i, n: x.at[_index(x, i)[:1]].set(fit(y, x[:1])), lambda x, y, i, n: x.at[..., 0].min(0.1), lambda x, y, i, n: jnp.dot(_flat(x), fit(y, _flat(x))),
    lambda x, y, i, n: jnp.outer(_flat(x)[:3], _flat(y)[:4]), lambda x, y, i, n: lax.slice_in_dim(x, 0, max(1, x.shape[0] - 1)), lambda x, y, i, n: x[::2], lambda x, y, i, n: x[::-1, ...],
    lambda x, y, i, n: lax.dynamic_slice_in_dim(x, jnp.sum(i.astype("int32")), 1, _axis(x, n)), lambda x, y, i, n: lax.dynamic_index_in_dim(x, jnp.max(i, initial=0).astype("int32"), 0, False),
    lambda x, y, i, n: lax.dynamic_update_slice(x, _flat(y)[:1].reshape((1,) * x.ndim) if y.size else x, (jnp.sum(i.astype("int32")),) + (0,) * (x.ndim - 1)),
    lambda x, y, i, n: jnp.mean(x, axis=_axis(x, n)), lambda x, y, i, n: jnp.var(x, axis=_axis(x, n)), lambda x, y, i, n: jnp.argmax(x, _axis(x, n)).astype("float32") + jnp.sum(x) * 0.1,
    lambda x, y, i, n: lax.expand_dims(x, (0,)) + 1.0, lambda x, y, i, n: jnp.swapaxes(x, 0, -1), lambda x, y, i, n: jnp.tile(x, 2), lambda x, y, i, n: jnp.repeat(x, 2, 0),
    lambda x, y, i, n: jnp.roll(x, n % 3, 0), lambda x, y, i, n: jnp.einsum("i,j->ij", _flat(x)[:3], _flat(y)[:2]), lambda x, y, i, n: jnp.diff(x, axis=_axis(x, n), append=0.5),
    lambda x, y, i, n: jnp.split(jnp.concatenate([x, x + 1.0], 0), 2)[1], lambda x, y, i, n: lax.broadcast_in_dim(x, (2, *x.shape), tuple(range(1, x.ndim + 1))),
    lambda x, y, i, n: jnp.stack([x, fit(y, x)], 0), lambda x, y, i, n: x.reshape(-1, 1), lambda x, y, i, n: weft.nn.logsumexp(x, axis=_axis(x, n)), lambda x, y, i, n: jnp.tril(x if x.ndim > 1 else x[None]),
    lambda x, y, i, n: weft.random.uniform(weft.random.key(n), x.shape) * x, lambda x, y, i, n: x + weft.random.normal(weft.random.fold_in(weft.random.key(3), jnp.sum(i.astype("int32"))), x.shape) * 0.3,
    lambda x, y, i, n: lax.reduce_window(x, -np.inf, lax.max, (2,) + (1,) * (x.ndim - 1), (1,) * x.ndim, "SAME"),
    lambda x, y, i, n: lax.reduce_window(x, 0.0, lax.add, (2,) * x.ndim, (1,) * x.ndim, [(1, 0)] * x.ndim), lambda x, y, i, n: jnp.linalg.norm(x + 3.0)]


def matrix(x, n: int):
    return fit(x, jnp.zeros((n, n)))


def definite(x, n: int = 3):
    a = matrix(lax.tanh(x), n)
    return a @ a.T + 2.0 * jnp.eye(n)


ALGEBRA = [
    lambda x, y: jnp.linalg.eigvalsh(definite(x) + jnp.diag(jnp.array([0.0, 4.0, 9.0]))), lambda x, y: jnp.sum(jnp.abs(jnp.fft.rfft(_flat(x)[:5], 6)) ** 2),
    lambda x, y: jnp.linalg.cholesky(definite(x)), lambda x, y: jnp.linalg.solve(definite(x), fit(y, jnp.zeros((3, 2)))), lambda x, y: jnp.linalg.inv(matrix(inside(x), 2) * 0.5 + 3.0 * jnp.eye(2)),
    lambda x, y: lax.linalg.triangular_solve(definite(x, 2), fit(y, jnp.zeros((2, 3))), left_side=True, lower=True), lambda x, y: jnp.linalg.det(definite(x)),
    lambda x, y: lax.dot_general(fit(x, jnp.zeros((2, 3, 2))), fit(y, jnp.zeros((2, 2, 3))), (((2,), (1,)), ((0,), (0,)))), lambda x, y: fit(x, jnp.zeros((2, 3))) @ fit(y, jnp.zeros((3, 2))),
    lambda x, y: lax.conv_general_dilated(fit(x, jnp.zeros((1, 2, 5))), fit(y, jnp.zeros((3, 2, 2))), (1,), "SAME"),
    lambda x, y: lax.conv_general_dilated(fit(x, jnp.zeros((1, 4, 4, 1))), fit(y, jnp.zeros((2, 2, 1, 2))), (2, 1), [(1, 0), (0, 1)], dimension_numbers=("NHWC", "HWIO", "NHWC")),
    lambda x, y: jnp.convolve(_flat(x)[:5], _flat(y)[:3]),
    lambda x, y: jnp.linalg.qr(matrix(inside(x), 3) + 4.0 * jnp.eye(3))[1]]


z = lax.complex
_parts = lambda w: w.real + 0.5 * w.imag
_row = lambda w: jnp.ravel(w)[:24]
_complex_matrix = lambda x, y: z(matrix(inside(x), 3), matrix(inside(y), 3))
INT_NAMES, FLOAT_NAMES = ("int4", "uint4", "int2", "uint2"), ("float8_e4m3fn", "float8_e5m2", "float8_e3m4", "float8_e4m3fnuz", "float4_e2m1fn")


def narrow_ints(x, i, n: int):
    """Arithmetic of four or two bits on numbers that all dtypes hold."""
    name = INT_NAMES[n % 4]
    a = (i & 7).astype(name)
    b = jnp.roll(jnp.ravel(a), 1).reshape(a.shape)
    ops = [a + b, a * b, a - b, lax.max(a, b), a & b, a ^ b, lax.bitwise_not(a), a // (b | a.dtype.type(1)), jnp.sort(jnp.ravel(a)), jnp.cumsum(jnp.ravel(a)), jnp.where(a > b, a, b)]
    return ops[(n >> 2) % len(ops)].astype("float32") * 0.1 + x.sum() * 0.1


def narrow_floats(x, i, n: int):
    """The same of small floats: whole numbers and halves below 3, on which they agree."""
    name = FLOAT_NAMES[n % 5]
    a = ((i & 3).astype("float32") * 0.5).astype(name)
    b = jnp.roll(jnp.ravel(a), 1).reshape(a.shape)
    ops = [a + b, lax.max(a, b), -a, jnp.sort(jnp.ravel(a)), jnp.where(a > b, a, b), lax.abs(a - b), a * b, jnp.concatenate([jnp.ravel(a), jnp.ravel(b)])[1:], lax.pad(jnp.ravel(a), a.dtype.type(1), [(1, 0, 0)])]
    return ops[(n >> 3) % len(ops)].astype("float32") * 0.1 + x.sum() * 0.1


WIDE = [
    lambda x, y, i, n: _parts(jnp.exp(z(inside(x), y))), lambda x, y, i, n: jnp.abs(z(x, y) * z(y, x)) * 0.5, lambda x, y, i, n: _parts(z(x, y) / z(above(x), y)),
    lambda x, y, i, n: _parts(jnp.sqrt(z(above(x), y))), lambda x, y, i, n: _parts(jnp.log(z(above(x), y))), lambda x, y, i, n: _parts(jnp.sin(z(x, inside(y))) + jnp.conj(z(y, x))),
    lambda x, y, i, n: _parts(jnp.tanh(z(inside(x), inside(y)))), lambda x, y, i, n: _parts(z(above(x), inside(y)) ** 2), lambda x, y, i, n: _parts(jnp.cos(z(inside(x), inside(y)))),
    lambda x, y, i, n: _parts(jnp.fft.fft(_row(z(x, y)))) * 0.3, lambda x, y, i, n: _parts(jnp.fft.ifft(_row(z(x, y)), 5 + n % 7)), lambda x, y, i, n: _parts(jnp.fft.rfft(_row(x), 6 + n % 8)) * 0.3,
    lambda x, y, i, n: jnp.fft.irfft(_row(z(x, y)), 4 + n % 9), lambda x, y, i, n: _parts(jnp.cumsum(_row(z(x, y)))), lambda x, y, i, n: _parts(jnp.sum(z(x, y), axis=0) if x.ndim else z(x, y)),
    lambda x, y, i, n: _parts(jnp.prod(z(inside(x), y * 0.3))), lambda x, y, i, n: _parts(jnp.sort(_row(z(lax.round(lax.stop_gradient(x)), y)))), lambda x, y, i, n: _parts(jnp.dot(_row(z(x, y)), _row(z(y, x)))) * 0.2,
    lambda x, y, i, n: _parts(z(x, y).T[..., ::-1] if x.ndim else z(x, y)), lambda x, y, i, n: _parts(jnp.take(_row(z(x, y)), _index(x, i), mode="clip")),
    lambda x, y, i, n: _parts(_row(z(x, y)).at[_index(x, i)].add(1.0 + 0.5j)), lambda x, y, i, n: _parts(jnp.where(x > y, z(x, y), z(y, 0.0 * x))),
    lambda x, y, i, n: _parts(lax.fori_loop(0, 3, lambda k, c: c * z(inside(x), inside(y)) + 0.5j, z(x, y))), lambda x, y, i, n: _parts(lax.scan(lambda c, v: (c * 0.5 + v, c), z(x, y)[None][0], z(jnp.stack([x, y]), jnp.stack([y, y])))[1]),
    lambda x, y, i, n: _parts(lax.cond(jnp.sum(x) > 0, lambda w: w * 1j, jnp.conj, z(x, y))), lambda x, y, i, n: _parts(jnp.linalg.solve(_complex_matrix(x, y) * 0.3 + 2.0 * jnp.eye(3), z(fit(y, jnp.zeros((3, 2))), fit(x, jnp.zeros((3, 2)))))),
    lambda x, y, i, n: jnp.linalg.eigvalsh((lambda a: a @ a.conj().T + jnp.diag(jnp.array([0.0, 4.0, 9.0])))(_complex_matrix(x, y) * 0.3)), lambda x, y, i, n: _parts(jnp.linalg.det(_complex_matrix(x, y) * 0.3 + 2.0 * jnp.eye(3))),
    lambda x, y, i, n: narrow_ints(x, i, n), lambda x, y, i, n: narrow_floats(x, i, n)]


def _custom_jvp(body, x, y, i, n):
    f = weft.custom_jvp(lambda a, b: body(a, b))
    f.defjvp(lambda primals, tangents: (body(*primals), tangents[0] * 2.0 + fit(tangents[1], primals[0]) * primals[0]))
    return f(x, y)


def _custom_vjp(body, x, y, i, n):
    f = weft.custom_vjp(lambda a, b: body(a, b))
    f.defvjp(lambda a, b: (body(a, b), (a, b)), lambda kept, ct: (ct * lax.cos(kept[0]), kept[1] * jnp.sum(ct)))
    return f(x, y)


CONTROL = [
    lambda body, x, y, i, n: lax.scan(lambda c, v: (body(c, v, i), body(v, c)), x, jnp.stack([y, y * 0.5, y - 1.0]), reverse=bool(n & 1), unroll=1 + (n >> 1) % 2)[n >> 2 & 1],
    lambda body, x, y, i, n: lax.scan(lambda c, k: ((body(c[0], y, k), c[1] + k), None), (x, jnp.int32(0)), jnp.arange(3, dtype="int32"))[0][0],
    lambda body, x, y, i, n: lax.cond(jnp.sum(i) % 2 == 0, lambda a, b: body(a, b), lambda a, b: a * 0.5, x, y), lambda body, x, y, i, n: lax.cond(jnp.sum(y) > 0.1, lambda a: body(a, y), lambda a: lax.sin(a), x),
    lambda body, x, y, i, n: lax.switch(jnp.sum(i.astype("int32")) & 3, [lambda a: body(a, y), lax.cos, lambda a: a + fit(y, a)], x),
    lambda body, x, y, i, n: lax.fori_loop(0, 3, lambda k, c: body(c, y, k) + 0.1 * k.astype("float32"), x), lambda body, x, y, i, n: weft.jit(body)(x, y, i),
    lambda body, x, y, i, n: weft.checkpoint(body)(x, y, i), lambda body, x, y, i, n: weft.vmap(lambda a: body(a, y))(jnp.stack([x, x + 1.0])),
    lambda body, x, y, i, n: weft.vmap(body, in_axes=(0, None), out_axes=n % (x.ndim + 1))(jnp.stack([x, x * 0.5]), y), lambda body, x, y, i, n: lax.map(lambda a: body(a, y), jnp.stack([x, x + 1.0])),
    lambda body, x, y, i, n: lax.associative_scan(lambda a, b: a * 0.5 + b, jnp.stack([x, body(x, y), x * 2.0]), reverse=bool(n & 1))]
_derivative = lambda body, x, y, i, n: weft.jvp(lambda a: body(a, y), (x,), (jnp.ones_like(x),))[1]
BOTH_WAYS = [_custom_jvp, _derivative, lambda body, x, y, i, n: weft.grad(lambda a: jnp.sum(body(a, y)))(x)]
REVERSE_ONLY = [_custom_vjp, lambda body, x, y, i, n: weft.grad(lambda a: jnp.sum(body(a, y)))(x)]
FORWARD_ONLY = [
    _custom_jvp, _derivative,
    lambda body, x, y, i, n: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, body(s[1], y)), (0, x))[1],
    lambda body, x, y, i, n: lax.fori_loop(0, few(jnp.max(i, initial=0)).astype("int32"), lambda k, c: body(c, y, k), x)]


# shrinking -----------------------------------------------------------------------------------------------------------


def steps(program: Program) -> Iterator[tuple]:
    """The places of steps, outer ones first."""
    for i in range(program.length):
        yield (i,)
    for i in range(program.length):
        for k in range(3):
            yield (i, k)


def shrink(program: Program, fails: Callable[[Program], bool]) -> Program:
    """The program with one result and as many steps left out as still fails."""
    def still(smaller: Program) -> bool:
        try:
            return fails(smaller)
        except Exception:
            return False
    for result in range(3):
        if still(program.replace(result=result)):
            program = program.replace(result=result)
            break
    for step in [*reversed(list(steps(program)))]:
        smaller = program.replace(dropped={*program.dropped, step})
        if still(smaller):
            program = smaller
    return program
