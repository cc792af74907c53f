"""Control flow, calls and derivatives on XLA against the reference rules."""

from __future__ import annotations

import numpy as np
import pytest
from platforms import need

need("cpu")
import weft
from conftest_native import compiled, values
from weft.base import dtypes
from weft import lax
from weft.base.avals import shaped
from weft.higher_order.cond import cond, switch
from weft.runtime.jit import inner_jit
from weft.higher_order.while_loop import fori_loop, while_loop
from weft.higher_order.scan import scan
from weft.core.jaxpr import Jaxpr, JaxprEqn, Var
from weft.core.primitive import Primitive, registry
from weft.errors import BackendError
from weft.primitives import elementwise as e, transcendental
from weft.primitives import linear
from weft.transforms.stage import stage

F32 = dtypes.float32


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("unroll", [1, 2, 3, 7, 20])
def test_scan(check, reverse, unroll):
    def f(init, xs):
        return list(
            scan(
                lambda c, x: (e.add(e.mul(c, c), x), (transcendental.sin(c), e.lt(x, c))),
                init,
                xs,
                reverse=reverse,
                unroll=unroll,
            )[1]
        ) + [scan(lambda c, x: (e.add(c, x), None), init, xs, reverse=reverse, unroll=unroll)[0]]

    check(f, np.float32(0.1), values((7,), "float32", low=-0.4, high=0.4))
    check(f, values((3, 2), "float32", low=-0.4, high=0.4), values((7, 3, 2), "float32", low=-0.4, high=0.4))


@pytest.mark.parametrize("unroll,bodies,loops", [(1, 1, 1), (2, 3, 1), (3, 4, 1), (7, 7, 0), (20, 7, 0), (True, 7, 0)])
def test_an_iteration_of_the_loop_does_as_many_steps_as_it_should(backend, unroll, bodies, loops):
    exe, _, _ = compiled(
        backend,
        lambda x: [scan(lambda c, _: (transcendental.sin(c), None), x, None, length=7, unroll=unroll)[0]],
        [shaped((), F32)],
    )
    text = exe.as_text("stablehlo")
    # the steps that are left follow the loop
    assert (text.count("stablehlo.sine"), text.count("stablehlo.while")) == (bodies, loops)


def test_scan_of_nothing(check):
    check(
        lambda x: [
            scan(lambda c, a: (e.add(c, a), a), x, linear.full((0,), 0, F32))[1],
            scan(lambda c, _: (e.neg(c), None), x, None, length=0)[0],
        ],
        np.float32(2),
    )


def test_scan_with_consts_inside_scan(check):
    def f(w, x0, xs):
        def outer(c, x):
            inner = lambda d, y: (e.add(d, e.mul(w, y)), d)
            d, ys = scan(inner, c, x)
            return transcendental.tanh(d), linear.reduce_sum(ys, (0,))

        return list(scan(outer, x0, xs))

    check(f, values((3,), "float32", 1), values((3,), "float32", 2), values((4, 2, 3), "float32", 3))


def test_while_and_fori(check):
    check(
        lambda x: while_loop(
            lambda v: e.lt(v, linear.full((), 100, F32)), lambda v: e.mul(v, linear.full((), 2, F32)), x
        ),
        np.float32(3),
    )
    check(lambda n, x: fori_loop(0, n, lambda i, v: e.add(v, linear.convert(i, F32)), x), np.int32(6), np.float32(1))


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 9])
def test_switch_clamps(check, index):
    check(
        lambda i, x: switch(i, [transcendental.sin, e.neg, lambda v: e.mul(v, v)], x),
        np.int32(index),
        values((3,), "float32"),
    )


@pytest.mark.parametrize("pred", [False, True])
def test_cond(check, pred):
    check(
        lambda p, x, y: list(cond(p, lambda a, b: (e.add(a, b), a), lambda a, b: (e.mul(a, b), b), x, y)),
        np.bool_(pred),
        values((3,), "float32", 1),
        values((3,), "float32", 2),
    )


def test_inner_calls_of_one_function_share_it(backend):
    @inner_jit
    def double(x):
        return e.mul(e.add(x, x), x)

    exe, _, _ = compiled(backend, lambda x: [double(double(x))], [shaped((4,), F32)])
    text = exe.as_text("stablehlo")
    assert text.count("func.func private") == 1 and text.count("call @double") == 2


def test_unknown_primitive_names_itself_and_the_line(backend):
    name = "mystery_of_the_tests"
    primitive = registry.get(name) or Primitive(name)
    primitive.abstract = lambda x: x
    jaxpr, _ = stage(lambda x: [primitive.bind(x)], [shaped((), F32)])
    with pytest.raises(BackendError, match=r"mystery_of_the_tests.*\n.*test_xla_control\.py"):
        backend.compile(jaxpr, backend.devices("cpu")[0])


