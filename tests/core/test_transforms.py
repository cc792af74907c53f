"""grad, vmap and the others, alone and composed."""

import numpy as np
import pytest

import weft
from weft import lax
from weft.core.primitive import Primitive
from weft.core.trace import Axis

from .helpers import check_grads, close, value

X = np.linspace(-0.9, 1.1, 5)


def test_grad_of_jit_of_grad():
    f = lambda x: lax.mul(lax.sin(x), x)
    df = lambda x: np.cos(x) * x + np.sin(x)
    d2f = lambda x: 2 * np.cos(x) - x * np.sin(x)
    g = weft.grad(f)
    for h in (g, weft.jit(g), weft.grad(weft.jit(f)), weft.jit(weft.grad(weft.jit(f)))):
        close(h(0.7), df(0.7))
    for h in (weft.grad(g), weft.jit(weft.grad(weft.jit(g))), weft.grad(weft.grad(weft.jit(f)))):
        close(h(0.7), d2f(0.7))


def test_nested_perturbations_are_not_confused():
    """d/dx (x · d/dy (x + y)) = 1; a confusion of the two derivatives gives 2."""
    f = lambda x: lax.mul(x, weft.grad(lambda y: lax.add(x, y))(3.0))
    close(weft.grad(f)(2.0), 1.0)
    close(weft.jvp(lambda x: lax.mul(x, weft.jvp(lambda y: lax.add(x, y), (3.0,), (1.0,))[1]), (2.0,), (1.0,))[1], 1.0)


def test_value_and_grad_options():
    f = lambda p, x: (lax.reduce_sum(lax.mul(p["a"], x), (0,)), {"twice": lax.mul(x, x)})
    x = np.arange(3, dtype=np.float32)
    (v, aux), g = weft.value_and_grad(f, has_aux=True)({"a": x}, x)
    close(v, 5.0), close(g["a"], x), close(aux["twice"], x * x)
    ga, gb = weft.grad(lambda a, b: lax.mul(a, b), argnums=(0, 1))(2.0, 3.0)
    close([ga, gb], [3.0, 2.0])
    close(weft.grad(lambda a, b: lax.mul(a, b), argnums=-1)(2.0, 3.0), 2.0)


def test_grad_rejects():
    with pytest.raises(TypeError, match=r"scalar-output.*\(3,\)"):
        weft.grad(lambda x: x)(np.ones(3, np.float32))
    with pytest.raises(TypeError, match="complex-valued inputs.*int32"):
        weft.grad(lambda x: lax.mul(x, 2))(3)
    with pytest.raises(TypeError, match="real-valued outputs"):
        weft.grad(lambda x: lax.convert_element_type(x, np.int32))(3.0)
    with pytest.raises(TypeError, match="the call does not have"):
        weft.grad(lambda x: x, argnums=1)(3.0)
    with pytest.raises(TypeError, match="pair|two-element"):
        weft.grad(lambda x: x, has_aux=True)(3.0)
    with pytest.raises(TypeError, match="tree structure"):
        weft.jvp(lambda x: x, ((1.0,),), (1.0,))
    with pytest.raises(ValueError, match="shape"):
        weft.jvp(lambda x: x, (np.ones(3, np.float32),), (np.ones(4, np.float32),))
    with pytest.raises(ValueError, match="expected to match"):
        weft.vjp(lambda x: (x, x), 1.0)[1](1.0)


def test_integer_inputs_have_float0_tangents():
    g = weft.grad(lambda x, n: lax.mul(x, lax.convert_element_type(n, np.float32)), argnums=(0, 1), allow_int=True)(
        2.0, 3
    )
    close(g[0], 3.0)
    assert g[1].dtype == weft.dtypes.float0


