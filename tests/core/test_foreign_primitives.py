"""Primitives that libraries make through jax.extend and jax.interpreters: each rule, each backend, and what a
missing rule says.
"""

import numpy as np
import pytest
from platforms import first_device, need

import weft
import weft.numpy as jnp
from weft.compat import ad, batching, core, mlir
from weft.compat.primitives import jit_p, scan_p, sin_p
from weft.core.interpret import interpret
from weft.core.primitive import Primitive
from weft.errors import BackendError


def cube(name="cube"):
    """x ** 3 * k, with all rules."""
    p = core.Primitive(name)
    plain = lambda x, *, k: x * x * x * k
    p.def_impl(plain)
    p.def_abstract_eval(lambda x, *, k: core.ShapedArray(x.shape, x.dtype))
    mlir.register_lowering(p, mlir.lower_fun(plain, multiple_results=False))
    ad.primitive_jvps[p] = lambda xs, ts, *, k: (p.bind(*xs, k=k), 3 * k * xs[0] * xs[0] * ad.instantiate_zeros(ts[0]))
    batching.primitive_batchers[p] = lambda xs, dims, *, k: (p.bind(*xs, k=k), dims[0])
    return p


@pytest.mark.parametrize("platform", ["cpu", "reference", "wasm"])
@pytest.mark.parametrize("name", ["cube", "sin"])  # a name that the language has means nothing here
def test_a_primitive_by_lower_fun(platform, name):
    device, p = first_device(platform), cube(name)
    f = lambda x: p.bind(x, k=2.0)
    x = weft.device_put(jnp.array([1.0, 2.0, 3.0]), device)
    assert np.allclose(f(x), [2, 16, 54]) and np.allclose(weft.jit(f)(x), [2, 16, 54])
    assert np.allclose(weft.jit(weft.vmap(weft.grad(f)))(x), [6, 24, 54])
    assert np.allclose(weft.jit(weft.vmap(weft.jacfwd(weft.grad(f))))(x), [12, 24, 36])
    assert str(weft.make_jaxpr(f)(1.0)) == f"{{ lambda ; a:f32[]. let b:f32[] = {name}[k=2.0] a in (b,) }}"
    assert np.allclose(
        weft.lax.scan(lambda c, _: (f(c), c), weft.device_put(1.0, device), None, length=3)[1], [1, 2, 16]
    )


def test_rules_are_missing_one_by_one_until_they_are_given():
    p = core.Primitive("multiply_add")
    f = lambda x, y: p.bind(x, x, y)
    with pytest.raises(NotImplementedError, match="Evaluation rule for 'multiply_add'.*def_impl"):
        f(2.0, 10.0)
    p.def_impl(lambda x, y, z: np.add(np.multiply(x, y), z))
    assert f(2.0, 10.0) == 14
    with pytest.raises(NotImplementedError, match="Abstract evaluation"):
        weft.jit(f)(2.0, 10.0)
    p.def_abstract_eval(lambda x, y, z: core.ShapedArray(x.shape, x.dtype))
    with pytest.raises(NotImplementedError, match="(?s)MLIR translation rule.*register_lowering.*test_foreign"):
        weft.jit(f)(2.0, 10.0)
    with pytest.raises(NotImplementedError, match="Differentiation rule.*primitive_jvps"):
        weft.jvp(f, (2.0, 10.0), (1.0, 1.0))

    def jvp(primals, tangents):
        x, y, z = primals
        dx, dy, dz = (jnp.zeros_like(x) if type(t) is ad.Zero else t for t in tangents)
        return p.bind(x, y, z), p.bind(dx, y, p.bind(x, dy, dz))

    ad.primitive_jvps[p] = jvp
    assert weft.jvp(f, (2.0, 10.0), (1.0, 1.0)) == (14, 5)
    with pytest.raises(NotImplementedError, match="Transpose rule.*primitive_transposes"):
        weft.grad(f)(2.0, 10.0)

    def transpose(ct, x, y, z):
        if ad.is_undefined_primal(x):
            return p.bind(ct, y, jnp.zeros_like(y)), None, ct
        return None, p.bind(x, ct, jnp.zeros_like(x)), ct

    ad.primitive_transposes[p] = transpose
    assert weft.grad(f)(2.0, 10.0) == 4
    with pytest.raises(NotImplementedError, match="Batching rule.*primitive_batchers"):
        weft.vmap(f)(jnp.arange(3.0), jnp.arange(3.0))
    batching.primitive_batchers[p] = lambda xs, dims: (p.bind(*xs), dims[0])
    assert weft.vmap(f)(jnp.arange(3.0), jnp.arange(3.0)).tolist() == [0, 2, 6]


