"""The whole text of each error in programs.py, as messages.json has it, and what all of them have in common.

`python -m tests.errors.test_messages` prints the texts of today: read them, then keep them as messages.json.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import traceback
import warnings

import pytest
from platforms import need

import weft
import weft.numpy as jnp
from weft import lax
from weft.experimental import sparse

from . import programs

need("cpu")
HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = json.loads((HERE / "messages.json").read_text()) if (HERE / "messages.json").exists() else {}


def caught(name: str) -> Exception:
    with warnings.catch_warnings(), weft.default_device(weft.devices("cpu")[0]):
        warnings.simplefilter("ignore")
        try:
            programs.PROGRAMS[name]()
        except Exception as error:
            return error
    raise AssertionError(f"{name} raised nothing")


def line_of(error: Exception, name: str) -> str:
    """What a message says of a line: the file and the function; the number changes with every edit, and is checked
    apart from the text.
    """
    text = str(error).replace(str(HERE / "programs.py"), "programs.py")
    text = re.sub(r"0x[0-9a-f]+", "0x…", text)
    return re.sub(r"programs\.py:\d+", "programs.py:N", text)


def described(name: str) -> list:
    error = caught(name)
    return [f"{type(error).__module__}.{type(error).__qualname__}", *line_of(error, name).splitlines()]


@pytest.mark.parametrize("name", sorted(programs.PROGRAMS))
def test_the_whole_message(name):
    assert described(name) == EXPECTED[name]


@pytest.mark.parametrize("name", sorted(programs.PROGRAMS))
def test_a_message_is_short_and_names_the_line(name):
    text = str(caught(name))
    assert len(text.splitlines()) <= 10
    lines = {int(n) for n in re.findall(r"programs\.py:(\d+)", text)}
    first = programs.PROGRAMS[name].__code__.co_firstlineno
    following = min(
        (f.__code__.co_firstlineno for f in programs.PROGRAMS.values() if f.__code__.co_firstlineno > first),
        default=10**6,
    )
    assert lines and all(first <= n < following for n in lines), (lines, first, following)


def test_there_are_enough_of_them():
    assert len(programs.PROGRAMS) >= 60 and set(EXPECTED) == set(programs.PROGRAMS)


def test_weak_types_are_said_in_words():
    """`str` of a type writes them with a ~, as jax does; messages don't."""
    aval = weft.typeof(1.0)
    assert (str(aval), f"{aval}", f"{aval:>23}") == ("~float32[]", "weakly typed float32[]", " weakly typed float32[]")
    assert f"{weft.typeof(jnp.float32(1))}" == "float32[]"
    x = jnp.arange(3.0)
    wrong = [
        lambda: lax.dynamic_slice(x, (1.0,), (1,)),
        lambda: jnp.take(x, 1.0),
        lambda: jnp.trace(x * jnp.ones((3, 1)), 1.0),
        lambda: jnp.eye(3, k=jnp.asarray(1.0)),
        lambda: weft.random.normal(0),
        lambda: weft.random.categorical(weft.random.key(0), 1),
        lambda: jnp.ldexp(x, 1.0),
        lambda: jnp.gcd(1.0, 2.0),
        lambda: lax.sort(1),
        lambda: lax.index_take(x, (1.0,), (0,)),
        lambda: jnp.packbits(1.0),
        lambda: jnp.cov(x, fweights=1.0),
    ]
    said = 0
    for f in wrong:
        with pytest.raises((TypeError, ValueError)) as error:
            f()
        assert "~" not in str(error.value)
        said += "weakly typed" in str(error.value)
    assert said >= 8


# warnings ------------------------------------------------------------------------------------------------------------


def _donated(x):
    return weft.jit(lambda x: x[:1], donate_argnums=0)(x)


def _legacy():
    with weft.legacy_prng_key("warn"):
        weft.random.normal(weft.random.PRNGKey(0))


def _ranks():
    with weft.numpy_rank_promotion("warn"):
        jnp.ones((2, 3)) + jnp.ones(3)


def _constants():
    big = jnp.ones(1000)
    weft.config.update("jax_captured_constants_warn_bytes", 4000)
    try:
        weft.jit(lambda x: x + big)(1.0)
    finally:
        weft.config.update("jax_captured_constants_warn_bytes", 2_000_000_000)


def _wide(**options):
    with weft.enable_x64(False):
        jnp.asarray(1.0, **options)


