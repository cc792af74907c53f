"""Forward mode: each value carries a tangent, and each primitive says what becomes of tangents."""

from functools import reduce

from tracer import Tracer, add, cos, current, mul, neg, np, sin, tracing

# For each operand a function: (its tangent, the operands) -> its share of the tangent of the result.
add.jvp = [lambda t, x, y: t, lambda t, x, y: t]
mul.jvp = [lambda t, x, y: mul(t, y), lambda t, x, y: mul(x, t)]
neg.jvp = [lambda t, x: neg(t)]
sin.jvp = [lambda t, x: mul(t, cos(x))]
cos.jvp = [lambda t, x: mul(t, neg(sin(x)))]


class Dual(Tracer):
    def __init__(self, trace, primal, tangent):
        self.trace, self.primal, self.tangent, self.shape = trace, primal, tangent, np.shape(primal)


class Forward:
    def __init__(self, parent):
        self.parent = parent

    def split(self, x):  # what is not ours is a constant here: it has no tangent
        return (x.primal, x.tangent) if isinstance(x, Dual) and x.trace is self else (x, None)

    def process(self, primitive, args, params):
        primals, tangents = zip(*map(self.split, args))
        with tracing(self.parent):
            out = primitive(*primals, **params)
            shares = [rule(t, *primals, **params) for rule, t in zip(primitive.jvp, tangents) if t is not None]
            return Dual(self, out, reduce(add, shares)) if shares else out


def jvp(f, primals, tangents):
    """f(*primals) and the derivative in the direction of the tangents, which is None if it depends on none of them."""
    trace = Forward(current.get())
    with tracing(trace):
        out = f(*[Dual(trace, x, t) for x, t in zip(primals, tangents)])
    return trace.split(out)


def derivative(f):
    return lambda x: jvp(f, [x], [1.0])[1]


if __name__ == "__main__":
    f = lambda x: sin(x * x)
    print(f(0.5), derivative(f)(0.5), derivative(derivative(f))(0.5))
