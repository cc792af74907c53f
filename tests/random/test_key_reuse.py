"""jax_debug_key_reuse: what raises KeyReuseError in real JAX raises here, in eager code and in programs, and what is
allowed there is allowed.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import lax, random as r
from weft.errors import KeyReuseError
from weft.transforms.key_reuse import _MOST, sliced

KEYS = lambda n=3: r.split(r.key(0), n)
use_all = weft.vmap(r.normal)


def both(k):
    return r.normal(k) + r.uniform(k)


def halves(c, _):
    a, b = r.split(c)
    return a, r.normal(b)


def after(use):
    """Uses a key, then draws from it."""

    def run(k):
        use(k)
        return r.normal(k)

    return run


def chosen(f, g):
    """A choice between two functions of two keys, and what is drawn from its result after it."""

    def run(draw):
        def program(k):
            a, b = r.fold_in(k, 1), r.fold_in(k, 2)
            return draw(lax.cond(True, f, g, a, b), a, b)

        return program

    return run


element = lambda i: (
    lambda k: (
        lambda ks: [lax.cond(True, lambda ks: r.normal(ks[0]), lambda ks: r.normal(ks[1]), ks), r.normal(ks[i])]
    )(KEYS())
)
same, other = (
    chosen(lambda a, b: (a, b), lambda a, b: (b, b)),
    chosen(lambda a, b: r.normal(a), lambda a, b: r.normal(b)),
)
FINE = {
    "fold_in": lambda k: [r.fold_in(k, 1), r.fold_in(k, 2), r.normal(k), r.fold_in(k, 1)],
    "clone": lambda k: [r.normal(r.clone(k)), r.normal(k)],
    "words": lambda k: [r.normal(k), r.key_data(k)],
    "wrapped again": lambda k: [r.normal(k), r.normal(r.wrap_key_data(r.key_data(k)))],
    "carry": lambda k: lax.scan(halves, k, None, length=3),
    "one branch": lambda k: lax.cond(True, r.normal, r.uniform, k),
    "fori": lambda k: lax.fori_loop(0, 3, lambda i, c: halves(c, 0)[0], k),
    "elements": lambda k: (lambda ks: [r.normal(ks[0]), r.normal(ks[1])])(r.split(k)),
    "xs": lambda k: lax.scan(lambda c, k: (c, r.normal(k)), 0.0, r.split(k, 3)),
    "map": lambda k: lax.map(r.normal, r.split(k, 3)),
    "fold_in mapped": lambda k: weft.vmap(lambda i: r.normal(r.fold_in(k, i)))(jnp.arange(3)),
    "samplers": lambda k: [
        f(x)
        for f, x in zip(
            (
                lambda k: r.permutation(k, 5),
                lambda k: r.gamma(k, 2.0),
                lambda k: r.poisson(k, 3.0),
                lambda k: r.beta(k, 1.0, 2.0),
            ),
            r.split(k, 4),
        )
    ],
    "grad": lambda k: weft.grad(lambda x: x * r.normal(k))(1.0),
    "broadcast": lambda k: use_all(jnp.broadcast_to(k, (3,))),
    "handed on": lambda k: r.normal(weft.jit(lambda k: k)(k)),
    "choice": lambda k: r.choice(k, 5, (3,), replace=False),
    "handed on by all branches": same(lambda ks, a, b: [r.normal(ks[1]), r.normal(a)]),
    "new in one branch": chosen(lambda a, b: a, lambda a, b: r.fold_in(b, 3))(lambda k, a, b: r.normal(k)),
    "an element that no branch takes": element(2),
    "a key for each branch": other(lambda x, a, b: x),
    "token": weft.jit(lambda k: (weft.jit(lambda t: (t, k))(lax.create_token()), r.normal(k))[1]),
}
REUSE = {
    "twice": both,
    "jit": weft.jit(both),
    "split then use": after(r.split),
    "jit twice": after(weft.jit(r.normal)),
    "vmapped": lambda k: weft.vmap(both)(r.split(k)),
    "scan constant": lambda k: lax.scan(lambda c, _: (c, r.normal(k)), 0, None, length=3),
    "scan carry": lambda k: lax.scan(lambda c, _: (c, r.normal(c)), k, None, length=3),
    "while carry": lambda k: lax.while_loop(
        lambda c: c[1] < 3.0, lambda c: (c[0], c[1] + r.uniform(c[0]) + 1), (k, 0.0)
    ),
    "while constant": lambda k: lax.while_loop(lambda c: c < 3.0, lambda c: c + r.uniform(k) + 1, 0.0),
    "while condition": lambda k: lax.while_loop(lambda c: r.uniform(k) < 0.3, lambda c: c + 1, 0.0),
    "used by one branch": after(lambda k: lax.cond(True, r.normal, lambda k: 0.0, k)),
    "checkpoint": weft.checkpoint(both),
    "grad": lambda k: weft.grad(lambda x: x * both(k))(1.0),
    "one element": lambda k: (lambda ks: [r.normal(ks[0]), r.normal(ks[0])])(r.split(k)),
    "element and all": lambda k: (lambda ks: [r.normal(ks[0]), use_all(ks)])(r.split(k)),
    "all and element": lambda k: (lambda ks: [use_all(ks), r.normal(ks[0])])(r.split(k)),
    "returned": lambda k: r.normal(weft.jit(lambda k: (r.normal(k), k))(k)[1]),
    "closed over": lambda k: [weft.jit(lambda: r.normal(k))(), weft.jit(lambda: r.normal(k))()],
    "disable_jit": weft.disable_jit()(lambda k: both(k)),
    "concatenated": weft.jit(lambda k: jnp.concatenate([k[None], k[None]])),
    "parent": lambda k: [r.split(k), r.split(k)],
    "handed on by all branches": weft.jit(same(lambda ks, a, b: [r.normal(ks[1]), r.normal(b)])),
    "used by the first branch": other(lambda x, a, b: [x, r.normal(a)]),
    "used by the last branch": other(lambda x, a, b: [x, r.normal(b)]),
    "element of the first branch": element(0),
    "element of the last branch": element(1),
    "the second that a branch uses": chosen(lambda a, b: r.normal(a) + r.normal(b), lambda a, b: 0.0)(
        lambda x, a, b: [x, r.normal(b)]
    ),
    "spent in the first branch": chosen(lambda a, b: (r.normal(a), a)[1], lambda a, b: b)(lambda k, a, b: r.normal(k)),
    "spent in the last branch": chosen(lambda a, b: a, lambda a, b: (r.normal(b), b)[1])(lambda k, a, b: r.normal(k)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FINE)
@pytest.mark.parametrize("jit", [False, True])
def test_allowed(name, jit):
    with weft.debug_key_reuse():
        out = (weft.jit(FINE[name]) if jit else FINE[name])(r.key(0))
    want = FINE[name](r.key(0))  # unchecked: the check changes no number
    assert weft.tree.structure(out) == weft.tree.structure(want)
    for got, value in zip(weft.tree.leaves(out), weft.tree.leaves(want), strict=True):
        words = r.key_data if jnp.issubdtype(value.dtype, weft.dtypes.prng_key) else lambda v: v
        assert got.dtype == value.dtype and jnp.allclose(words(got), words(value), rtol=1e-5)


@pytest.mark.parametrize("name", REUSE)
@pytest.mark.parametrize("jit", [False, True])
def test_reuse_raises(name, jit):
    with weft.debug_key_reuse(), pytest.raises(KeyReuseError) as e:
        (weft.jit(REUSE[name]) if jit else REUSE[name])(r.key(0))
    assert len(str(e.value).splitlines()) <= 10


def test_the_message_names_function_argument_and_first_use():
    k = r.key(0)
    with (
        weft.debug_key_reuse(),
        pytest.raises(KeyReuseError, match="passed to uniform: argument 0 was consumed by normal at .*test_key_reuse"),
    ):
        both(k)


@pytest.mark.parametrize(
    "shape,start,limit,strides",
    [
        ((5,), (1,), (4,), None),
        ((5,), (0,), (5,), (2,)),
        ((3, 4), (0, 1), (3, 4), (2, 2)),
        ((3, 4), (1, 0), (2, 4), None),
        ((2, 3, 4), (0, 1, 1), (2, 3, 4), (1, 1, 2)),
        ((3, 0), (1, 0), (3, 0), None),
        ((), (), (), None),
    ],
)
def test_a_slice_takes_these_keys(shape, start, limit, strides):
    positions = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    want = positions[tuple(slice(*bounds) for bounds in zip(start, limit, strides or (1,) * len(shape)))]
    assert sliced(shape, dict(start_indices=start, limit_indices=limit, strides=strides)) == set(want.ravel().tolist())


def test_elements_of_very_large_arrays_of_keys_are_not_told_apart():
    part = dict(start_indices=(0, 2), limit_indices=(1, 4), strides=None)
    assert sliced((_MOST // 10, 10), part) == {2, 3} and not sliced((_MOST // 10 + 1, 10), part)


def test_slices_of_a_matrix_of_keys():
    draw = lambda keys: weft.vmap(weft.vmap(r.normal))(keys)
    with weft.debug_key_reuse():
        keys = r.split(r.key(0), (2, 4))
        draw(keys[:, ::2])
        draw(keys[:, 1::2])
        with pytest.raises(KeyReuseError):
            draw(keys[1:, 2:3])


def test_off_by_default_and_not_for_raw_keys():
    both(r.key(0))
    with weft.debug_key_reuse():
        both(r.PRNGKey(0))
        jitted, k = weft.jit(r.normal), r.key(1)
        with weft.debug_key_reuse(False):
            jitted(k), jitted(k)
        jitted(k)
        with pytest.raises(KeyReuseError):
            jitted(k)