def test_linearize_and_transpose():
    y, lin = weft.linearize(lambda x, y: lax.mul(lax.sin(x), y), 0.3, 2.0)
    close(y, np.sin(0.3) * 2), close(lin(1.0, 0.5), np.cos(0.3) * 2 + 0.5 * np.sin(0.3))
    t = weft.linear_transpose(lambda x: lax.mul(x, 3.0), weft.ShapeDtypeStruct((), "float32"))
    close(t(2.0)[0], 6.0)
    y, pull, aux = weft.vjp(lambda x: (lax.sin(x), x), 0.5, has_aux=True)
    close(pull(2.0)[0], 2 * np.cos(0.5)), close(aux, 0.5)
    assert weft.tree.leaves(pull), "the pullback is a pytree of its residuals"
    close(weft.jit(lambda p, ct: p(ct))(pull, 2.0)[0], 2 * np.cos(0.5))


def test_vmap_axes():
    f = lambda x, y: lax.add(lax.mul(x, 2.0), y)
    xs, ys = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(3, dtype=np.float32)
    close(
        weft.vmap(f, in_axes=(1, 0))(xs, ys)[:, 0] if False else value(weft.vmap(f, in_axes=(1, None))(xs, 1.0)),
        2 * xs.T + 1,
    )
    close(value(weft.vmap(lambda x: lax.mul(x, 2.0), in_axes=1, out_axes=1)(xs)), 2 * xs)
    close(value(weft.vmap(lambda d: d["a"], in_axes=({"a": 1, "b": None},))({"a": xs, "b": 0.0})), xs.T)
    out = weft.vmap(lambda x: (x, 3.0), out_axes=(0, None))(ys)
    assert value(out[1]).shape == ()
    close(value(weft.vmap(lambda x: 3.0)(ys)), [3, 3, 3])
    close(value(weft.vmap(lambda: 1.0, axis_size=4)()), np.ones(4))


def test_vmap_leaves_alone_what_it_does_not_map():
    xs = np.ones((2, 3), np.float32)
    apply = lambda x, f, options: f(x) if options["on"] == "yes" else x
    mapped = weft.vmap(weft.vmap(apply, in_axes=(0, None, None)), in_axes=(0, None, None))
    close(value(mapped(xs, lax.sin, {"on": "yes"})), np.sin(xs))
    close(value(weft.jit(lambda x: mapped(x, lax.sin, {"on": "no"}))(xs)), xs)
    close(value(weft.vmap(lambda f: f(2.0), in_axes=None, axis_size=3)(lambda x: x * 2)), np.full(3, 4.0))
    with pytest.raises(TypeError, match="vmap.*function.*in_axes"):
        weft.vmap(apply, in_axes=(0, 0, None))(xs, lax.sin, {"on": "yes"})
    with pytest.raises(TypeError, match="not a valid JAX type"):
        weft.vmap(lambda x, f: f, in_axes=(0, None), out_axes=None)(xs, "f")


def test_vmap_rejects():
    x = np.ones((2, 3), np.float32)
    with pytest.raises(ValueError, match="inconsistent sizes.*2.*3"):
        weft.vmap(lax.add)(x[:, 0], x[0])
    with pytest.raises(ValueError, match="has only axes 0 to 1"):
        weft.vmap(lambda a: a, in_axes=2)(x)
    with pytest.raises(ValueError, match="maps nothing"):
        weft.vmap(lambda a: a, in_axes=None)(x)
    with pytest.raises(TypeError, match="in_axes"):
        weft.vmap(lambda a: a, in_axes="0")(x)
    with pytest.raises(ValueError, match="out_axes is None"):
        weft.vmap(lambda a: a, out_axes=None)(x)
    with pytest.raises(ValueError, match="prefix"):
        weft.vmap(lambda a: a, in_axes=((0, 0),))(x)


