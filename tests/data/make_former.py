"""Writes what an earlier release wrote, for tests/core/test_former.py: exported programs, programs of the wire, pickled
arrays, a Wasm artifact and a program for pages. Run it with the Python of that release:

    git worktree add ../former 20ae99f0 && make -C ../former setup
    ../former/.venv/bin/python tests/data/make_former.py tests/data/former/20ae99f0

That commit is the last one before the modules moved to their rooms. When names that pickles hold move again, or a
format changes, add a folder that the release before has written.
"""

import json
import pathlib
import pickle
import sys

import numpy as np
import weft
import weft.numpy as jnp
from weft import export, lax, random
from weft.runtime.dispatch import program_for
from weft.sharding import PartitionSpec
from weft.transforms.portable import portable
from weft.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, Partial, SequenceKey

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
N = np.arange(6, dtype=np.int32)


def layers(x):
    """Products, activations, reductions and constants."""
    w = jnp.asarray(np.linspace(-0.5, 0.5, 20, dtype=np.float32).reshape(4, 5))
    y = weft.nn.gelu(x @ w, approximate=False)
    return weft.nn.softmax(y, axis=-1), jnp.sum(y, axis=0), jnp.argmax(y, axis=1)


def loops(x):
    """scan, while, cond, and a gather and a scatter of each mode."""
    c, ys = lax.scan(lambda c, r: (c * 0.5 + r, c.sum()), x[0], x)
    n = lax.while_loop(lambda v: v < 40, lambda v: v * 2, jnp.int32(3))
    z = lax.cond(x[0, 0] < 0, jnp.sin, jnp.cos, c)
    return c, ys, n, z.at[jnp.array([0, 9])].add(1.0, mode="drop"), jnp.take(z, jnp.array([3, 1]), axis=0)


def transforms(x):
    """Sorting, windows, transforms, factorisations, linear algebra, and complex numbers."""
    a = x[:, :3] @ x[:, :3].T + 4 * jnp.eye(3)
    return (
        jnp.sort(x, axis=1),
        lax.conv_general_dilated(x[None, None], x[None, None, :2, :2], (1, 1), "SAME"),
        lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID"),
        jnp.linalg.cholesky(a),
        jnp.linalg.solve(a, x[:, 0]),
        jnp.abs(jnp.fft.fft(x, axis=1)),
        jnp.cumsum(x, axis=1),
    )


def integers(n):
    """Bits, shifts, conversions and random numbers of a seed that it closes over."""
    bits = random.bits(random.key(7), (6,))
    return n << 2, n ^ 5, lax.population_count(n), n.astype(jnp.float32) / 3, (bits >> 8).astype(jnp.int32)


PROGRAMS = {"layers": (layers, X), "loops": (loops, X), "transforms": (transforms, X), "integers": (integers, N)}


PLATFORMS = ("cpu", "wasm", "webgpu", "reference")


def gradient(x):
    """A function whose derivative is exported too."""
    return jnp.sum(jnp.tanh(x) ** 2)


def arrays():
    return {
        "float32": jnp.asarray(X),
        "bfloat16": jnp.asarray(X).astype(jnp.bfloat16),
        "int4": jnp.asarray(N[:4]).astype("int4"),
        "key": random.key(3),
        "tree": [{"w": jnp.ones(3)}, (jnp.int32(2), None)],
        "structure": weft.tree.structure({"a": [1, (2, None)]}),
        "path": (DictKey("a"), SequenceKey(1), GetAttrKey("b"), FlattenedIndexKey(0)),
        "partial": Partial(max, 1),
        "spec": PartitionSpec("x", None),
        "struct": weft.ShapeDtypeStruct((2, 3), "float32"),
    }


def plain(value):
    return np.asarray(value).astype(np.float64).tolist()


def scaled(x):
    return jnp.tanh(x) * 2


def main(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        from weft.serialization.programs import serialize
    except ImportError:  # where it was in 20ae99f0
        from weft.core.serialize import serialize
    from weft_wasm.compile import compile_program
    from weft_wasm.lower.program import lower

    want = {}
    for name, (fun, x) in PROGRAMS.items():
        closed = weft.make_jaxpr(fun)(x)
        want[name] = [plain(y) for y in weft.jit(fun)(x)]
        program, first = program_for(closed)
        opened, inner = portable(program)
        (folder / f"{name}.jaxpr").write_bytes(serialize(opened))
        np.savez(folder / f"{name}.npz", *[np.asarray(c) for c in (*inner, *first)])
        exported = export.export(weft.jit(fun), platforms=PLATFORMS)(weft.ShapeDtypeStruct(x.shape, x.dtype.name))
        (folder / f"{name}.exported").write_bytes(exported.serialize())
    size = weft.ShapeDtypeStruct(export.symbolic_shape("n, 4"), "float32")
    (folder / "gradient.exported").write_bytes(export.export(weft.jit(gradient))(size).serialize(vjp_order=1))
    want["gradient"] = [plain(gradient(X)), plain(weft.grad(gradient)(X))]
    (folder / "arrays.pickle").write_bytes(pickle.dumps(arrays()))
    program = weft.make_jaxpr(scaled)(X).jaxpr
    (folder / "scaled.weft").write_bytes(
        compile_program(lower(program, "main", (), frozenset(("simd128",)))[0]).to_bytes()
    )
    export.web(scaled, X, path=folder / "page")
    for path in (folder / "page").iterdir():
        if path.name not in ("scaled.js", "scaled.wasm"):
            path.unlink()
    (folder / "want.json").write_text(json.dumps(want))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
