"""Jaxprs: how they print, that they verify, and that the verifier sees what is wrong."""

import weakref

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.base import dtypes
from weft import lax
from weft.base.avals import shaped
from weft.compat.core import Primitive, ShapedArray
from weft.core.jaxpr import Jaxpr, JaxprEqn, Literal, Var
from weft.core.pretty import jaxpr_lines
from weft.core.verify import verify
from weft.errors import UnexpectedTracerError, VerificationError
from weft.primitives.elementwise import add_p
from weft.primitives.transcendental import sin_p
from weft.transforms.stage import as_literal

F32 = np.dtype("float32")


def flat(jaxpr):
    return " ".join(str(jaxpr).split())


def test_print():
    assert (
        flat(weft.make_jaxpr(lambda x: lax.sin(lax.cos(x)))(3.0))
        == "{ lambda ; a:f32[]. let b:f32[] = cos a; c:f32[] = sin b in (c,) }"
    )
    assert (
        str(weft.make_jaxpr(lambda x: lax.sin(x))(np.ones(3, np.int32).astype(np.float32)))
        == "{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }"
    )
    text = flat(weft.make_jaxpr(lambda x: lax.reduce_max(x, (0,)))(np.ones(3, np.float32)))
    assert "b:f32[] = reduce_max[axes=(0,)" in text
    const = weft.device_put(np.arange(3, dtype=np.float32))
    assert (
        flat(weft.make_jaxpr(lambda x: lax.add(x, const))(np.ones(3, np.float32)))
        == "{ lambda a:f32[3]; b:f32[3]. let c:f32[3] = add b a in (c,) }"
    )


def test_names_go_on_after_z():
    from weft.core.pretty import var_name

    assert [var_name(i) for i in (0, 25, 26, 27, 51, 52, 26 * 26)] == ["a", "z", "ba", "bb", "bz", "ca", "baa"]


def test_a_function_called_twice_is_printed_once():
    f = weft.jit(lambda x: lax.sin(x))
    text = str(weft.make_jaxpr(lambda x: f(f(x)))(1.0))
    assert text.startswith("let ") and text.count("sin") == 1


def test_make_jaxpr_options():
    jaxpr, shape = weft.make_jaxpr(
        lambda x, n: {"y": lax.broadcast_in_dim(x, (n,), ())}, static_argnums=1, return_shape=True
    )(1.0, 3)
    assert shape["y"].shape == (3,) and len(jaxpr.jaxpr.invars) == 1


def variables(*avals):
    return [Var(a) for a in avals]


def test_verifier_accepts_and_rejects():
    aval = shaped((3,), F32)
    x, y, z = variables(aval, aval, aval)
    good = JaxprEqn([x, y], [z], add_p, {})
    verify(Jaxpr([], [x, y], [z], [good]))
    with pytest.raises(VerificationError, match="before its definition"):
        verify(Jaxpr([], [x], [z], [good]))
    with pytest.raises(VerificationError, match="the result .*before its definition"):
        verify(Jaxpr([], [x, y], [*variables(aval), z], [good]))
    with pytest.raises(VerificationError, match="twice"):
        verify(Jaxpr([], [x, y], [z], [good, good]))
    with pytest.raises(VerificationError, match="declares"):
        verify(Jaxpr([], [x, y], [w := Var(shaped((4,), F32))], [JaxprEqn([x, y], [w], add_p, {})]))
    with pytest.raises(VerificationError, match="type-check"):
        (i,) = variables(shaped((3,), np.dtype("int32")))
        verify(Jaxpr([], [x, i], [z], [JaxprEqn([x, i], [z], add_p, {})]))
    with pytest.raises(VerificationError, match="type-check: iota: dimension 2 is out of range"):
        verify(
            Jaxpr(
                [],
                [],
                [w := Var(shaped((3, 4), F32))],
                [JaxprEqn([], [w], lax.iota_p, dict(dtype=np.dtype(F32), shape=(3, 4), dimension=2, sharding=None))],
            )
        )
    with pytest.raises(VerificationError, match="results"):
        verify(Jaxpr([], [x], [], [JaxprEqn([x], [], sin_p, {})]))
    with pytest.raises(VerificationError, match="not a scalar"):
        verify(Jaxpr([], [], [Literal(1.0, aval)], []))