def test_collectives_over_a_named_axis():
    from weft.primitives.collective import axis_index_p, psum_p

    x = np.arange(4, dtype=np.float32)
    psum = lambda v, name: psum_p.bind(v, axes=(name,), axis_index_groups=None)[0]
    close(value(weft.vmap(lambda v: lax.div(v, psum(v, "i")), axis_name="i")(x)), x / 6)
    close(value(weft.vmap(lambda v: axis_index_p.bind(axis_name="i"), axis_name="i")(x)), [0, 1, 2, 3])
    m = x.reshape(2, 2)
    both = weft.vmap(
        weft.vmap(lambda v: psum_p.bind(v, axes=("i", "j"), axis_index_groups=None)[0], axis_name="j"), axis_name="i"
    )
    close(value(both(m)), np.full((2, 2), 6.0))
    inner = weft.vmap(weft.jit(weft.vmap(lambda v: psum(v, "i"), axis_name="j")), axis_name="i")
    close(value(inner(m)), [[2, 4], [2, 4]])
    close(
        value(
            weft.grad(lambda v: lax.reduce_sum(weft.vmap(lambda a: lax.mul(a, psum(a, "i")), axis_name="i")(v), (0,)))(
                x
            )
        ),
        np.full(4, 12.0),
    )
    with pytest.raises(NameError, match="unbound axis name: 'k'"):
        weft.vmap(lambda v: psum(v, "k"), axis_name="i")(x)
    with pytest.raises(NameError, match="unbound axis name: 'k'"):
        weft.make_jaxpr(lambda v: psum_p.bind(v, axes=("i", "k"), axis_index_groups=None), axis_env=[("i", 2)])(x)
    with pytest.raises(NameError, match="unbound axis name: 'i'"):  # though it was bound before
        psum(np.float32(1), "i")
    assert Axis("i", 2).size == 2


@pytest.mark.parametrize("way", ["jit", "cond", "scan", "checkpoint"])
def test_programs_that_communicate_are_mapped_although_their_operands_are_not(way):
    """Also where the collective does not stand first."""
    late = lambda v: lax.psum(lax.sin(v), "i")
    f = {
        "jit": weft.jit(late),
        "cond": lambda v: lax.cond(v > 0, late, lax.cos, v),
        "scan": lambda v: lax.scan(lambda c, _: (late(c), None), v, None, length=1)[0],
        "checkpoint": weft.checkpoint(late),
    }[way]
    y = np.float32(0.5)
    close(
        value(weft.vmap(lambda x, v: f(v) + x, in_axes=(0, None), axis_name="i")(np.arange(3, dtype=np.float32), y)),
        np.arange(3) + 3 * np.sin(y),
    )


def test_hessians_and_jacobians():
    f = lambda x: lax.reduce_sum(lax.mul(lax.mul(x, x), x), (0,))
    x = np.array([1.0, 2.0], np.float32)
    close(weft.hessian(f)(x), np.diag(6 * x))
    close(weft.jacfwd(lax.sin)(x), np.diag(np.cos(x))), close(weft.jacrev(lax.sin)(x), np.diag(np.cos(x)))
    tree = weft.jacrev(lambda p: {"y": lax.mul(p["a"], p["b"])})({"a": x, "b": x})
    close(tree["y"]["a"], np.diag(x))
    close(weft.jit(weft.jacfwd(weft.jit(weft.jacrev(f))))(x), np.diag(6 * x))


def test_eval_shape_and_closure_convert():
    out = weft.eval_shape(lambda a: {"s": lax.reduce_sum(a, (0,))}, weft.ShapeDtypeStruct((3, 4), "float32"))
    assert out["s"].shape == (4,) and out["s"].dtype == np.float32

    def outer(c):
        f, extra = weft.closure_convert(lambda x: lax.mul(x, c), 2.0)
        return f(3.0, *extra)

    close(weft.grad(outer)(5.0), 3.0)


@pytest.mark.parametrize(
    "name", "sin cos tan exp log1p tanh logistic erf sqrt abs sinh cosh asinh atan expm1 cbrt square".split()
)
def test_elementwise_derivatives(name):
    op = getattr(lax, name)
    check_grads(op, np.abs(X) + 0.1 if name in ("sqrt", "cbrt", "log1p") else X)


