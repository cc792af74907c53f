"""Reverse mode: forward mode whose linear part is recorded, and the record run backwards."""

from collections import namedtuple

from jvp import jvp
from tracer import Jaxpr, Primitive, Record, Var, add, current, mul, neg, np, sin, tracing

total = Primitive(lambda x: np.sum(x, -1))  # the sum over the last axis; and copies of each number along a new one:
spread = Primitive(lambda x, *, size: np.repeat(np.expand_dims(x, -1), size, -1))
total.name, total.shape, total.jvp = "total", lambda s: s[:-1], [lambda t, x: total(t)]
spread.name, spread.shape, spread.jvp = "spread", lambda s, size: (*s, size), [lambda t, x, size: spread(t, size=size)]
Linear = namedtuple("Linear", "shape")  # stands for an operand of which only the shape is known

# (cotangent of the result, operands) -> cotangent of each operand, None for those that are not linear
add.transpose = lambda ct, x, y: [ct, ct]
mul.transpose = lambda ct, x, y: [mul(ct, y), None] if isinstance(x, Linear) else [None, mul(x, ct)]
neg.transpose = lambda ct, x: [neg(ct)]
total.transpose = lambda ct, x: [spread(ct, size=x.shape[-1])]
spread.transpose = lambda ct, x, size: [total(ct)]


class Partial:  # computes what is known under the parent, records the rest
    def __init__(self, parent):
        self.parent, self.record = parent, Record()

    def process(self, primitive, args, params):
        unknown = any(isinstance(x, Var) and x.trace is self.record for x in args)
        with tracing(self.record if unknown else self.parent):
            return primitive(*args, **params)


def linearize(f, *primals):
    """f(*primals), and a linear program: from tangents of the primals to the tangent of the result."""
    trace = Partial(current.get())
    tangents = [Var(trace.record, np.shape(x)) for x in primals]
    with tracing(trace):
        out, tangent = jvp(f, primals, tangents)
    return out, Jaxpr(tangents, trace.record.equations, tangent)


def transpose(linear, ct):
    """The cotangents of a linear program's inputs, from that of its result."""
    cts, variables = {linear.out: ct}, {*linear.inputs, *[out for out, *_ in linear.equations]}
    for out, primitive, inputs, params in reversed(linear.equations):
        if out in cts:
            operands = [Linear(x.shape) if isinstance(x, Var) and x in variables else x for x in inputs]
            for x, share in zip(inputs, primitive.transpose(cts.pop(out), *operands, **params)):
                if share is not None:
                    cts[x] = add(cts[x], share) if x in cts else share
    return [cts.get(x, 0.0) for x in linear.inputs]


def grad(f):
    return lambda *primals: transpose(linearize(f, *primals)[1], 1.0)


if __name__ == "__main__":
    f, x, y = lambda x, y: total(sin(x * y)), np.array([1.0, 2.0]), np.array([3.0, 4.0])
    for out, primitive, inputs, _ in linearize(f, x, y)[1].equations:
        print(out.name, "=", primitive.name, *[getattr(x, "name", x) for x in inputs])
    print(*grad(f)(x, y))