def test_leaked_tracer_is_named():
    kept = []

    @weft.jit
    def f(x):
        kept.append(lax.sin(x))
        return x

    f(1.0)
    with pytest.raises(UnexpectedTracerError, match="test_jaxprs.py"):
        lax.cos(kept[0])
    with pytest.raises(UnexpectedTracerError):
        weft.jit(lambda y: lax.add(y, kept[0]))(1.0)
    weft.grad(lambda x: kept.append(lax.sin(x)) or x)(1.0)
    with pytest.raises(UnexpectedTracerError):
        lax.cos(kept[-1])


@pytest.mark.parametrize("leave", ["grad", "jvp", "vmap"])
def test_tracers_that_a_later_jit_closes_over_are_refused(leave):
    kept = []

    def f(x):
        kept.append(lax.sin(x))
        return x

    {"grad": weft.grad(f), "jvp": lambda x: weft.jvp(f, (x,), (x,)), "vmap": lambda x: weft.vmap(f)(x[None])}[leave](
        jnp.float32(1.0)
    )
    for use in (lambda y: lax.add(y, kept[0]), lambda y: kept[0]):
        with pytest.raises(UnexpectedTracerError, match="function that was being traced has returned"):
            weft.jit(use)(1.0)
        with pytest.raises(UnexpectedTracerError, match="function that was being traced has returned"):
            weft.make_jaxpr(use)(1.0)  # it is seen while the program is made, not only where it runs
    with pytest.raises(UnexpectedTracerError, match="JAX_CHECK_TRACER_LEAKS=1"):
        weft.jit(lambda: kept[0])()


def test_where_a_leaked_tracer_of_a_derivative_was_made():
    kept = []
    with weft.checking_leaks(), pytest.raises(UnexpectedTracerError, match="made at .*test_jaxprs.py"):
        weft.grad(lambda x: kept.append(lax.sin(x)) or x)(1.0)


@pytest.mark.parametrize(
    "name",
    [
        "bool",
        "int4",
        "uint2",
        "int8",
        "uint32",
        "int32",
        "float4_e2m1fn",
        "float8_e5m2",
        "bfloat16",
        "float16",
        "float32",
        "complex64",
    ],
)
def test_host_scalars_are_literals(name):
    """Scalars of every dtype are written into the program; arrays, and scalars of float0, are not."""
    literal = as_literal(np.asarray(1, dtypes.dtype(name)))
    assert dtypes.is_python_scalar(literal.val) and literal.val == 1 and literal.aval == shaped((), dtypes.dtype(name))
    assert as_literal(np.ones(1, dtypes.dtype(name))) is None and as_literal(np.zeros((), dtypes.float0)) is None


def test_types_are_remembered_under_the_names_of_parameters():
    sizes = dict(padding=((0, 0),), base_dilation=(1,), window_dilation=(1,))
    wide = lax.reduce_window_sum_p.abstract_eval(
        (shaped((12,), "float32"),), dict(window_dimensions=(4,), window_strides=(1,), **sizes)
    )
    apart = lax.reduce_window_sum_p.abstract_eval(
        (shaped((12,), "float32"),), dict(window_strides=(4,), window_dimensions=(1,), **sizes)
    )
    assert (wide.shape, apart.shape) == ((9,), (3,))


def test_effects_of_dead_code():
    jaxpr = weft.make_jaxpr(lambda x: (lax.sin(x), x)[1])(1.0).jaxpr
    from weft.transforms.dce import dce_jaxpr

    small, used = dce_jaxpr(jaxpr, [True])
    assert not small.eqns and used == [True]