def test_a_primitive_without_a_rule_is_decomposed(backend, check):
    name = "twice_and_one_of_the_tests"
    primitive = registry.get(name) or Primitive(name, basic=False)
    primitive.abstract = lambda x, *, y: x
    primitive.reference = lambda x, *, y: (2 * x + y).astype(x.dtype)
    primitive.decompose = lambda x, *, y: e.add(e.add(x, x), linear.full((), y, F32))
    check(lambda x: primitive.bind(primitive.bind(x, y=1), y=1), values((3,), "float32"))


def test_random_keys_reach_xla_as_their_words(backend):
    from weft.core.jaxpr import ClosedJaxpr
    from weft.primitives.random_bits import FRY
    from weft.primitives.shape import concatenate, slice_
    from weft.runtime.dispatch import program_for

    keys = stage(lambda k: [slice_(concatenate([k, k], 0), (1,), (4,)), linear.reshape(k, (1, 3))], [shaped((3,), FRY)])
    jaxpr, consts = program_for(ClosedJaxpr(*keys))
    device = backend.devices("cpu")[0]
    words = values((3, 2), "uint32")
    cut, reshaped = backend.compile(jaxpr, device).execute(
        [*consts, backend.put(words, shaped((3, 2), dtypes.uint32), device, False)]
    )
    assert np.array_equal(cut._host(), np.concatenate([words, words])[1:4]) and np.array_equal(
        reshaped._host(), words[None]
    )


def test_malformed_programs_are_refused(backend):
    """A jaxpr whose types do not follow from its operands is an error of ours, not a crash of XLA's."""
    x, y = Var(shaped((3,), F32)), Var(shaped((4,), F32))
    jaxpr = Jaxpr([], [x], [y], [JaxprEqn([x], [y], transcendental.sin_p, {})])
    with pytest.raises(BackendError):
        backend.compile(jaxpr, backend.devices("cpu")[0])


def test_a_composite_tells_the_compiler_its_attributes():
    f = lax.composite(lambda x, **attributes: x * 2, name="my.double", version=3)
    call = lambda x: f(
        x,
        flag=True,
        count=3,
        rate=0.5,
        label="wide",
        mixed=[1, 2.5, False],
        table=np.arange(6, dtype=np.float32).reshape(2, 3),
        nothing=None,
    )
    text = weft.jit(call).lower(1.0).as_text()
    assert (
        'stablehlo.composite "my.double" %arg0 {composite_attributes = {count = 3 : i64, flag = true, label = "wide",'
        " mixed = [1, 2.500000e+00, false], rate = 5.000000e-01 : f64, table = dense<[[0.000000e+00, 1.000000e+00,"
        " 2.000000e+00], [3.000000e+00, 4.000000e+00, 5.000000e+00]]> : tensor<2x3xf32>}, decomposition = @my.double,"
        " version = 3 : i32}" in text
    )
    assert weft.jit(call)(4.0) == 8
    with pytest.raises(ValueError, match="attribute value .* of type object has no place"):
        weft.jit(lambda x: f(x, thing=object())).lower(1.0).as_text()


def test_a_sink_that_stays_is_a_call_with_the_layouts_of_its_operands():
    text = lambda stays: (
        weft.jit(lambda x, y: (lax.dce_sink((x, y), prevent_mlir_dce=stays), x)[1])
        .lower(np.ones((2, 3), np.float32), np.float32(1))
        .as_text()
    )
    assert "dce_sink" not in text(False)
    assert "stablehlo.custom_call @dce_sink(%arg0, %arg1) {" in text(True) and "has_side_effect = true" in text(True)
    assert (
        "operand_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<> : tensor<0xindex>], result_layouts = []"
        in text(True)
    )


@pytest.mark.parametrize("over", ["reduce", "reduce_window"])
def test_a_function_that_combines_elements_calls_no_python(over):
    """XLA ends the process where one does, so the program is refused."""
    add = lambda a, b: weft.pure_callback(lambda v, w: np.asarray(v) + np.asarray(w), a, a, b)
    f = {
        "reduce": lambda x: lax.reduce(x, np.float32(0), add, (0,)),
        "reduce_window": lambda x: lax.reduce_window(x, np.float32(0), add, (2,), (1,), "VALID"),
    }[over]
    with pytest.raises(BackendError, match=rf"the function given to {over}\. Compute it (.|\n)*test_xla_control"):
        weft.jit(f)(np.ones(3, np.float32))
