"""jit and dispatch: trace once for each type of arguments, compile once for each device, then only run."""

from collections import namedtuple
from functools import cache

from tracer import Eval, Tracer, Var, current, evaluate, make_jaxpr, np, sin, tracing

Device = namedtuple("Device", "name compile")  # compile: a jaxpr -> a function of NumPy arrays


class Array(Tracer):  # a value on a device
    def __init__(self, value, device):
        self.value, self.device, self.shape = value, device, np.shape(value)


def interpreter(jaxpr):
    def run(*values):
        with tracing(Eval):
            return evaluate(jaxpr, *values)

    return run


def compiler(jaxpr):  # to Python: one function without tracers, dictionaries and dispatch
    name = lambda x: x.name if isinstance(x, Var) else repr(x)
    body = [f"    {v.name} = np.{p.name}({', '.join(map(name, inputs))})" for v, p, inputs, _ in jaxpr.equations]
    head = f"def program({', '.join(map(name, jaxpr.inputs))}):"
    exec("\n".join([head, *body, f"    return {name(jaxpr.out)}"]), scope := {"np": np})
    return scope["program"]


SLOW, FAST = Device("slow", interpreter), Device("fast", compiler)


def jit(f):
    traced, compiled = {}, {}

    def call(*args):
        if not isinstance(current.get(), Dispatch):  # called while something is traced: it becomes a part of that
            return f(*args)
        types = tuple(map(np.shape, args))
        if types not in traced:
            traced[types] = make_jaxpr(f, *args)
        device = next((x.device for x in args if isinstance(x, Array)), FAST)  # where the arguments are
        if (types, device) not in compiled:
            compiled[types, device] = device.compile(traced[types])
        return Array(compiled[types, device](*[getattr(x, "value", x) for x in args]), device)

    return call


class Dispatch(Eval):  # outside of jit, an operation is a program of one equation
    operation = staticmethod(cache(lambda primitive: jit(lambda *args: primitive(*args))))

    def process(self, primitive, args, params):
        return self.operation(primitive)(*args)


if __name__ == "__main__":
    with tracing(Dispatch()):
        f = jit(lambda x, y: print("f is traced") or sin(x) * y)
        for x in (1.0, Array(2.0, SLOW), np.ones(3)):
            print((result := f(x, 3.0)).value, "on", result.device.name, "and then", (result + 1.0).value)
