"""Kernels that run again on other buffers: what lowering makes of equal groups, what passes and the emitter make of
that, and what the verifier refuses.
"""

import re

import numpy as np
import passes
import pytest
import weft
from test_passes import SHAPES, lowered
from weft import numpy as jnp
from weft_wasm.compile import compile_program
from weft_wasm.interpreter import interpret
from weft_wasm.ir import instances
from weft_wasm.ir.nodes import Buffer, Copy, For, Instance, Kernel, Program, Store, Var
from weft_wasm.ir.rewriting import expanded, map_blocks
from weft_wasm.ir.text import describe
from weft_wasm.ir.verify import VerifyError, verify
from weft_wasm.passes.buffers import private_areas
from weft_wasm.passes.pipeline import BEFORE_PLANNING, run_passes

SIMD = frozenset(("simd128", "relaxed-simd"))
F = lambda *shape: np.random.default_rng(3).normal(size=shape).astype(np.float32)


def buffers(*names: str, role: str = "input", size: int = 8) -> list[Buffer]:
    return [Buffer(name, "f32", (size,), role) for name in names]


def double(out: Buffer, x: Buffer, name: str = "double") -> Kernel:
    i = Var("i")
    return Kernel(name, [For(i, x.size, [Store(out, i, x[i] * 2.0)], "parallel")])


def written_out(program: Program) -> Program:
    """The program without instances."""
    body = map_blocks(program.body, lambda block: [expanded(s) if type(s) is Instance else s for s in block])
    return Program(
        program.name,
        program.inputs,
        program.outputs,
        program.temps,
        body,
        program.constants,
        program.donated,
        program.errors,
        program.calls,
    )


