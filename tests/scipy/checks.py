"""Checks of every elementwise function: its values in each dtype, its derivatives, vmap and jit."""

import warnings

import numpy as np

import weft
import weft.numpy as jnp

# float64 values are computed by XLA; the rest, for the sake of time, by the reference rules, which compile nothing
REFERENCE = weft.devices("reference")[0]
TOLERANCE = {"float64": (1e-10, 1e-13), "float32": (3e-5, 3e-6), "float16": (1e-2, 2e-3), "bfloat16": (6e-2, 2e-2)}


def flat(out) -> list:
    return list(out) if isinstance(out, (list, tuple)) else [out]


def same(got, want, rtol, atol) -> None:
    got, want = flat(got), flat(want)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        kind = "complex128" if np.asarray(w).dtype.kind == "c" else "float64"
        np.testing.assert_allclose(np.asarray(g).astype(kind), np.asarray(w).astype(kind), rtol=rtol, atol=atol)


def values(f, reference, args, dtypes=tuple(TOLERANCE), tolerance=None, result=lambda dtype: dtype) -> None:
    """`f` compiled is the reference's value at the arguments as each dtype has them; arguments of integers stay so."""
    for dtype in dtypes:
        if tolerance and tolerance.get(dtype, ()) is None:
            continue
        with weft.enable_x64(dtype == "float64"), weft.default_device(None if dtype == "float64" else REFERENCE):
            given = [jnp.asarray(a).astype(dtype) if a.dtype.kind == "f" else a for a in args]
            got = weft.jit(f)(*given)
            assert all(str(g.dtype) == result(dtype) for g in flat(got))
            exact = [np.asarray(a).astype("float64") if np.asarray(a).dtype.kind != "i" else a for a in given]
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                want = reference(*exact)
            rtol, atol = (tolerance or {}).get(dtype, TOLERANCE[dtype])
            # and what is not finite, where it is so in both
            fits = [np.abs(w) < (3e4 if dtype == "float16" else 1e30) for w in flat(want)]
            same(
                [np.asarray(g).astype("float64")[k] for g, k in zip(flat(got), fits)],
                [np.asarray(w)[k] for w, k in zip(flat(want), fits)],
                rtol,
                atol,
            )
            if dtype == "float64":
                lost = lambda xs: [np.where(np.isfinite(np.asarray(x, "float64")), 0, x) for x in flat(xs)]
                same(lost(got), lost(want), 0, 0)


def slopes(f, args, which=None, rtol=2e-6, atol=1e-7, device=REFERENCE) -> None:
    """Both modes give what differences give."""
    with weft.enable_x64(True), weft.default_device(device):
        args = [jnp.asarray(a) for a in args]
        which = tuple(range(len(args))) if which is None else tuple(which)
        run = weft.jit(f)
        back = weft.jit(weft.grad(lambda *xs: sum(v.sum() for v in flat(f(*xs))), which))(*args)
        total = 0
        for i, slope in zip(which, back):
            step = 1e-5 * np.maximum(1, np.abs(np.asarray(args[i])))
            moved = [flat(run(*args[:i], args[i] + s * step, *args[i + 1 :])) for s in (1, -1, 2, -2)]
            numeric = [
                (8 * (np.asarray(a) - np.asarray(b)) - (np.asarray(c) - np.asarray(d))) / (12 * step)
                for a, b, c, d in zip(*moved)
            ]
            same(slope, sum(numeric), rtol, atol * len(numeric))
            total = total + sum(np.asarray(v).sum() for v in (slope,))
        tangents = [jnp.ones_like(a) if i in which else jnp.zeros_like(a) for i, a in enumerate(args)]
        forward = weft.jvp(run, tuple(args), tuple(tangents))[1]
        same(sum(np.asarray(v).sum() for v in flat(forward)), total, 1e-9, 1e-9)


def maps(f, args, rtol=2e-6) -> None:
    """vmap is the loop, and compiled is eager."""
    with weft.default_device(REFERENCE):
        args = [jnp.asarray(a)[:3] for a in args]
        loop = [flat(f(*[a[k] for a in args])) for k in range(len(args[0]))]
        same(
            weft.jit(weft.vmap(f))(*args),
            [np.stack([np.asarray(v) for v in column]) for column in zip(*loop)],
            rtol,
            rtol,
        )


def on_wasm(f, args) -> None:
    """WebAssembly gives what the other backends give."""
    args = [np.asarray(a, "float32") if np.asarray(a).dtype.kind == "f" else np.asarray(a) for a in args]
    want = weft.jit(f)(*map(jnp.asarray, args))
    with weft.default_device(weft.devices("wasm")[0]):
        got = weft.jit(f)(*map(jnp.asarray, args))
    same(got, want, 2e-5, 2e-6)
