"""vmap: a function of one example becomes a function of a stack of examples, without a loop."""

from reverse import grad, spread, total
from tracer import Tracer, add, cos, current, mul, neg, np, sin, tracing


def rank_of_example(x, stacked):
    return len(np.shape(x)) - stacked


def elementwise(primitive):
    def batch(values, stacked):
        rank = max(map(rank_of_example, values, stacked))
        for k, x in enumerate(values):
            while stacked[k] and rank_of_example(x, True) < rank:  # a stack of scalars meets arrays
                x = spread(x, size=1)
            values[k] = x
        return primitive(*values)

    return batch


# (values, which of them are stacks along axis 0, parameters) -> the stack of results
for primitive in (add, mul, neg, sin, cos):
    primitive.batch = elementwise(primitive)
total.batch = lambda values, stacked: total(*values)  # the last axis of an example is the last one of the stack, too
spread.batch = lambda values, stacked, size: spread(*values, size=size)


class Stack(Tracer):  # shows the shape of one example
    def __init__(self, trace, value):
        self.trace, self.value, self.shape = trace, value, np.shape(value)[1:]


class Batch:
    def __init__(self, parent):
        self.parent = parent

    def process(self, primitive, args, params):
        stacked = [isinstance(x, Stack) and x.trace is self for x in args]
        values = [x.value if s else x for x, s in zip(args, stacked)]
        with tracing(self.parent):
            if not any(stacked):
                return primitive(*values, **params)
            return Stack(self, primitive.batch(values, stacked, **params))


def vmap(f, in_axes):  # of each argument: 0 for a stack, None for what all examples share
    def mapped(*args):
        trace = Batch(current.get())
        with tracing(trace):
            out = f(*[x if axis is None else Stack(trace, x) for x, axis in zip(args, in_axes)])
        return out.value if isinstance(out, Stack) and out.trace is trace else out

    return mapped


if __name__ == "__main__":
    gradient = lambda w, x: grad(lambda w: total(sin(w * x)))(w)[0]
    print(vmap(gradient, (None, 0))(np.array([1.0, 2.0]), np.arange(6.0).reshape(3, 2)))