def test_a_primitive_without_a_rule_names_the_rule():
    p = Primitive("halve", foreign=True)
    with pytest.raises(
        NotImplementedError, match=r"primitive halve has no abstract rule. Give it one: halve_p.abstract"
    ):
        weft.jit(p.bind)(1.0)
    p.abstract = lambda x: x
    with pytest.raises(NotImplementedError, match="primitive halve has no jvp rule"):
        weft.jvp(p.bind, (1.0,), (1.0,))
    with pytest.raises(NotImplementedError, match="primitive halve has no batch rule"):
        weft.vmap(p.bind)(jnp.ones(2))
    jaxpr = weft.make_jaxpr(p.bind)(1.0)
    with pytest.raises(BackendError, match="can't run halve: it has no reference rule and no decomposition"):
        interpret(jaxpr, [np.float32(1)])


def test_a_lowering_in_stablehlo():
    need("cpu")
    p = core.Primitive("fused")
    p.multiple_results = True
    p.def_abstract_eval(lambda x, y: (x, core.ShapedArray((2, *x.shape), x.dtype)))

    def lower(ctx, x, y):
        assert [a.shape for a in ctx.avals_in] == [(3,), (3,)] and ctx.primitive is p and "cpu" in ctx.platforms
        total = mlir.hlo.AddOp(mlir.hlo.MulOp(x, y), mlir.ir_constant(np.full(3, 1.0, np.float32)))
        stacked = mlir.lower_fun(lambda a, b: jnp.stack([a, b]), multiple_results=False)(
            ctx.replace(avals_in=[ctx.avals_out[0]] * 2), total.result, x
        )
        assert total.result.type == mlir.aval_to_ir_type(ctx.module_context, ctx.avals_out[0])
        return [total, stacked]

    mlir.register_lowering(p, lower, platform="cpu")
    a, b = weft.jit(p.bind)(jnp.arange(3.0), jnp.full(3, 2.0))
    assert a.tolist() == [1, 3, 5] and b.tolist() == [[1, 3, 5], [0, 1, 2]]
    mlir.register_lowering(p, lambda ctx, x, y: [x], platform="cpu")
    with pytest.raises(ValueError, match="fused returned 1 values for 2"):
        weft.jit(lambda *xs: p.bind(*xs))(jnp.ones(3), jnp.ones(3))
    with pytest.raises(RuntimeError, match="inside a lowering rule"):
        mlir.ir_constant(1.0)


def test_a_python_callback_inside_a_lowering():
    need("cpu")
    p = core.Primitive("call_python")
    p.multiple_results = True
    p.def_abstract_eval(lambda x: [x])

    def lower(ctx, x):
        out, _, keep = mlir.emit_python_callback(
            ctx, lambda v: (np.asarray(v) * 2,), None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False
        )
        ctx.module_context.add_keepalive(keep)
        return out

    mlir.register_lowering(p, lower)
    assert weft.jit(lambda x: p.bind(x)[0] + 1)(jnp.arange(3.0)).tolist() == [1, 3, 5]


