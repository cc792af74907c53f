"""A kernel compiler: elementwise operations and sums over one index space become one loop, in WebAssembly."""

import math

from reverse import total
from tracer import make_jaxpr, np, sin
from wasmtime import Func, FuncType, Instance, Module, Store, ValType

CODE = {"add": "f32.add", "multiply": "f32.mul", "negative": "f32.neg", "sin": "call $sin"}
INDEX = "(i32.shl (local.get $i) (i32.const 2))"  # in bytes: a number has 4
LOOP = """(local.set $i (i32.const 0))
    (loop ${k} {body}
      (br_if ${k} (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {end}))))"""
MODULE = """(module (import "host" "sin" (func $sin (param f32) (result f32))) (memory (export "memory") 1)
  (func (export "main") (local $i i32) {locals}
    {code}))"""


def lower(jaxpr):
    """WebAssembly text. The inputs, vectors of n numbers, lie one behind the other in memory; the result follows."""
    made = {out: (primitive, inputs) for out, primitive, inputs, _ in jaxpr.equations}
    sums = [x for x, (primitive, _) in made.items() if primitive is total]
    (n,) = jaxpr.inputs[0].shape
    place = {x: 4 * n * k for k, x in enumerate([*jaxpr.inputs, jaxpr.out])}

    def element(x):  # the code for x at index $i; what is not in memory is computed where it is wanted
        if x in jaxpr.inputs:
            return f"(f32.load offset={place[x]} {INDEX})"
        if x in sums:
            return f"(local.get ${x.name})"
        return f"({CODE[made[x][0].name]} {' '.join(map(element, made[x][1]))})" if x in made else f"(f32.const {x})"

    def turn(x):  # the number of the loop that can compute x: it follows those of the sums that x needs
        return max(map(turn, made[x][1])) + (x in sums) if x in made else 0

    loops = [[] for _ in range(turn(jaxpr.out) + 1)]  # the last stores the result: once, if that is a scalar
    for x in sums:
        loops[turn(x) - 1].append(f"(local.set ${x.name} (f32.add {element(x)} {element(made[x][1][0])}))")
    loops[-1].append(f"(f32.store offset={place[jaxpr.out]} {INDEX} {element(jaxpr.out)})")
    ends = [n] * turn(jaxpr.out) + [math.prod(jaxpr.out.shape)]
    code = [LOOP.format(k=k, body=" ".join(body), end=end) for k, (body, end) in enumerate(zip(loops, ends))]
    return MODULE.format(locals=" ".join(f"(local ${x.name} f32)" for x in sums), code="\n    ".join(code))


def run(f, *arrays):
    jaxpr, store = make_jaxpr(f, *arrays), Store()
    function = Func(store, FuncType([ValType.f32()], [ValType.f32()]), math.sin)
    exports = Instance(store, Module(store.engine, lower(jaxpr)), [function]).exports(store)
    data = np.concatenate(arrays, dtype=np.float32)
    exports["memory"].write(store, data.tobytes(), 0)
    exports["main"](store)
    shape = jaxpr.out.shape
    raw = exports["memory"].read(store, data.nbytes, data.nbytes + 4 * math.prod(shape))
    return np.frombuffer(raw, np.float32).reshape(shape)


if __name__ == "__main__":
    f = lambda x, y: x * total(sin(x) * y)
    print(lower(make_jaxpr(f, np.ones(3), np.ones(3))))
    print(run(f, np.arange(3.0), np.ones(3)))
