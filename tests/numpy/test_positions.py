"""Positions of every integer dtype, along axes longer than it counts and beyond 2^31: what is out of bounds stays
so, and what is within is found.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from platforms import on, under_test
from weft import lax
from weft.primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p

LONG = np.arange(300, dtype=np.int32)
BEYOND = {
    "int8": [-1, -128, 5, 127],
    "uint8": [200, 255, 3],
    "int16": [-1, -300, 299, 300, -301, 32767],
    "uint16": [299, 300, 65535],
    "int32": [-1, 299, 2**31 - 1, -(2**31)],
    "uint32": [299, 300, 2**31, 2**31 + 1, 2**32 - 1],
}


def rows(positions, n=300):
    """Negative ones counted from the end."""
    return np.array([p + n if p < 0 else p for p in positions])


def clipped(positions, n=300):
    return np.clip(rows(positions, n), 0, n - 1)


def written(x, positions, value=7):
    x = x.copy()
    x[positions] = value
    return x


def inside(positions, n=300):
    return [p for p in rows(positions, n) if 0 <= p < n]


# name: (of an array and positions, what NumPy computes of it and the positions as Python numbers)
OF_MANY = {
    "x[i]": (lambda x, i: x[i], lambda x, p: x[clipped(p)]),
    "x[i, 1]": (lambda x, i: x.reshape(150, 2)[i, 1], lambda x, p: x.reshape(150, 2)[clipped(p, 150), 1]),
    "get clip": (lambda x, i: x.at[i].get(mode="clip"), lambda x, p: x[clipped(p)]),
    "get fill": (
        lambda x, i: x.at[i].get(mode="fill", fill_value=-5),
        lambda x, p: np.where((rows(p) >= 0) & (rows(p) < 300), x[clipped(p)], -5),
    ),
    "set": (lambda x, i: x.at[i].set(7), lambda x, p: written(x, inside(p))),
    "set clip": (lambda x, i: x.at[i].set(7, mode="clip"), lambda x, p: written(x, clipped(p))),
    "take": (
        lambda x, i: jnp.take(x, i, fill_value=-5),
        lambda x, p: np.where((rows(p) >= 0) & (rows(p) < 300), x[clipped(p)], -5),
    ),
    "take clip": (lambda x, i: jnp.take(x, i, mode="clip"), lambda x, p: x[np.clip(p, 0, 299)]),
    "take wrap": (lambda x, i: jnp.take(x, i, mode="wrap"), lambda x, p: x[np.mod(p, 300)]),
    "take_along_axis": (lambda x, i: jnp.take_along_axis(x, i, 0, mode="clip"), lambda x, p: x[clipped(p)]),
    "put_along_axis": (lambda x, i: jnp.put_along_axis(x, i, 7, 0, inplace=False), lambda x, p: written(x, inside(p))),
    "put": (lambda x, i: jnp.put(x, i, 7, mode="clip", inplace=False), lambda x, p: written(x, np.clip(p, 0, 299))),
    "put wrap": (lambda x, i: jnp.put(x, i, 7, mode="wrap", inplace=False), lambda x, p: written(x, np.mod(p, 300))),
    "index_take": (lambda x, i: lax.index_take(x, (i,), (0,)), lambda x, p: x[np.mod(p, 300)]),
    "choose clip": (lambda x, i: jnp.choose(i, list(range(140)), mode="clip"), lambda x, p: np.clip(p, 0, 139)),
    "choose wrap": (lambda x, i: jnp.choose(i, list(range(140)), mode="wrap"), lambda x, p: np.mod(p, 140)),
    "vmap x[i]": (lambda x, i: weft.vmap(lambda i: x[i])(i), lambda x, p: x[clipped(p)]),
    "vmap dynamic_slice": (
        lambda x, i: weft.vmap(lambda i: lax.dynamic_slice(x, (i,), (1,)))(i),
        lambda x, p: x[clipped(p)][:, None],
    ),
    "vmap dynamic_update_slice": (
        lambda x, i: weft.vmap(lambda i: lax.dynamic_update_slice(x, jnp.full(1, 7, x.dtype), (i,)))(i),
        lambda x, p: np.stack([written(x, [q]) for q in clipped(p)]),
    ),
    "delete": (
        lambda x, i: jnp.delete(x, i[:1], assume_unique_indices=True),
        lambda x, p: np.delete(x, inside(p[:1])) if inside(p[:1]) else x[:299],
    ),
    "insert": (lambda x, i: jnp.insert(x, i, 7), lambda x, p: np.insert(x, np.clip(rows(p, 300), 0, 300), 7)),
    "segment_sum": (
        lambda x, i: weft.ops.segment_sum(jnp.ones_like(i), i, 300).astype(int),
        lambda x, p: np.bincount([q for q in p if 0 <= q < 300], minlength=300),
    ),
}
OF_ONE = {
    "x[i]": (lambda x, i: x[i], lambda x, p: x[clipped([p])[0]]),
    "x[i, 1]": (lambda x, i: x.reshape(150, 2)[i, 1], lambda x, p: x.reshape(150, 2)[clipped([p], 150)[0], 1]),
    "x[None, i, :1]": (
        lambda x, i: x.reshape(150, 2)[None, i, :1],
        lambda x, p: x.reshape(150, 2)[None, clipped([p], 150)[0], :1],
    ),
    "set clip": (lambda x, i: x.at[i].set(7, mode="clip"), lambda x, p: written(x, clipped([p]))),
    "dynamic_slice": (
        lambda x, i: lax.dynamic_slice(x, (i,), (2,)),
        lambda x, p: x[np.clip(rows([p])[0], 0, 298) :][:2],
    ),
    "dynamic_index_in_dim": (lambda x, i: lax.dynamic_index_in_dim(x, i), lambda x, p: x[clipped([p])]),
    "dynamic_update_slice": (
        lambda x, i: lax.dynamic_update_slice(x, jnp.full(1, 7, x.dtype), (i,)),
        lambda x, p: written(x, clipped([p])),
    ),
    "switch": (lambda x, i: lax.switch(i, [lambda k=k: k for k in range(140)]), lambda x, p: np.clip(p, 0, 139)),
    "select_n": (lambda x, i: lax.select_n(i % 3, 1, 2, 3), lambda x, p: p % 3 + 1),
}


def agree(cases, positions, dtype, of_one: bool = False):
    """All cases as one program."""
    programs = weft.jit(lambda x, i: [fun(x, i) for fun, _ in cases.values()])
    for p in positions if of_one else [positions]:
        want = p if of_one else np.array([min(q, 2**62) for q in p], np.int64)
        for name, got, (_, expected) in zip(cases, programs(LONG, np.array(p, dtype)), cases.values()):
            np.testing.assert_array_equal(got, expected(LONG, want), err_msg=f"{name} at {p}")


@pytest.mark.parametrize("platform", under_test())
@pytest.mark.parametrize("dtype", BEYOND)
def test_positions(dtype, platform):
    with on(platform):
        agree(OF_MANY, BEYOND[dtype], dtype)
        agree(OF_ONE, BEYOND[dtype], dtype, of_one=True)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_wide_positions(dtype):
    positions = [299, 300, 2**32, 2**32 + 1, 2**62] + ([-1, -(2**40)] if dtype == "int64" else [2**63, 2**64 - 1])
    with weft.enable_x64(True):
        agree(
            {
                name: OF_MANY[name]
                for name in (
                    "x[i]",
                    "get fill",
                    "set",
                    "set clip",
                    "take clip",
                    "take_along_axis",
                    "vmap x[i]",
                    "vmap dynamic_slice",
                    "insert",
                )
            },
            positions,
            dtype,
        )
        agree(OF_ONE, positions, dtype, of_one=True)


def test_flat_positions_need_room():
    narrow = jnp.array([3], "int8")
    with pytest.raises(
        ValueError, match=r"ravel_multi_index: positions in an array of shape \(300, 300\) do not fit dtype int8"
    ):
        jnp.ravel_multi_index((narrow, narrow), (300, 300), mode="clip")
    assert jnp.ravel_multi_index((-narrow, narrow), (300, 300), mode="wrap", dtype="int32").tolist() == [297 * 300 + 3]
    assert jnp.ravel_multi_index((narrow, narrow.astype("uint8")), (16, 16), mode="clip").dtype == jnp.int16


def test_a_scalar_that_its_dtype_does_not_hold():
    from weft.primitives.rules import scalar_like

    with pytest.raises(OverflowError, match="the number 300 is not a value of dtype int8"):
        scalar_like(jnp.zeros(3, "int8"), 300)


@pytest.mark.parametrize("x64", [False, True])
def test_starts_of_several_dtypes_in_a_batch(x64):
    x, starts = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([0, 2], np.int32)
    read = lambda i: dynamic_slice_p.bind(x, i, 0, slice_sizes=(1, 2))
    write = lambda i: dynamic_update_slice_p.bind(x, -np.ones((1, 2), np.float32), i, 0)
    with weft.enable_x64(x64):
        assert weft.vmap(read)(starts).ravel().tolist() == [0, 1, 8, 9]
        assert [int((row < 0).argmax()) for row in np.asarray(weft.vmap(write)(starts)).reshape(2, -1)] == [0, 8]
