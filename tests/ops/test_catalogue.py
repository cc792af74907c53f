"""Every row of the catalogue on every backend there is: its value is the reference's, its jvp is numerically right and
agrees with its vjp, vmap is the loop, and jit changes nothing.
"""

import sys
import pathlib

import numpy as np
import pytest
from platforms import on, under_test

import weft
import weft.numpy as jnp
from weft.base import dtypes
from weft.core.jaxpr import ClosedJaxpr
from weft.base.avals import shaped
from weft.runtime.dispatch import program_for
from weft.runtime.reference import ReferenceBackend
from weft.transforms.stage import stage

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from catalogue import ROWS  # noqa: E402
from catalogue_rules import NO_LOOP  # noqa: E402


@pytest.fixture(params=under_test(), scope="module")
def platform(request):
    with on(request.param):
        yield request.param


@pytest.fixture(params=ROWS, ids=lambda row: row.id)
def row(request):
    return request.param


def reference(row, args) -> np.ndarray:
    """The row's value by the primitives' reference rules alone."""
    jaxpr, consts = stage(lambda *xs: [row.fun(*xs)], [shaped(tuple(a.shape), a.dtype) for a in args])
    backend = ReferenceBackend()
    device = backend.devices()[0]
    program, consts = program_for(ClosedJaxpr(jaxpr, consts))
    put = lambda v: backend.put(np.asarray(v), shaped(np.shape(v), np.asarray(v).dtype), device, False)
    return np.asarray(backend.compile(program, device, None).execute([*map(put, consts), *map(put, args)])[0]._host())


def same(a, b, rtol) -> None:
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape
    wide = lambda x: x.astype("complex128" if x.dtype.kind == "c" else "float64")
    np.testing.assert_allclose(wide(a), wide(b), rtol=rtol, atol=rtol)


def test_value_is_the_reference_s_eager_and_compiled(row, platform):
    args = row.sample()
    want = reference(row, args)
    same(row.fun(*map(jnp.asarray, args)), want, row.rtol)
    same(weft.jit(row.fun)(*map(jnp.asarray, args)), want, row.rtol)


def _float_positions(args) -> list[int]:
    return [i for i, a in enumerate(args) if dtypes.is_float(dtypes.dtype(a.dtype))]


def _in_floats(row, args):
    at = _float_positions(args)

    def f(*floats):
        full = list(map(jnp.asarray, args))
        for i, v in zip(at, floats):
            full[i] = v
        return row.fun(*full)

    return f, [jnp.asarray(args[i]) for i in at]


DIFFERENTIABLE = [r for r in ROWS if r.grad]


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=lambda row: row.id)
def test_derivatives(row, platform):
    """jvp against central differences; <ct, jvp t> = <vjp ct, t>."""
    f, primals = _in_floats(row, row.sample())
    rng = np.random.RandomState(0)
    tangents = [jnp.asarray(rng.normal(size=p.shape).astype("float32")) for p in primals]
    ct = jnp.asarray(rng.normal(size=weft.eval_shape(f, *primals).shape).astype("float32"))
    step = 1e-3

    def everything(primals, tangents, ct):
        """As one program, which is compiled once."""
        ahead, behind = [f(*[p + s * step * t for p, t in zip(primals, tangents)]) for s in (1, -1)]
        tangent, cotangents = weft.jvp(f, primals, tangents)[1], weft.vjp(f, *primals)[1](ct)
        left, right = jnp.vdot(ct, tangent), sum(jnp.vdot(c, t) for c, t in zip(cotangents, tangents))
        return ahead, behind, tangent, left, right

    ahead, behind, tangent, left, right = [
        np.asarray(x, "float64") for x in weft.jit(everything)(primals, tangents, ct)
    ]
    np.testing.assert_allclose(tangent, (ahead - behind) / (2 * step), rtol=3e-2, atol=3e-2)
    assert left == pytest.approx(right, rel=2e-4, abs=2e-4)


def test_vmap_is_the_loop(row, platform):
    """The loop over the batch is the reference's, to which each backend's value was compared above."""
    if row.name in NO_LOOP:
        return
    args = list(map(np.asarray, row.sample()))
    batch = [np.stack([a, a[::-1] if a.shape else a]) for a in args]
    last = [np.moveaxis(b, 0, -1) for b in batch]

    def mapped(args, batch, last):
        """As one program, which is compiled once."""
        results = [weft.vmap(row.fun)(*batch), weft.vmap(row.fun, in_axes=-1)(*last)]
        if len(args) > 1:  # the others are those of the first
            results.append(weft.vmap(row.fun, in_axes=(0, *[None] * (len(args) - 1)))(batch[0], *args[1:]))
        return results

    rows = [[b[k] for b in batch] for k in range(2)]
    first, second = [reference(row, given) for given in rows]
    loops = [np.stack([first, second])] * 2
    if len(args) > 1:
        loops.append(np.stack([first, reference(row, [rows[1][0], *args[1:]])]))
    for got, want in zip(
        weft.jit(mapped)(*[[jnp.asarray(a) for a in s] for s in (args, batch, last)]), loops, strict=True
    ):
        same(got, want, row.rtol)