def functions(code: bytes) -> list[bytes]:
    """The bodies of a module's functions but for the last, `main`."""
    at = 8

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = code[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(code):
        kind = code[at]
        at += 1
        size = number()
        if kind == 10:
            found = []
            for _ in range(number()):
                length = number()
                found.append(code[at : at + length])
                at += length
            return found[:-1]
        at += size
    raise AssertionError("a module without code")


def unrolled(step, times):
    def run(x, *more):
        for _ in range(times):
            x = step(x, *more)
        return x

    return run


def attend(x, w):
    return weft.nn.softmax(x @ x.T * 0.1) @ x + jnp.sin(x) @ w


def normalise(x, w):
    return weft.nn.relu((x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + 1) @ w + x)


LAYERED = {
    "attention": (unrolled(attend, 3), [F(64, 128), F(128, 128)]),
    "its derivatives": (
        weft.grad(lambda x, w: unrolled(attend, 3)(x, w).sum(), argnums=(0, 1)),
        [F(64, 128), F(128, 128)],
    ),
    "norms": (unrolled(normalise, 4), [F(256, 128), F(128, 128)]),
    "derivatives of norms": (
        weft.grad(lambda x, w: unrolled(normalise, 4)(x, w).sum(), argnums=(0, 1)),
        [F(256, 128), F(128, 128)],
    ),
    "batches": (unrolled(lambda x: weft.nn.softmax(x @ x.transpose(0, 2, 1)) @ x, 3), [F(8, 64, 64)]),
    "updates": (lambda *ps: [p - 0.1 * jnp.sin(p) @ p for p in ps], [F(64, 64)] * 5),
    "a loop around them": (
        lambda x, w: weft.lax.scan(lambda c, _: (unrolled(attend, 2)(c, w), c[0]), x, None, length=3),
        [F(64, 128), F(128, 128)],
    ),
    "layers alike": (SHAPES["layers alike"][0], [F(7, 8), F(8, 8), F(8, 8)]),
    "layers alike in a loop": (SHAPES["layers alike in a loop"][0], [F(8, 8)] * 3),
}


@pytest.mark.parametrize("small", [False, True], ids=["as they are", "sizes of passes small"])
@pytest.mark.parametrize("donated", [False, True], ids=["", "donated"])
@pytest.mark.parametrize("name", LAYERED)
def test_an_instance_is_compiled_as_the_kernel_that_it_is(name, donated, small):
    """The functions of the module are the same, byte by byte, whether equal groups are lowered once or each for
    itself.
    """
    fun, args = LAYERED[name]
    with passes.small_sizes() if small else passes.contextlib.nullcontext():
        given = (donated,) * len(args)
        program = lowered(fun, args, SIMD, given)[0]
        assert any(type(s) is Instance for s in instances.statements(program.body))
        verify(program)
        again = compile_program(program, SIMD)
        alone = compile_program(written_out(program), SIMD)
    assert functions(again.code) == functions(alone.code)
    assert again.metadata == alone.metadata and again.constants == alone.constants


@pytest.mark.parametrize("name", ["layers alike", "layers alike in a loop"])
def test_every_pass_keeps_what_instances_compute(name):
    fun, args = SHAPES[name]
    program, data = lowered(fun, args, SIMD)
    assert any(type(s) is Instance for s in instances.statements(program.body))
    with passes.small_sizes():
        assert passes.check(program, data, most=1e6) == len(BEFORE_PLANNING) + 2


def test_layers_cost_what_one_costs():
    """Each further layer adds instances alone."""
    args = [F(64, 128), F(128, 128)]
    kernels = [
        len(instances.models(run_passes(BEFORE_PLANNING, lowered(unrolled(attend, n), args, SIMD)[0]).body))
        for n in (3, 6)
    ]
    assert kernels[0] == kernels[1]


def test_what_differs_is_lowered_for_itself():
    def count(fun, *args):
        return len([s for s in instances.statements(lowered(fun, args, SIMD)[0].body) if type(s) is Instance])

    x, y = F(40, 30), F(30, 40)
    assert count(lambda x, y: (jnp.sin(x) @ x.T, jnp.sin(y) @ y.T), x, x + 1) > 0
    assert count(lambda x, y: (jnp.sin(x).sum(0), jnp.cos(y).sum(0)), x, x + 1) == 0  # an operation
    assert count(lambda x, y: ((x * 2.0).sum(0), (y * 3.0).sum(0)), x, x + 1) == 0  # a constant
    assert count(lambda x, y: (jnp.sin(x).sum(0), jnp.sin(y).sum(0)), x, y) == 0  # a shape
    assert count(lambda x, y: (jnp.sin(x).sum(0), jnp.sin(y).sum(0)), x, x.astype(np.float16)) == 0  # a dtype
    assert count(lambda x, y: (x.sum(0), y.sum(1)), x, x + 1) == 0  # a parameter
    assert count(lambda x, y: ((x * y).sum(0), (x * x).sum(0)), x, x + 1) == 0  # one buffer twice


def test_text_names_what_stands_in_the_place_of_what():
    (x, y), (out, more) = buffers("x", "y"), buffers("out", "more", role="output")
    kernel = double(out, x)
    program = Program("p", [x, y], [out, more], [], [kernel, Instance("again", kernel, {x: y, out: more})])
    verify(program)
    assert "kernel again = double with y for x, more for out" in describe(program)
    data = [np.arange(8, dtype=np.float32).tobytes(), np.ones(8, np.float32).tobytes()]
    assert [np.frombuffer(b, np.float32)[1] for b in interpret.run(program, data)] == [2, 2]


REFUSED = {
    "a buffer of another size": (lambda x, y, out, more: ({x: buffers("z", size=4)[0]}, None), "can't take the place"),
    "one for two": (lambda x, y, out, more: ({x: y, out: y}, None), "takes the place of two buffers"),
    "one that the kernel uses already": (lambda x, y, out, more: ({x: out}, None), "takes the place of two buffers"),
    "an input that is written": (lambda x, y, out, more: ({out: y}, None), "input"),
    "one that is not listed": (lambda x, y, out, more: ({x: buffers("z")[0]}, None), "not declared"),
    "no kernel of statements": (lambda x, y, out, more: ({}, Kernel("k", [Copy(out, x, 2)])), "not a statement of a k"),
    "kernels in kernels": (lambda x, y, out, more: ({}, Kernel("k", [double(out, x)])), "not a statement of a kernel"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_verifier_refuses(what):
    (x, y), (out, more) = buffers("x", "y"), buffers("out", "more", role="output")
    renamed, kernel = REFUSED[what][0](x, y, out, more)
    program = Program("p", [x, y], [out, more], [], [Instance("again", kernel or double(out, x), renamed)])
    with pytest.raises(VerifyError, match=re.escape(REFUSED[what][1])):
        verify(program)


def test_a_private_buffer_of_two_kernels_keeps_its_place_in_both():
    """The areas of one kernel's private buffers are separate, whatever other kernels use of them."""
    x, y, z = (Buffer(name, "f32", (40,), "private") for name in "xyz")
    (out,) = buffers("out", role="output", size=40)
    body = [double(x, y, "a"), double(out, x, "b"), double(y, z, "c"), double(z, x, "d")]
    offsets, size = private_areas(Program("p", [], [out], [x, y, z], body))
    assert len(set(offsets.values())) == 3 and size >= 3 * 160
