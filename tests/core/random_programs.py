"""Random programs over the basis, with control flow inside: functions of a few float arrays, the same for the same seed."""
from __future__ import annotations

import random
from typing import Callable

import numpy as np

import weft
import weft.numpy as jnp
from weft import lax


class Program:
    """A random function. `steps` are picked from `seed`; shrinking drops steps by number."""

    def __init__(self, seed: int, length: int = 12, dropped: frozenset = frozenset(), reverse: bool = True):
        self.seed, self.length, self.dropped, self.reverse = seed, length, dropped, reverse
        rng = random.Random(seed)
        shapes = [(3,), (2, 3), (), (4, 2)]
        self.shapes = [rng.choice(shapes) for _ in range(rng.randint(1, 3))]
        values = np.random.default_rng(seed)
        self.args = [values.normal(size=s).astype(np.float32) for s in self.shapes]

    def __call__(self, *args):
        rng = random.Random(self.seed * 7 + 1)
        pool = list(args)
        for i in range(self.length):
            step = pick(rng, pool, self.reverse, depth=0)
            if i not in self.dropped:
                pool.append(step())
        return pool[-3:]

    def __repr__(self):
        return f"Program(seed={self.seed}, length={self.length}, dropped={sorted(self.dropped)}, reverse={self.reverse})"


UNARY = [lax.sin, lax.cos, lax.tanh, lambda x: lax.exp(lax.tanh(x)), lax.logistic, lax.neg, lax.abs, lax.square, lambda x: lax.sqrt(x * x + 1.0),
         lambda x: lax.log(x * x + 0.5), lax.erf, lambda x: lax.integer_pow(x, 3) * 0.1, lambda x: lax.round(x * 3.0) * 0.3 + x, lax.log1p and (lambda x: lax.log1p(x * x)),
         lambda x: lax.convert_element_type(lax.convert_element_type(x * 4.0, "int32"), "float32") * 0.25 + x, lambda x: lax.clamp(-1.0, x, 1.0)]
BINARY = [lax.add, lax.sub, lax.mul, lax.max, lax.min, lambda x, y: lax.div(x, y * y + 1.0), lambda x, y: lax.select(x > y, x * 0.5, y)]


def pick(rng: random.Random, pool: list, reverse: bool, depth: int) -> Callable:
    """One more step over the values of `pool`. All random choices are made here, so a step can be left out without changing the others."""
    x, y, kind, n = rng.choice(pool), rng.choice(pool), rng.random(), rng.randint(0, 1 << 20)
    small = lambda v: v * (1.0 / (1.0 + jnp.max(jnp.abs(lax.stop_gradient(v)))))      # keeps numbers of one size
    if kind < 0.3:
        op = UNARY[n % len(UNARY)]
        return lambda: op(x)
    if kind < 0.5:
        op = BINARY[n % len(BINARY)]
        return lambda: small(op(*_same_shape(x, y)))
    if kind < 0.75 or depth:
        return lambda: small(_structural(n, x, y))
    sub = random.Random(n)
    inner = sub.getrandbits(30)

    def body(*values):
        """A few random steps; the result has the shape of the first value."""
        r, values = random.Random(inner), list(values)
        for _ in range(3):
            values.append(pick(r, values, reverse, depth + 1)())
        return small(_fit(values[-1], values[0]))
    choice = n % (6 if reverse else 7)
    if choice == 0:
        return lambda: lax.scan(lambda c, v: (body(c, v), body(v, c)), x, jnp.stack([y, y * 0.5, y - 1.0]), reverse=bool(n & 8))[n >> 5 & 1]
    if choice == 1:
        return lambda: lax.cond(jnp.sum(y) > 0.1, lambda a, b: body(a, b), lambda a, b: a * 0.5, x, y)
    if choice == 2:
        return lambda: lax.fori_loop(0, 3, lambda i, c: body(c, y) + 0.1 * i.astype(jnp.float32), x)
    if choice == 3:
        return lambda: weft.jit(body)(x, y)
    if choice == 4:
        return lambda: weft.checkpoint(body)(x, y)
    if choice == 5:
        return lambda: weft.vmap(lambda a: body(a, y))(jnp.stack([x, x + 1.0]))
    return lambda: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, body(s[1], y)), (0, x))[1]


def _same_shape(x, y):
    return (x, _fit(y, x))


def _fit(v, like):
    """`v` cut, repeated or summed to the shape of `like`."""
    if v.shape == like.shape:
        return v
    flat = jnp.ravel(v)
    size = max(1, int(np.prod(like.shape)))
    if flat.shape[0] == 0:
        return jnp.zeros(like.shape, v.dtype)
    repeats = -(-size // flat.shape[0])
    return jnp.concatenate([flat] * repeats)[:size].reshape(like.shape)


def _structural(n: int, x, y):
    if not x.shape:
        return lax.broadcast_in_dim(x, (3,), ()) * _fit(y, jnp.zeros(3))
    rank, axis = x.ndim, (n >> 4) % x.ndim
    ops = [
        lambda: lax.transpose(x, tuple(reversed(range(rank)))), lambda: lax.rev(x, (axis,)), lambda: jnp.ravel(x), lambda: lax.reduce_sum(x, (axis,)),
        lambda: lax.reduce_max(x, (axis,)), lambda: lax.cumsum(x, axis), lambda: lax.pad(x, np.float32(0.5), [(1, -1 if x.shape[0] > 1 else 0, 1)] + [(0, 1, 0)] * (rank - 1)),
        lambda: lax.concatenate([x, x * 2.0], axis), lambda: lax.sort(x, dimension=axis), lambda: x[jnp.array([0, -1, 5])], lambda: x.at[jnp.array([0, 0])].add(0.5),
        lambda: jnp.dot(jnp.ravel(x), _fit(y, jnp.ravel(x))), lambda: jnp.outer(jnp.ravel(x)[:3], jnp.ravel(y)[:4]), lambda: lax.slice_in_dim(x, 0, max(1, x.shape[0] - 1)),
        lambda: lax.dynamic_slice_in_dim(x, lax.convert_element_type(lax.stop_gradient(jnp.sum(y)), "int32"), 1, axis), lambda: jnp.where(x > 0, x, _fit(y, x) * 0.1),
        lambda: jnp.mean(x, axis=axis), lambda: jnp.argmax(x, axis).astype(jnp.float32) + jnp.sum(x) * 0.1, lambda: jnp.cumprod(jnp.tanh(x), axis),
        lambda: lax.dynamic_update_slice(x, jnp.ravel(x)[:1].reshape((1,) * rank), (1,) + (0,) * (rank - 1)), lambda: lax.expand_dims(x, (0,)) + 1.0]
    return ops[n % len(ops)]()


def shrink(program: Program, fails: Callable[[Program], bool]) -> Program:
    """The program with as many steps left out as still fails."""
    dropped = set(program.dropped)
    for i in reversed(range(program.length)):
        smaller = Program(program.seed, program.length, frozenset({*dropped, i}), program.reverse)
        try:
            still = fails(smaller)
        except Exception:      # a later step may have lost its operand's shape
            still = False
        if still:
            dropped.add(i)
    return Program(program.seed, program.length, frozenset(dropped), program.reverse)