def test_shorthands_for_rules():
    plain = lambda p, f: (
        p.def_impl(f),
        p.def_abstract_eval(lambda *a, **_: a[0]),
        mlir.register_lowering(p, mlir.lower_fun(f, multiple_results=False)),
    )
    twice, product, power, total = map(core.Primitive, ("twice", "product", "power", "total"))
    plain(twice, lambda x: 2 * x)
    ad.deflinear2(twice, lambda ct, x: [twice.bind(ct)])
    batching.defvectorized(twice)
    assert weft.grad(lambda x: twice.bind(twice.bind(x)))(1.0) == 4 and weft.vmap(twice.bind)(jnp.ones(2)).tolist() == [
        2,
        2,
    ]
    plain(product, lambda x, y: x * y)
    ad.defbilinear(product, lambda ct, x, y: product.bind(ct, y), lambda ct, x, y: product.bind(x, ct))
    batching.defbroadcasting(product)
    assert (
        weft.grad(lambda x, y: product.bind(x, y), (0, 1))(3.0, 5.0) == (5, 3)
        and weft.jvp(product.bind, (3.0, 5.0), (1.0, 1.0))[1] == 8
    )
    assert weft.vmap(product.bind, (0, None))(jnp.arange(3.0), 2.0).tolist() == [0, 2, 4]
    plain(power, lambda x, y: x**y)
    ad.defjvp(power, lambda g, x, y: g * y * x ** (y - 1), None)
    assert weft.grad(power.bind)(3.0, 2.0) == 6 and weft.grad(power.bind, 1)(3.0, 2.0) == 0
    total.def_impl(lambda x, *, axes: x.sum(axes))
    total.def_abstract_eval(
        lambda x, *, axes: core.ShapedArray([n for i, n in enumerate(x.shape) if i not in axes], x.dtype)
    )
    batching.defreducer(total)
    assert weft.vmap(lambda x: total.bind(x, axes=(0,)), 1)(jnp.arange(6.0).reshape(2, 3)).tolist() == [3, 5, 7]


def test_axis_rules_and_float0():
    p = core.Primitive("size_and_name")
    p.def_impl(lambda x, n: x)
    p.def_abstract_eval(lambda x, n: x)
    seen = []
    batching.axis_primitive_batchers[p] = lambda size, name, kind, xs, dims: (
        seen.append((size, name, kind)),
        (xs[0], dims[0]),
    )[1]
    # one of them is float0
    ad.primitive_jvps[p] = lambda xs, ts: (p.bind(*xs), [ad.instantiate_zeros(t) for t in ts][0])
    weft.vmap(lambda x: p.bind(x, 1), axis_name="i")(jnp.ones(4))
    assert seen == [(4, "i", None)] and weft.grad(lambda x: p.bind(x * x, 3))(2.0) == 4
    zero = ad.instantiate_zeros(ad.Zero(core.ShapedArray((2,), weft.float0)))
    assert zero.dtype == weft.float0 and zero.shape == (2,)


def test_effects_of_a_rule():
    class Noise(core.Effect):
        pass

    p, effect = core.Primitive("noise"), Noise()
    p.def_effectful_abstract_eval(lambda x, *, loud: (x, {effect} if loud else set()))
    assert weft.make_jaxpr(lambda x: p.bind(x, loud=True))(1.0).effects == {effect}
    assert not weft.make_jaxpr(lambda x: p.bind(x, loud=False))(1.0).effects


def test_tables_of_rules():
    assert sin_p in ad.primitive_jvps and jit_p in batching.primitive_batchers and sin_p not in ad.primitive_transposes
    assert (
        ad.primitive_jvps[sin_p]([0.0], [1.0])[1] == 1
        and batching.primitive_batchers[sin_p]([jnp.ones((2, 3))], [1])[1] == 1
    )
    p, rule = core.Primitive("p"), lambda *_: None
    table = ad.primitive_transposes
    assert (
        table.get(p) is None
        and p not in table
        and table.setdefault(p, rule) is rule
        and table[p] is rule
        and p in list(table)
    )
    assert table.pop(p) is rule and table.pop(p, 5) == 5
    with pytest.raises(KeyError):
        table[p]
    with pytest.raises(NotImplementedError, match="'p'"):
        ad.get_primitive_transpose(p)
    assert (
        isinstance(sin_p, core.Primitive)
        and isinstance(p, core.Primitive)
        and not isinstance(scan_p, core.CallPrimitive)
    )


def test_calls_leave_no_equation():
    closed = weft.make_jaxpr(lambda x: x * 2)(1.0)
    assert str(weft.make_jaxpr(lambda x: core.closed_call_p.bind(x, call_jaxpr=closed)[0])(1.0)) == str(closed)
