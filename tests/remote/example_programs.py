"""Programs of every kind that the language has, as jaxprs that a backend would compile."""

from __future__ import annotations

import numpy as np
import weft
import weft.numpy as jnp
from weft import lax
from weft.transforms.portable import portable
from weft.runtime.dispatch import program_for

X = np.arange(12, dtype=np.float32).reshape(3, 4) / 7
W = np.linspace(-1, 1, 20, dtype=np.float32).reshape(4, 5)
TABLE = np.arange(5, dtype=np.float32)  # closed over: a constant


@weft.custom_jvp
def doubled(x):
    return jnp.sin(x) * 2


@doubled.defjvp
def _(primals, tangents):
    return doubled(*primals), jnp.cos(primals[0]) * 2 * tangents[0]


@weft.custom_vjp
def clipped(x):
    return jnp.tanh(x) + TABLE[0]


clipped.defvjp(lambda x: (jnp.tanh(x) + TABLE[0], x), lambda x, g: (jnp.clip(g, -1.0, 1.0),))


@weft.jit
def with_constant(x):
    return x[:, :4] * jnp.asarray(TABLE)[:4]


def newton(x):
    return lax.while_loop(lambda c: jnp.all(c[1] < 4), lambda c: ((c[0] + x / c[0]) / 2, c[1] + 1), (x + 1.0, 0))[0]


def layers(x):
    def step(carry, row):
        carry = jnp.tanh(carry * row[:4].sum() + with_constant(x).sum())
        return carry, carry * 2

    return lax.scan(step, x[0], x)


def loss(w, x):
    return jnp.mean(weft.nn.relu(x @ w) ** 2) if hasattr(weft, "nn") else jnp.mean((x @ w) ** 2)


PROGRAMS = {
    "arithmetic": (lambda x: (x + 1) * 2.5 / (x - 0.25), (X,)),
    "integers": (lambda x: (x // 3) ^ (x << 2), (np.arange(-4, 4, dtype=np.int32),)),
    "special literals": (lambda x: (jnp.where(x > 0, jnp.inf, -jnp.inf), jnp.where(x > 0, jnp.nan, -0.0)), (X,)),
    "bfloat16": (lambda x: x.astype(jnp.bfloat16) * 3.140625, (X,)),
    "complex": (lambda x: lax.complex(x, x) * (1 + 2j), (X,)),
    "booleans": (lambda x: jnp.logical_or(x > 1, True), (X,)),
    "no equations": (lambda x: x, (X,)),
    "literal results": (lambda x: (1.0, x, 2), (X,)),
    "nothing": (lambda: (), ()),
    "product": (lambda x, w: x @ w, (X, W)),
    "precise product": (lambda x, w: lax.dot(x, w, precision="highest"), (X, W)),
    "gather": (lambda x: x[jnp.array([2, 0, 1]), 1:], (X,)),
    "gather with fill": (lambda x: x.at[jnp.array([7, 0])].get(mode="fill", fill_value=-1.0), (X,)),
    "scatter": (lambda x: x.at[0].add(1.0).at[jnp.array([1, 2])].set(0.0), (X,)),
    "sort": (lambda x: jnp.sort(x, axis=0), (X,)),
    "reduce": (lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b, (0,)), (X,)),
    "cumsum": (lambda x: jnp.cumsum(x, 1), (X,)),
    "cond": (
        lambda x: lax.cond(x[0, 0] > 0, lambda y: y * with_constant(y), lambda y: y[:, :4] - jnp.asarray(TABLE)[1], x),
        (X,),
    ),
    "switch": (lambda i: lax.switch(i, [lambda: 1.0, lambda: 2.0, lambda: 3.0]), (np.int32(1),)),
    "while": (newton, (X,)),
    "scan": (layers, (X,)),
    "fori": (lambda x: lax.fori_loop(0, 5, lambda i, c: c + i * x, x), (X,)),
    "jit in jit": (lambda x: with_constant(x) + with_constant(x + 1), (X,)),
    "custom jvp": (lambda x: doubled(x) + weft.jvp(doubled, (x,), (x,))[1], (X,)),
    "custom vjp": (lambda x: weft.grad(lambda y: clipped(y).sum())(x) + clipped(x), (X,)),
    "checkpoint": (
        lambda x: weft.grad(
            lambda y: weft.checkpoint(lambda z: jnp.sin(jnp.sin(z)), policy=lambda *a, **k: False)(y).sum()
        )(x),
        (X,),
    ),
    "gradient": (lambda w, x: weft.value_and_grad(loss)(w, x), (W, X)),
    "gradient of scan": (lambda x: weft.grad(lambda y: layers(y)[0].sum())(x), (X,)),
    "vmap": (lambda x: weft.vmap(lambda r: jnp.dot(r, r))(x), (X,)),
    "hessian": (lambda x: weft.hessian(lambda y: jnp.sum(jnp.tanh(y) ** 3))(x), (X[0],)),
    "random": (lambda k: weft.random.normal(k, (3,)), (np.array([0, 1], np.uint32),)),
    "random keys": (lambda s: weft.random.uniform(weft.random.split(weft.random.key(s))[0], (2, 2)), (np.uint32(3),)),
}


def traced(name: str):
    """(closed jaxpr, arguments) of a program."""
    fun, args = PROGRAMS[name]
    return weft.make_jaxpr(fun)(*args), args


def written(name: str):
    """(portable jaxpr, its leading constants, arguments) of a program."""
    closed, args = traced(name)
    jaxpr, consts = program_for(closed)
    opened, inner = portable(jaxpr)
    return opened, [*inner, *consts], args
