"""Mutable references: outside of programs, under jit, in loops, under grad, jvp and vmap; how jaxprs show them; what
is refused.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax

from .helpers import value

X = np.arange(1.0, 5.0, dtype=np.float32)


def everything(x, i):
    """Each kind of index, read, written, swapped and added to."""
    r = weft.new_ref(x)
    r[...] = x * 2
    r[0] = 1.0
    r[i] = 2.0
    r[1:3] += 1.0
    weft.ref.addupdate(r, 0, 5.0)
    weft.ref.addupdate(r, (), x)
    a = weft.ref.swap(r, 1, 3.0)
    b = weft.ref.get(r, weft.ds(i, 2))
    c = r[jnp.array([0, 2, -1])]
    r[::2] = jnp.zeros(2)
    r[jnp.array([1, 3])] = jnp.array([8.0, 9.0])
    return a, b, c, r[-1], r[...], weft.freeze(r)


def by_hand(x, i):
    r = x * 2
    r[0] = 1
    r[i] = 2
    r[1:3] += 1
    r[0] += 5
    r += x
    a = r[1]
    r[1] = 3
    b, c = r[i : i + 2].copy(), r[[0, 2, -1]]
    r[::2] = 0
    r[[1, 3]] = [8, 9]
    return a, b, c, r[-1], r, r


@pytest.mark.parametrize(
    "wrap",
    [lambda f: f, weft.jit, lambda f: weft.jit(lambda *xs: weft.jit(f)(*xs)), weft.checkpoint],
    ids=["eager", "jit", "nested", "checkpoint"],
)
@pytest.mark.parametrize("platform", ["cpu", "wasm", "reference"])
def test_reads_and_writes(wrap, platform):
    with weft.default_device(weft.devices(platform)[0]):
        for got, want in zip(wrap(everything)(jnp.asarray(X), jnp.int32(1)), by_hand(X, 1), strict=True):
            np.testing.assert_array_equal(value(got), want)


def test_several_axes():
    x = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)

    def f(x, i):
        r = weft.new_ref(x)
        r[i, :, 1] = jnp.zeros(3)
        r[0, 1:, ::2] += 1.0
        pairs = r[jnp.array([0, 1]), jnp.array([2, 0])], r[jnp.array([0, 1]), i], r[i, jnp.array([[0], [2]]), i]
        return r[..., 2], r[1], r[:, i, weft.ds(i, 2)], *pairs, r[...]

    r = x.copy()
    r[1, :, 1] = 0
    r[0, 1:, ::2] += 1
    for wrap in (lambda f: f, weft.jit):
        pairs = r[[0, 1], [2, 0]], r[[0, 1], 1], r[1, [[0], [2]], 1]
        for got, want in zip(wrap(f)(x, 1), (r[..., 2], r[1], r[:, 1, 1:3], *pairs, r), strict=True):
            np.testing.assert_array_equal(got, want)


def test_jaxprs_show_places():
    def f(x, i):
        r = weft.new_ref(x)
        r[0] = r[i]
        weft.ref.addupdate(r, slice(1, 3), x[:2])
        return weft.ref.swap(r, weft.ds(i, 2), x[:2]), weft.freeze(r)

    text = str(weft.make_jaxpr(f)(X, 1))
    for part in (
        "c:Ref{f32[4]} = new_ref[kind=None memory_space=None] a",
        "d:f32[] <- c[b]",
        "c[0] <- d",
        "c[1:3] += ",
        ":f32[2], c[b:b+2] <- c[b:b+2], ",
        " = freeze c",
    ):
        assert part in text, f"{part} is not in\n{text}"


def test_arguments_and_closures_change_outside():
    r, total = weft.new_ref(jnp.zeros(3)), weft.new_ref(0)

    @weft.jit
    def f(ref, x):
        ref[1] += x
        total[...] += 1
        return ref[...].sum()

    assert f(r, 2.0) == 2 and f(r, 3.0) == 5
    assert r[...].tolist() == [0, 5, 0] and total[...] == 2
    assert (
        isinstance(r, weft.Ref)
        and repr(r) == "Ref([0., 5., 0.], dtype=float32)"
        and str(weft.typeof(r)) == "Ref{float32[3]}"
    )
    x = jnp.ones(2)
    weft.new_ref(x)[0] = 5.0
    assert x.tolist() == [1, 1]  # the array that it began with stays


def test_loops_and_branches():
    r = weft.new_ref(jnp.zeros(3))

    def steps(x):
        def body(c, v):
            r[0] += v * x
            return c + r[0], r[0]

        total, seen = lax.scan(body, 0.0, jnp.arange(3.0))
        lax.fori_loop(0, 3, lambda i, c: (r.__setitem__(1, r[1] + c), c * 2)[1], 1.0)
        n = lax.while_loop(lambda c: r[2] < 5.0, lambda c: (r.__setitem__(2, r[2] + 2.0), c + 1)[1], 0)
        lax.cond(x > 1, lambda: r.__setitem__(0, -r[0]), lambda: None)
        return total, seen, n, lax.switch(1, [lambda: r[0], lambda: r[1]])

    for wrap in (weft.jit, lambda f: f):
        r[...] = jnp.zeros(3)
        total, seen, n, picked = wrap(steps)(2.0)
        assert (total, seen.tolist(), n, picked) == (8, [0, 2, 6], 3, 7) and r[...].tolist() == [-6, 7, 6]


def power(x):
    """x[0]**3 by a reference in a loop, and something of the rest."""
    r, log = weft.new_ref(1.0), weft.new_ref(jnp.zeros(3))

    def body(i, c):
        r[...] *= x[0]
        log[i] = r[...] * x[1]
        return c + r[...]

    total = lax.fori_loop(0, 3, body, 0.0)
    return total + (log[...] * jnp.arange(3.0)).sum() + lax.cond(x[1] > 0, lambda: r[...] * x[1], lambda: 0.0)


def pure_power(x):
    p = [x[0], x[0] ** 2, x[0] ** 3]
    return sum(p) + (p[1] + 2 * p[2]) * x[1] + jnp.where(x[1] > 0, p[2] * x[1], 0.0)


@pytest.mark.parametrize("wrap", [lambda f: f, weft.jit], ids=["eager", "jit"])
def test_derivatives_and_batching(wrap):
    x, t = jnp.array([1.5, -0.5]), jnp.array([0.3, 0.7])
    xs = jnp.array([[1.5, -0.5], [2.0, 0.5], [-1.0, 1.0]])
    close = lambda a, b: [
        np.testing.assert_allclose(p, q, rtol=1e-5, atol=1e-6)
        for p, q in zip(weft.tree.leaves(a), weft.tree.leaves(b), strict=True)
    ]
    for transform in (
        lambda f: f(x),
        lambda f: weft.jvp(f, (x,), (t,)),
        lambda f: weft.grad(f)(x),
        lambda f: weft.grad(weft.jit(f))(x),
        lambda f: weft.vmap(f)(xs),
        lambda f: weft.vmap(weft.grad(f))(xs),
        lambda f: weft.grad(lambda v: weft.vmap(f)(v).sum())(xs),
        lambda f: weft.jacfwd(weft.grad(f))(x),
        lambda f: weft.jacrev(weft.grad(f))(x),
        lambda f: weft.grad(weft.checkpoint(f))(x),
        lambda f: weft.linearize(f, x)[1](t),
        lambda f: weft.grad(lambda v: weft.jvp(f, (v,), (t,))[1])(x),
    ):
        close(wrap(lambda: transform(power))(), transform(pure_power))


def test_a_derivative_through_scan_saves_what_it_needs():
    def f(x):
        r = weft.new_ref(jnp.zeros(()))

        def body(c, v):
            r[...] += v * c
            return c * x, r[...]

        return lax.scan(body, x, jnp.arange(3.0))[1].sum() + r[...]

    assert weft.grad(f)(2.0) == 60 == weft.jit(weft.grad(f))(2.0)
    np.testing.assert_allclose(weft.vmap(weft.grad(f))(jnp.array([2.0, 3.0])), [60, 126])


def test_vmap_over_references_and_batched_places():
    R = weft.new_ref(jnp.zeros((2, 3)))

    def f(r, x, i):
        r[i] = x
        weft.ref.addupdate(r, 0, 10.0)
        return r[weft.ds(i, 1)]

    assert weft.vmap(f)(R, jnp.arange(2.0), jnp.array([1, 2])).tolist() == [[0], [1]]
    assert R[...].tolist() == [[10, 0, 0], [10, 0, 1]]
    weft.vmap(lambda r: r.__setitem__(0, 5.0), in_axes=1)(R)
    assert R[...].tolist() == [[5, 5, 5], [10, 0, 1]]


def test_integers_and_randomness_have_no_tangents():
    def f(x):
        n = weft.new_ref(0)
        n[...] += 3
        return x * n[...]

    assert weft.grad(f)(2.0) == 3 and weft.jvp(f, (2.0,), (1.0,)) == (6, 3)


def test_empty_and_free():
    def f():
        r = weft.empty_ref(weft.ShapeDtypeStruct((2,), "float32"))
        r[...] = jnp.ones(2)
        x = r[...]
        weft.free_ref(r)
        return x

    assert f().tolist() == [1, 1] == weft.jit(f)().tolist()


R3 = lambda: weft.new_ref(jnp.zeros(3))


@pytest.mark.parametrize(
    "act,error,match",
    [
        (lambda: R3()[0, 1], ValueError, "too many indices"),
        (lambda: R3()["a"], TypeError, "indexed with integers"),
        (lambda: R3()[5], ValueError, "index 5 on axis 0 of size 3"),
        (lambda: R3()[::-1], ValueError, "positive step"),
        (lambda: R3()[weft.ds(2, 2)], ValueError, "out of bounds"),
        (lambda: R3().__setitem__(0, jnp.ones(2)), ValueError, r"shape \(2,\) is not the shape \(\)"),
        (lambda: R3().__setitem__(..., 1.0), ValueError, "is not the shape"),
        (lambda: R3().__setitem__(0, 3), ValueError, "int32 can't be written"),
        (lambda: weft.new_ref("a"), TypeError, "takes an array"),
        (lambda: weft.new_ref({"a": 1}), TypeError, "weft.tree.map"),
        (lambda: weft.new_ref(R3()), TypeError, "got a Ref"),
        (lambda: weft.freeze(3), TypeError, "takes a mutable reference"),
        (lambda: weft.new_ref(1.0, memory_space="host"), ValueError, "memory_space"),
        (lambda: list(R3()), TypeError, "iterated"),
        (lambda: jnp.sin(R3()), TypeError, "sin takes no mutable"),
        (lambda: weft.jit(lambda: R3())(), ValueError, "returned a mutable reference"),
        (lambda: weft.jit(lambda r: r)(R3()), ValueError, "returned a mutable reference"),
        (lambda: weft.jit(lambda a, b: a[0])(*[R3()] * 2), ValueError, "passed twice"),
        (lambda: lax.scan(lambda c, x: (c, R3()), 0.0, None, length=2), ValueError, "returned a mutable"),
        (lambda: weft.ds(weft.jit(lambda: 1)(), weft.new_ref), TypeError, "int"),
    ],
)
def test_refused(act, error, match):
    with pytest.raises(error, match=match):
        act()


def test_refused_across_transformations():
    r = R3()
    with pytest.raises(ValueError, match="vmapped value is written"):
        weft.vmap(lambda x: r.__setitem__(0, x))(jnp.arange(2.0))
    with pytest.raises(ValueError, match="depends on the differentiated variables"):
        weft.grad(lambda x: (r.__setitem__(0, x), x)[1])(2.0)
    with pytest.raises(ValueError, match="passed twice"):
        weft.jit(lambda a: a[0] + r[0])(r)
    with pytest.raises(ValueError, match="under two names"):
        weft.jit(lambda: weft.jit(lambda a: [a.__setitem__(0, 1.0), r.__setitem__(0, 2.0)])(r))()
    with pytest.raises(ValueError, match="condition writes"):
        weft.jit(lambda: lax.while_loop(lambda c: (r.__setitem__(0, 1.0), c < 3)[1], lambda c: c + 1, 0))()
    with pytest.raises(weft.errors.NonConcreteBooleanIndexError):
        weft.jit(lambda m: r[m])(jnp.array([True, False, True]))
    assert r[jnp.array([True, False, True])].shape == (2,)


# parts of references -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "outer",
    [
        1,
        slice(None),
        (slice(1, None), slice(None, None, 2)),
        (slice(None), -1),
        np.array([2, 0]),
        (np.array([0, 2]), slice(1, 3)),
        weft.ds(1, 2),
        (1, slice(2, None)),
    ],
)
@pytest.mark.parametrize("inner", [..., 0, -1, slice(1, None), np.array([1, 0])])
@pytest.mark.parametrize("jit", [False, True])
def test_parts_are_read_and_written_where_numpy_has_them(outer, inner, jit):
    want = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    at = lambda i: slice(i.start, i.start + i.size) if isinstance(i, weft.api.refs.Slice) else i
    part = want[at(outer)].copy()

    def run(ref):
        view = ref.at[outer]
        old = view[inner]
        view[inner] = jnp.full(part[inner].shape, 50.0)
        view.addupdate(jnp.ones(part.shape))
        return old, view[...], view.shape

    got = (weft.jit(run) if jit else run)(ref := weft.new_ref(want))
    old = part[inner].copy()
    part[inner] = 50.0
    part += 1
    want[at(outer)] = part
    for a, b in zip((got[0], got[1], ref[...]), (old, part, want)):
        np.testing.assert_array_equal(value(a), b)
    assert tuple(map(int, got[2])) == part.shape


def test_parts_of_parts_with_traced_places():
    ref = weft.new_ref(jnp.arange(12.0).reshape(3, 4))
    f = weft.jit(lambda ref, i, j: ref.at[i].at[weft.ds(1, 3)][j])
    assert [value(f(ref, i, j)).item() for i, j in ((0, 0), (2, -1), (-1, 1))] == [1.0, 11.0, 10.0]
    weft.ref.swap(ref.at[0].at[1:3], 1, 9.0)
    weft.ref.set(ref.at[:, 0], slice(1, 2), jnp.zeros(1))
    assert value(ref[0, 2]) == 9.0 and value(ref[1, 0]) == 0.0
    assert "b[1,2] <- " in str(
        weft.make_jaxpr(lambda x: weft.new_ref(x).at[1].at[2:].__setitem__(0, 0.0))(jnp.ones((2, 3)))
    )
    for bad, error in (
        (lambda: ref.at[5], ValueError),
        (lambda: ref.at[0].at[4], ValueError),
        (lambda: ref.at[np.array([0, 1])].at[0], TypeError),
        (lambda: ref.at[0].__setitem__(0, jnp.ones(2)), ValueError),
        (lambda: ref.at[0].at["a"], TypeError),
    ):
        with pytest.raises(error):
            bad()
    assert value(weft.grad(lambda x: _written(x))(3.0)) == 3.0


def _written(x):
    r = weft.new_ref(jnp.zeros(3))
    r.at[1][...] = x * 2
    r.at[:2][1] += x
    return r[...].sum()


# rules of the user's that close over references ----------------------------------------------------------------------


def logging():
    """A function whose rule for the way back writes its cotangent to a reference, and the reference."""
    ref = weft.new_ref(-1.0)

    @weft.custom_vjp
    def f(x):
        return x * 2

    def bwd(_, ct):
        ref[...] = ct
        return (ct * 2,)

    f.defvjp(lambda x: (x * 2, None), bwd)
    return f, ref


@pytest.mark.parametrize(
    "around, derivative, logged",
    [
        (lambda f: lambda x: f(x) ** 2, 24.0, 12.0),
        (lambda f: weft.jit(lambda x: f(x) ** 2), 24.0, 12.0),
        (lambda f: weft.checkpoint(lambda x: f(x) ** 2), 24.0, 12.0),
        (lambda f: lambda x: lax.cond(x > 0, lambda x: f(x) ** 2, lambda x: x, x), 24.0, 12.0),
        (lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0], 4.0, 2.0),
    ],
)
def test_rules_write_to_references_that_they_close_over(around, derivative, logged):
    for transform in (weft.grad, lambda g: weft.jit(weft.grad(g))):
        f, ref = logging()
        assert value(transform(around(f))(3.0)) == derivative and value(ref[...]) == logged


@pytest.mark.parametrize(
    "around, derivative, logged",
    [
        (lambda f: lambda x: f(x) ** 2, 24.0, 2.0),
        (lambda f: weft.jit(lambda x: f(x) ** 2), 24.0, 2.0),
        (lambda f: lambda x: lax.cond(x > 0, lambda x: f(x) ** 2, lambda x: x, x), 24.0, 2.0),
        (lambda f: lambda x: lax.switch(1, [lambda x: x, f], x), 2.0, 2.0),
        (lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0], 4.0, 4.0),
        (lambda f: lambda x: lax.while_loop(lambda c: c < 9, f, x), 4.0, 4.0),
    ],
)
def test_forward_rules_write_to_references_that_they_close_over(around, derivative, logged):
    for transform in (lambda g: g, weft.jit):
        ref = weft.new_ref(-1.0)
        f = weft.custom_jvp(lambda x: x * 2)

        @f.defjvp
        def rule(primals, tangents):
            ref[...] = tangents[0] * 2
            return f(*primals), tangents[0] * 2

        assert (
            value(transform(lambda x: weft.jvp(around(f), (x,), (1.0,)))(3.0)[1]) == derivative
            and value(ref[...]) == logged
        )


def test_functions_with_rules_read_and_write_references():
    ref = weft.new_ref(1.0)
    for custom in (weft.custom_vjp, weft.custom_jvp):
        f = custom(lambda x: [ref.__setitem__(..., x), x * ref[...]][1])
        f.defvjp(f, f) if custom is weft.custom_vjp else f.defjvp(f)  # never called
        assert (
            value(f(2.0)) == 4.0
            and value(ref[...]) == 2.0
            and value(weft.jit(f)(3.0)) == 9.0
            and value(ref[...]) == 3.0
        )
    f = weft.custom_vjp(lambda x, r: x * 2)
    f.defvjp(lambda x, r: (x * 2, r), lambda r, ct: [r.__setitem__(..., ct), (ct * 2, None)][1])
    assert value(weft.jit(weft.grad(lambda x, r: f(x, r) ** 2))(3.0, ref)) == 24.0 and value(ref[...]) == 12.0


def test_pulling_back_into_references():
    def f(x, y):
        return (x["a"] * y).sum()

    def accumulate(x, y):
        total = weft.new_ref(jnp.zeros(3))
        pull = weft.vjp(f, {"a": x}, y)[1].with_refs({"a": total}, weft.ad.DontWant())
        assert [repr(v) for v in (*pull(1.0)[0].values(), pull(2.0)[1])] == ["GradRef()", "DidntWant()"]
        return total[...]

    x, y = jnp.arange(3.0), jnp.array([1.0, 2.0, 4.0])
    for run in (accumulate, weft.jit(accumulate)):
        assert value(run(x, y)).tolist() == [3, 6, 12]
    pull = weft.vjp(f, {"a": x}, y)[1]
    assert [value(g).tolist() for g in weft.tree.leaves(pull.with_refs({"a": 0}, weft.ad.GradValue())(1.0))] == [
        [1, 2, 4],
        [0, 1, 2],
    ]
    assert value(weft.jit(lambda pull, ct: pull(ct))(pull, 2.0)[1]).tolist() == [0, 2, 4]  # a pytree of residuals
    with pytest.raises(ValueError, match=r"structure PyTreeDef\(\(\{'a': \*\}, \*\)\); got"):
        pull.with_refs(weft.ad.DontWant(), weft.ad.DontWant())
    with pytest.raises(ValueError, match=r"shape \(3,\) is not the shape \(2,\)"):
        pull.with_refs({"a": weft.new_ref(jnp.zeros(2))}, weft.ad.DontWant())(1.0)


def test_a_program_that_writes_takes_over_donated_arguments():
    r = weft.new_ref(jnp.zeros(4))

    def f(x):
        r[...] += x
        return x * 2

    inner = weft.jit(f, donate_argnums=0)
    assert weft.jit(lambda x: inner(x + 1) + r[...])(X).tolist() == (3 * (X + 1)).tolist()
    assert inner(jnp.array(X)).tolist() == (2 * X).tolist() and r[...].tolist() == (2 * X + 1).tolist()


@pytest.mark.parametrize("around", [lambda f: f, weft.jit])
@pytest.mark.parametrize(
    "fun,out,grad",
    [
        (lambda f, x: f(jnp.ones(2)), [1, 1], [0, 0]),
        (lambda f, x: f(jnp.ones(2)) * x, [1, 2], [1, 1]),
        (lambda f, x: f(x) + f(jnp.ones(2)) * x, [2, 4], [2, 2]),
    ],
    ids=["constant", "times", "both"],
)
def test_a_rule_in_reverse_for_constants_that_went_through_a_reference(around, fun, out, grad):
    """What a reference holds has a tangent, and where it depends on no argument it is zero: it needs no derivative
    in forward mode.
    """
    rule = weft.custom_vjp(lambda x: x * 1)
    rule.defvjp(lambda x: (x, None), lambda _, ct: (ct,))
    through = lambda x: rule(weft.new_ref(x)[...])
    got, pull = weft.vjp(around(lambda x: fun(through, x)), jnp.array([1.0, 2.0]))
    assert got.tolist() == out and pull(jnp.ones(2))[0].tolist() == grad


@pytest.mark.parametrize("x64", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("kind", ["uint8", "int32"])
def test_a_traced_place_beside_a_number(kind, x64):
    """The starts of a window have one dtype: that of those that are traced."""
    table = np.arange(12.0, dtype=np.float32).reshape(3, 4)

    def f(i):
        ref = weft.new_ref(table)
        old = ref[i, 2]
        ref[1, i] = np.float32(50)
        return old, ref[...]

    with weft.enable_x64(x64):
        old, new = weft.jit(f)(np.asarray(2, kind))
    assert value(old) == 10.0
    table[1, 2] = 50.0
    np.testing.assert_array_equal(value(new), table)


def _written_inside(kind, x):
    """Writes 3 x[0] to x[1] inside of a program of that kind."""
    ref = weft.new_ref(x)

    def write(*_):
        ref[1] = 3 * ref[0]

    if kind == "jit":
        weft.jit(write)()
    elif kind == "cond":
        lax.cond(x[2] > 0, write, lambda: None)
    elif kind == "scan":
        lax.scan(lambda c, i: (c, write()), 0, jnp.arange(2))
    else:
        weft.checkpoint(write)()
    return ref[...]


@pytest.mark.parametrize("kind", ["jit", "cond", "scan"])
def test_reverse_derivatives_pass_through_writes_of_programs_without_results(kind):
    x = jnp.arange(3.0)
    want = [[1.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    f = lambda x: _written_inside(kind, x)
    assert weft.jacfwd(f)(x).tolist() == weft.jacrev(f)(x).tolist() == weft.jit(weft.jacrev(f))(x).tolist() == want
    assert weft.linearize(f, x)[1](jnp.ones(3)).tolist() == [1.0, 3.0, 1.0]


def test_elements_do_not_choose_differently_what_to_write():
    def f(x, choice):
        ref = weft.new_ref(x)
        lax.cond(choice, lambda: ref.__setitem__(0, 9.0), lambda: None)
        return ref[...]

    with pytest.raises(NotImplementedError, match="vmap-of-cond"):
        weft.vmap(f)(jnp.ones((2, 3)), jnp.array([True, False]))
    assert weft.vmap(f, (0, None))(jnp.ones((2, 3)), True)[:, 0].tolist() == [9.0, 9.0]


def test_parts_of_references_are_arguments():
    ref = weft.new_ref(jnp.arange(6.0).reshape(3, 2))

    def double(part):
        part[...] = part[...] * 2

    def first(part):
        part[0] = 100.0

    weft.jit(double)(ref.at[1])
    assert ref[1].tolist() == [4.0, 6.0]
    weft.jit(lambda whole, i: double(whole.at[i]) or weft.jit(double)(whole.at[i]))(ref, 2)
    assert ref[2].tolist() == [16.0, 20.0]
    for choice in (True, False):
        lax.cond(choice, double, first, ref.at[0])
    assert ref[0].tolist() == [100.0, 2.0]
    assert weft.tree.structure(ref.at[0]).num_leaves == 1
    with pytest.raises(ValueError, match="twice"):
        weft.jit(lambda a, b: None)(ref.at[0], ref.at[1])
    with pytest.raises(ValueError, match="Map over the reference"):
        weft.vmap(lambda part: part[...])(ref.at[0])


def test_scan_gives_the_parts_of_references():
    def f(x, y, reverse=False):
        ref = weft.new_ref(x)

        def body(c, given):
            part, y = given
            part[...] = part[...] + c
            return part[...].sum() + y, y

        return lax.scan(body, 0.0, (ref, y), reverse=reverse), ref[...]

    x, y = np.arange(6.0, dtype="float32").reshape(3, 2), np.arange(3.0, dtype="float32")
    for reverse in (False, True):
        c, want = 0.0, x.copy()
        for i in range(3)[::-1] if reverse else range(3):
            want[i] += c
            c = want[i].sum() + y[i]
        (carry, ys), held = weft.jit(f, static_argnums=2)(x, y, reverse)
        assert float(carry) == c and ys.tolist() == y.tolist()
        np.testing.assert_array_equal(held, want)
    with pytest.raises(ValueError, match="no leading axis"):
        lax.scan(lambda c, r: (c, None), 0, weft.new_ref(1.0))
