"""Control flow: a primitive that is given programs. Each of its rules transforms these programs and applies itself."""

from functools import partial

from jvp import derivative, jvp
from tracer import Primitive, evaluate, make_jaxpr, mul, np, sin
from vmap import vmap

select = Primitive(np.where)  # (which, if true, if false)
cond_p = Primitive(lambda which, *args, branches: evaluate(branches[int(which)], *args))  # runs one of the branches
cond_p.name, cond_p.shape = "cond", lambda which, *shapes, branches: branches[0].out.shape


def cond(which, if_true, if_false, x):
    return cond_p(which, x, branches=(make_jaxpr(if_false, x), make_jaxpr(if_true, x)))


def tangent_program(jaxpr):  # (x, t) -> the tangent of the result
    def run(x, t):
        _, tangent = jvp(partial(evaluate, jaxpr), [x], [t])
        return mul(0.0, t) if tangent is None else tangent

    return make_jaxpr(run, *jaxpr.inputs, *jaxpr.inputs)


def cond_batch(values, stacked, branches):
    which, x = values
    axis = 0 if stacked[1] else None
    new = tuple(make_jaxpr(vmap(partial(evaluate, jaxpr), (axis,)), x) for jaxpr in branches)
    if not stacked[0]:
        return cond_p(which, x, branches=new)
    if_false, if_true = [evaluate(jaxpr, x) for jaxpr in new]  # each example wants another branch: both are computed
    return select(which, if_true, if_false)


cond_p.jvp = [None, lambda t, which, x, branches: cond_p(which, x, t, branches=tuple(map(tangent_program, branches)))]
cond_p.batch = cond_batch

if __name__ == "__main__":
    f = lambda which, x: cond(which, sin, lambda x: x * x, x)
    print(f(True, 2.0), f(False, 2.0), derivative(partial(f, False))(2.0))
    print(vmap(f, (0, None))(np.array([True, False]), 2.0))