def test_long_lists_go_on_in_the_next_line():
    text = str(weft.make_jaxpr(lambda *a: weft.jit(lambda *b: b)(*[x + 1 for x in a]))(*[jnp.ones((10, 20))] * 12))
    assert (
        text.startswith("""\
{ lambda ; a:f32[10,20] b:f32[10,20] c:f32[10,20] d:f32[10,20] e:f32[10,20] f:f32[10,20]
    g:f32[10,20] h:f32[10,20] i:f32[10,20] j:f32[10,20] k:f32[10,20] l:f32[10,20]. let
""")
        and """
    y:f32[10,20] z:f32[10,20] ba:f32[10,20] bb:f32[10,20] bc:f32[10,20] bd:f32[10,20]
      be:f32[10,20] bf:f32[10,20] bg:f32[10,20] bh:f32[10,20] bi:f32[10,20] bj:f32[10,20] = jit[
"""
        in text
    )


def test_long_programs_inside_of_others_are_printed_in_front():
    def long(x):
        for _ in range(11):
            x = jnp.sin(x)
        return x

    text = str(weft.make_jaxpr(lambda x: lax.cond(x > 0, long, lambda x: x, x))(1.0))
    assert (
        text.startswith("let jaxpr = { lambda ; a:f32[]. let\n")
        and "p:f32[] = cond[branches=({ lambda ; q:f32[]. let  in (q,) } jaxpr)] o m\n" in text
    )
    text = str(weft.make_jaxpr(lambda x: lax.while_loop(lambda x: long(x) > 0, long, x))(1.0))
    assert "let jaxpr1 = " in text and "body_jaxpr=jaxpr1\n" in text and "cond_jaxpr=jaxpr\n" in text


def test_literals_are_equal_where_their_values_and_types_are():
    single, whole = shaped((), "float32"), shaped((), "int32")
    literals = [
        Literal(1.0, single),
        Literal(1.0, single),
        Literal(0.0, single),
        Literal(-0.0, single),
        Literal(1, whole),
        Literal(float("nan"), single),
        Literal(float("nan"), single),
    ]
    assert len(set(literals)) == 5 and hash(literals[0]) == hash(literals[1])


def test_evaluation_keeps_no_value_that_nothing_reads_any_more():
    p, seen, alive = Primitive("seen"), [], []
    p.def_abstract_eval(lambda x: ShapedArray(x.shape, x.dtype))

    @p.def_impl
    def _(x):
        alive.append(sum(r() is not None for r in seen))
        made = jnp.asarray(np.asarray(x) + 1)
        seen.append(weakref.ref(made))
        return made

    closed = weft.make_jaxpr(lambda x: p.bind(p.bind(p.bind(p.bind(x)))))(1.0)
    assert weft.core.eval_jaxpr(closed.jaxpr, closed.consts, jnp.float32(1.0))[0] == 5.0
    assert alive == [0, 1, 1, 1]


def test_each_line_of_a_jaxpr_has_its_equation():
    """The playground shows beside each line what it belongs to."""
    loop = lambda x: lax.scan(lambda c, _: (jnp.cos(c), None), x, None, 3)[0]
    f = lambda x: lax.cond(x.sum() > 0, lambda x: x * 2, loop, x)
    jaxpr = weft.make_jaxpr(f)(np.ones(3, np.float32)).jaxpr
    lines = jaxpr_lines(jaxpr)
    assert [text for text, _ in lines] == str(jaxpr).split("\n")
    assert [eqn and eqn.primitive.name for _, eqn in lines] == [
        *(None, "reduce_sum", "gt", "convert_element_type", "cond", "cond"),
        *(None, "scan", "cos", "scan", "scan", "scan", "scan", "scan", "scan", None),  # a branch
        *("mul", "cond", "cond", None),
    ]