WARNINGS = {
    "an option": lambda: weft.config.update("jax_pprint_use_color", False),
    "its context": lambda: weft.softmax_custom_jvp(True).__enter__(),
    "a name": lambda: weft.host_id(),
    "a dtype": lambda: _wide(dtype="float64"),
    "a dtype in a method": lambda: jnp.ones(2).astype("float64"),
    "a dtype in jit": lambda: weft.jit(lambda: jnp.zeros(2, "int64"))(),
    "ranks": _ranks,
    "a key": _legacy,
    "an update": lambda: jnp.zeros(2, "int32").at[0].add(1.5),
    "an update in jit": lambda: weft.jit(lambda x: x.at[0].set(1.5))(jnp.zeros(2, "int32")),
    "constants": _constants,
    "a donated argument": lambda: _donated(jnp.ones((3, 2)) + 1),
    "memory": lambda: weft.profiler.device_memory_profile("cpu"),
    "an argument": lambda: lax.linalg.eig(jnp.eye(2), use_magma=False),
    "a layout": lambda: sparse.eye(3).update_layout(n_dense=1, on_inefficient="warn"),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_warnings_are_of_the_users_line(name):
    """Python shows the line, and filters by its module."""
    with weft.default_device(weft.devices("cpu")[0]), weft.enable_x64(False), pytest.warns() as warned:
        WARNINGS[name]()
    weft.config._options.pop("pprint_use_color", None)
    assert warned and {w.filename for w in warned} == {__file__}, [str(w) for w in warned]


@pytest.mark.parametrize(
    "old,new,alone",
    [("host_id", "process_index", 0), ("host_ids", "process_indices", [0]), ("host_count", "process_count", 1)],
)
def test_names_that_will_go_say_what_to_write(old, new, alone):
    with pytest.warns(match=rf"weft\.{old} is called weft\.{new} now"):
        assert getattr(weft, old)("cpu") == getattr(weft, new)("cpu") == alone


def test_nothing_else_warns():
    """`errors.warn` finds the line; numbers of frames are wrong as soon as somebody calls what warns from elsewhere."""
    root = HERE.parents[1]
    found = [
        path
        for folder in ("packages", "native", "wasm")
        for path in (root / folder).rglob("src/**/*.py")
        if re.search(r"warnings\.warn\(|stacklevel", path.read_text())
    ]
    assert [path.relative_to(root).as_posix() for path in found] == ["packages/weft/src/weft/base/errors.py"]


# tracebacks ----------------------------------------------------------------------------------------------------------


def frames(error) -> list:
    return [f.filename for f in traceback.extract_tb(error.__traceback__)]


def failing():
    def inner(x):
        raise ZeroDivisionError("mine")

    weft.jit(weft.grad(lambda x: weft.vmap(inner)(x).sum()))(programs.F)


def test_internal_frames_are_left_out_of_tracebacks_unless_asked_for():
    with pytest.raises(ZeroDivisionError) as caught:
        failing()
    assert not [f for f in frames(caught.value) if f"{os.sep}weft{os.sep}" in f or "weft_native" in f]
    with _unfiltered():
        with pytest.raises(ZeroDivisionError) as caught:
            failing()
    assert [f for f in frames(caught.value) if f"{os.sep}weft{os.sep}" in f]


class _unfiltered:
    def __enter__(self):
        self.before = weft.config.traceback_filtering
        weft.config.update("jax_traceback_filtering", "off")

    def __exit__(self, *_):
        weft.config.update("jax_traceback_filtering", self.before)


def test_an_uncaught_error_ends_at_the_line_of_the_user():
    code = "import weft\ndef f(x):\n    return x.nothing\nweft.jit(f)(1.0)\n"
    text = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "JAX_PLATFORMS": "cpu"}
    ).stderr
    assert text.count("File ") == 2 and text.count('File "<string>"') == 2, text


def test_uncaught_errors_of_any_function_are_filtered_and_those_of_others_left_alone():
    run = lambda code, **env: (
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "reference", **env},
        ).stderr
    )
    code = "import weft.numpy as jnp\njnp.reshape(jnp.ones(3), (2, 2))\n"
    assert run(code).count("File ") == 1 and run(code, JAX_TRACEBACK_FILTERING="off").count("File ") > 1
    own = (
        "import weft, functools, contextlib\n@contextlib.contextmanager\ndef f():\n    yield\n    1 / 0\nwith f():\n   "
        " pass\n"
    )
    assert "contextlib.py" in run(own) and "ZeroDivisionError" in run(own)


def test_every_class_of_jax_has_a_help_page():
    names = (
        "ConcretizationTypeError",
        "InconclusiveDimensionOperation",
        "JAXIndexError",
        "JAXTypeError",
        "JaxRuntimeError",
        "JaxprTypeError",
        "KeyReuseError",
        "NonConcreteBooleanIndexError",
        "TracerArrayConversionError",
        "TracerBoolConversionError",
        "TracerIntegerConversionError",
        "UnexpectedTracerError",
    )
    for name in names:
        assert issubclass(getattr(weft.errors, name), Exception)
    for cls in (
        weft.errors.TracerBoolConversionError,
        weft.errors.ConcretizationTypeError,
        weft.errors.NonConcreteBooleanIndexError,
        weft.errors.UnexpectedTracerError,
    ):
        assert ">>>" in cls.__doc__ and len(cls.__doc__) > 200
    assert issubclass(weft.errors.TracerBoolConversionError, weft.errors.ConcretizationTypeError) and issubclass(
        weft.errors.KeyReuseError, TypeError
    )


if __name__ == "__main__":
    print(json.dumps({name: described(name) for name in sorted(programs.PROGRAMS)}, indent=1, ensure_ascii=False))
