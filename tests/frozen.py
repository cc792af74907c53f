"""What real JAX gave, frozen in json files.

The make_*.py scripts evaluate expressions under real JAX and `write` what `outcome` says of them; the tests `check`
that weft gives the same, without JAX. An outcome is plain data:

    ["array", dtype, shape, weak type, [words of the real part, of the imaginary part]]
    ["sequence", outcomes]      ["tree", [[path, outcome] of each leaf]]      ["value", repr]      ["key", shape]
    ["error", names of the error's class and its bases]
"""

import builtins
import json
import math
import pathlib
import re
import warnings

TOLERANCE = {
    "float16": 2e-3,
    "bfloat16": 1e-2,
    "float32": 2e-6,
    "complex64": 2e-6,
    "float64": 1e-13,
    "complex128": 1e-13,
}


def split(text: str):
    """The expressions of a text: separated by semicolons outside of brackets, and by lines."""
    depth, start = 0, 0
    for k, ch in enumerate(text):
        depth += (ch in "([{") - (ch in ")]}")
        if ch in ";\n" and depth == 0:
            yield from filter(None, [text[start:k].strip()])
            start = k + 1
    yield from filter(None, [text[start:].strip()])


def words(plain) -> list:
    """The elements as json has them, which knows neither nan nor infinity."""
    return [
        ("nan" if v != v else "inf" if v > 0 else "-inf") if isinstance(v, float) and not (v - v == 0) else v
        for v in plain.reshape(-1).tolist()
    ]


def describe(value, np) -> list:
    if hasattr(value, "dtype") and hasattr(value, "weak_type"):
        if str(value.dtype).startswith("key"):
            return ["key", list(value.shape)]
        plain = np.asarray(value)
        plain = plain.astype("float32") if value.dtype == "bfloat16" else plain
        parts = [plain.real, plain.imag] if plain.dtype.kind == "c" else [plain]
        return ["array", str(value.dtype), list(value.shape), bool(value.weak_type), [words(p) for p in parts]]
    if isinstance(value, (list, tuple)) and any(hasattr(v, "weak_type") for v in value):
        return ["sequence", [describe(v, np) for v in value]]
    return ["value", repr(value).replace("jax.numpy", "jnp").replace("weft.numpy", "jnp")[:4000]]


def describe_tree(value, jax, np) -> list:
    """Leaves by path: arrays, and what is not one as text."""

    def leaf(x) -> list:
        if getattr(x, "dtype", None) == jax.float0:
            return ["value", "float0"]
        if isinstance(x, (int, float, np.ndarray)) and not isinstance(x, bool):
            x = jax.numpy.asarray(x)
        return describe(x, np) if isinstance(x, jax.Array) else ["value", re.sub(r"0x[0-9a-f]+", "0x", str(x))]

    return [
        "tree",
        [[jax.tree_util.keystr(path), leaf(x)] for path, x in jax.tree_util.tree_flatten_with_path(value)[0]],
    ]


def outcome(text: str, scope: dict, describe=None) -> list:
    """What the expression gives, or the classes of its error."""
    try:
        value = eval(text, scope)
        return describe(value) if describe else globals()["describe"](value, scope["np"])
    except Exception as e:
        return ["error", [c.__name__ for c in type(e).__mro__ if c is not object]]


def write(path, results: dict) -> None:
    pathlib.Path(path).write_text(
        "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in results.items()) + "\n}\n"
    )
    print(len(results), "results,", sum(v[0] == "error" for v in results.values()), "of them errors")


def close(got, want, rtol: float, scale: float = 1.0) -> bool:
    """Whether two words are the same, within `rtol` of the largest of their array where they are floats."""
    if any(isinstance(v, (str, bool, int)) for v in (got, want)):
        return got == want
    return math.isclose(got, want, rel_tol=rtol * max(1.0, scale), abs_tol=rtol * max(1.0, scale))


def compare(got: list, want: list, tolerance: dict | None = None, weak: bool = True) -> None:
    """Asserts that two outcomes are one; `weak` says whether weak types are compared."""
    assert got[0] == want[0], (got, want)
    if want[0] == "sequence":
        assert len(got[1]) == len(want[1])
        for g, w in zip(got[1], want[1]):
            compare(g, w, tolerance, weak)
    elif want[0] == "tree":
        assert [path for path, _ in got[1]] == [path for path, _ in want[1]]
        compare(["sequence", [g for _, g in got[1]]], ["sequence", [w for _, w in want[1]]], tolerance, weak)
    else:
        assert got[:3] == want[:3] and (not weak or got[3:4] == want[3:4]), (got, want)
        if want[0] == "array":
            rtol = {**TOLERANCE, **(tolerance or {})}.get(want[1], 0)
            for g, w in zip(got[4], want[4], strict=True):
                scale = max([abs(v) for v in w if isinstance(v, float)], default=1.0)
                assert len(g) == len(w) and all(close(a, b, rtol, scale) for a, b in zip(g, w)), (g, w)


def expected_class(classes: list, errors) -> tuple:
    """The names of classes one of which our error must have, given the bases of JAX's: the first that is Python's or
    stands in `jax.errors`. Where JAX fails by an assertion or says nothing but Exception, any error about a type or
    value will do.
    """
    name = next(c for c in classes if hasattr(builtins, c) or hasattr(errors, c))
    return ("TypeError", "ValueError") if name in ("AssertionError", "Exception") else (name,)


def check(
    text: str, scope: dict, want: list, errors, describe=None, tolerance: dict | None = None, weak: bool = True
) -> None:
    """Asserts that the expression's outcome is the frozen one; `errors` is the module of our error classes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = outcome(text, scope, describe)
    if want[0] == "error":
        classes = expected_class(want[1], errors)
        assert got[0] == "error" and set(classes) & set(got[1]), f"{got}, not {' or '.join(classes)}"
    else:
        compare(got, want, tolerance, weak)
