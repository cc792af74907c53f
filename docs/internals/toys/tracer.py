"""A tracer: run a function on values that write down what is done to them."""

from collections import namedtuple
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count

import numpy as np


class Primitive:
    def __init__(self, compute):
        self.name, self.compute, self.shape = compute.__name__, compute, np.broadcast_shapes

    def __call__(self, *args, **params):
        return current.get().process(self, args, params)


class Eval:  # the trace below all others: computes at once
    process = staticmethod(lambda primitive, args, params: primitive.compute(*args, **params))


current = ContextVar("trace", default=Eval)


@contextmanager
def tracing(trace):
    token = current.set(trace)
    try:
        yield trace
    finally:
        current.reset(token)


class Tracer:  # a value that stands for an array
    __array_ufunc__ = None  # so that NumPy leaves `array * tracer` to us
    __add__ = __radd__ = lambda self, other: add(self, other)
    __mul__ = __rmul__ = lambda self, other: mul(self, other)


class Var(Tracer):  # the name of a value in a program
    def __init__(self, trace, shape):
        self.trace, self.shape, self.name = trace, shape, f"v{next(trace.numbers)}"


Jaxpr = namedtuple("Jaxpr", "inputs equations out")  # an equation: (its result, primitive, operands, parameters)


class Record:  # computes nothing: writes down an equation, and names its result
    def __init__(self):
        self.equations, self.numbers = [], count(1)

    def process(self, primitive, args, params):
        out = Var(self, primitive.shape(*map(np.shape, args), **params))
        self.equations.append((out, primitive, args, params))
        return out


def make_jaxpr(f, *args):
    with tracing(Record()) as trace:
        inputs = [Var(trace, np.shape(x)) for x in args]
        return Jaxpr(inputs, trace.equations, f(*inputs))


def evaluate(jaxpr, *args):
    values = dict(zip(jaxpr.inputs, args))
    read = lambda x: values.get(x, x) if isinstance(x, Var) else x
    for out, primitive, inputs, params in jaxpr.equations:
        values[out] = primitive(*map(read, inputs), **params)
    return read(jaxpr.out)


add, mul, neg, sin, cos = map(Primitive, (np.add, np.multiply, np.negative, np.sin, np.cos))

if __name__ == "__main__":
    for out, primitive, inputs, _ in make_jaxpr(lambda x, y: sin(x * y) + 3.0 * x, 1.0, 2.0).equations:
        print(out.name, "=", primitive.name, *[getattr(x, "name", x) for x in inputs])