def test_structural_derivatives():
    m = np.arange(6.0).reshape(2, 3) + 1
    (
        check_grads(lax.max, m, m[::-1].copy()),
        check_grads(lax.min, m, m[::-1].copy()),
        check_grads(lax.atan2, m, m[::-1].copy()),
    )
    (
        check_grads(lax.pow, m, m[::-1].copy()),
        check_grads(lax.div, m, m[::-1].copy()),
        check_grads(lax.rem, m[::-1].copy() * 2.3, m),
    )
    check_grads(lambda x: lax.clamp(2.5, x, 4.5), m), check_grads(lambda x: lax.integer_pow(x, -3), m)
    check_grads(lambda x: lax.transpose(lax.reshape(x, (3, 2)), (1, 0)), m)
    check_grads(lambda x: lax.pad(x, np.float64(0), ((1, 2, 1), (-1, 0, 0))), m)
    check_grads(lambda x: lax.slice(x, (0, 1), (2, 3), (1, 2)), m)
    check_grads(lambda x: lax.concatenate([x, lax.mul(x, x)], 1), m)
    check_grads(lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ()))), m, m.T)
    check_grads(
        lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))),
        np.ones((2, 3, 4)) * 0.5,
        np.arange(16.0).reshape(2, 4, 2) / 9,
    )
    check_grads(lambda x: lax.reduce_max(x, (1,)), m), check_grads(lambda x: lax.reduce_prod(x, (0, 1)), m)
    (
        check_grads(lambda x: lax.cumsum(x, 1), m),
        check_grads(lambda x: lax.cumprod(x, 1), m),
        check_grads(lambda x: lax.rev(x, (0,)), m),
    )
    check_grads(lambda x: lax.dynamic_slice(x, (0, 1), (1, 2)), m)
    check_grads(lambda x, y: lax.dynamic_update_slice(x, y, (1, 1)), m, np.ones((1, 2)))
    check_grads(lambda x: lax.sort(x, dimension=1), m[:, ::-1].copy())
    check_grads(lambda x, y: lax.select(x > y if False else lax.gt(x, y), lax.sin(x), y), m, m[::-1].copy() + 0.5)


def test_ties_share_the_derivative():
    close(weft.grad(lambda x: lax.max(x, np.float32(1)))(np.float32(1)), 0.5)
    close(weft.grad(lambda x: lax.reduce_max(x, (0,)))(np.array([1, 3, 3], np.float32)), [0, 0.5, 0.5])


def test_weak_types_stay_weak():
    import weft.numpy as jnp

    for f in (
        jnp.tanh,
        jnp.sin,
        jnp.exp,
        jnp.log,
        jnp.sqrt,
        jnp.abs,
        lambda x: x**2,
        lambda x: 2 * x,
        lambda x: jnp.maximum(x, 0),
    ):
        assert weft.grad(f)(1.0).weak_type and not weft.grad(f)(np.float32(1)).weak_type
        for jacobian in (weft.jacfwd, weft.jacrev, weft.hessian):
            assert jacobian(f)(1.0).weak_type and not jacobian(f)(np.float32(1)).weak_type


def test_a_derivative_of_the_wrong_type_is_told_where_it_is_made():
    """Tests check what derivative rules give, as jax_enable_checks does."""
    p = Primitive("with_wrong_derivatives", foreign=True)
    p.abstract = lambda x: x
    p.impl = lambda x: x
    p.jvp = lambda primals, tangents: (p.bind(*primals), tangents[0][:1])
    with pytest.raises(TypeError, match=r"a tangent of type f32\[1\] where one of type f32\[3\] belongs"):
        weft.jvp(p.bind, (np.ones(3, np.float32),), (np.ones(3, np.float32),))
    p.jvp = lambda primals, tangents: (p.bind(*primals), p.bind(*tangents))
    p.transpose = lambda ct, x: [ct[:1]]
    with pytest.raises(TypeError, match=r"a cotangent of type f32\[1\] where one of type f32\[3\] belongs"):
        weft.grad(lambda x: lax.reduce_sum(p.bind(x), (0,)))(np.ones(3, np.float32))


def test_a_derivative_gives_away_nothing_that_it_was_not_given():
    """What a compiled function leaves for its derivative is called again, and with the caller's own arrays."""
    h = weft.jit(lambda x, y: lax.mul(lax.sin(x), y))
    x, t = np.arange(3, dtype=np.float32), np.ones(3, np.float32)
    traced = weft.make_jaxpr(lambda x, t: weft.linearize(h, x, x)[1](t, t))(x, t).jaxpr
    calls = [e.params["donated_invars"] for e in traced.eqns if e.primitive.name == "jit"]
    assert len(calls) == 2 and not any(map(any, calls))
