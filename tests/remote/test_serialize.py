"""The bytes of jaxprs: reading gives back what was written, and no bytes can do harm."""

import os
import random
import re
import subprocess
import sys

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from example_programs import PROGRAMS, written
from weft import lax
from weft.base.avals import ShapedArray, shaped
from weft.serialization import programs as s
from weft.serialization.binary import DeserializationError, Reader, Writer
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, subjaxprs
from weft.serialization.portable import NotPortable
from weft.transforms.portable import portable
from weft.core.primitive import registry
from weft.core.verify import verify
from weft.runtime.dispatch import program_for
from weft.runtime.reference import interpret


def opened(fun, *args):
    return portable(program_for(weft.make_jaxpr(fun)(*args))[0])[0]


def without_names(jaxpr) -> str:
    """The text without variables' names: two jaxprs of one program may share a variable, and no longer do so after
    the trip.
    """
    return re.sub(r"(?<![\w.])[a-z]{1,2}(?![\w.=\[])", "v", str(jaxpr))


@pytest.mark.parametrize("name", PROGRAMS)
def test_round_trip(name):
    jaxpr, _, _ = written(name)
    data = s.serialize(jaxpr)
    program = s.deserialize(data)
    assert without_names(program.jaxpr) == without_names(jaxpr)
    assert s.serialize(program.jaxpr) == data
    assert not program.x64
    for mine, theirs in zip(program.jaxpr.eqns, jaxpr.eqns):
        assert str(mine.source_info) == str(theirs.source_info)
        assert mine.params.keys() == theirs.params.keys()
        assert [v.aval for v in mine.outvars] == [v.aval for v in theirs.outvars]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_the_same_after_the_trip(name):
    fun, args = PROGRAMS[name]
    jaxpr, consts, args = written(name)
    values = [np.asarray(x) for x in [*consts, *args]]
    want = interpret(jaxpr, values)
    # the program as it was traced, with values and calls inside
    closed = weft.make_jaxpr(fun)(*args)
    plain, lead = program_for(closed)
    original = interpret(plain, [np.asarray(x) for x in [*lead, *args]])
    got = interpret(s.deserialize(s.serialize(jaxpr)).jaxpr, values)
    assert len(got) == len(want) == len(original)
    for g, w, o in zip(got, want, original):
        np.testing.assert_array_equal(g, w)
        np.testing.assert_allclose(np.asarray(g, np.complex128), np.asarray(o, np.complex128), rtol=1e-5)


def test_bytes_do_not_depend_on_when_a_program_was_traced():
    fun, args = PROGRAMS["gradient of scan"]
    again = [s.serialize(opened(lambda *xs: fun(*xs), *args)) for _ in range(2)]
    assert again[0] == again[1] and s.content_hash(again[0]) == s.content_hash(again[1])


def test_bytes_are_the_same_in_another_process(tmp_path):
    program = (
        "import hashlib, numpy as np, weft; from weft import lax; from weft.serialization import programs as s; from"
        " weft.transforms.portable import portable\nj = weft.make_jaxpr(lambda x: lax.cond(x.sum() > 0, lambda y: {'b':"
        " y, 'a': y * 2}, lambda y: {'a': y, 'b': y}, x))(np.ones(3,"
        " np.float32))\nprint(s.content_hash(s.serialize(portable(j.jaxpr)[0])).hex())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", "import weft.numpy\n" + program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(seen) == 1


def test_without_numpy():
    """A page that has not downloaded NumPy writes and reads the same bytes."""
    program = (
        "import weft, weft.numpy as jnp; from weft import lax; from weft.serialization import programs as s; from"
        " weft.transforms.portable import portable\naval = weft.ShapeDtypeStruct((3, 4), 'float32')\ndef f(x):\n    y ="
        " lax.scan(lambda c, r: (c + r.sum() * 0.5, jnp.tanh(r)), 0.0, x)[0]\n    return lax.cond(y > 0, lambda v: v,"
        " lambda v: -v, y) + x[1, 2:].sum()\njaxpr = portable(weft.make_jaxpr(f)(aval).jaxpr)[0]\ndata ="
        " s.serialize(jaxpr); back = s.deserialize(data).jaxpr\nassert str(back) == str(jaxpr) and s.serialize(back) =="
        " data\nimport sys; print('numpy' in sys.modules, s.content_hash(data).hex())"
    )
    seen = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "WEFT_NUMPY": flag},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        for flag in ("0", "1")
    ]
    assert [s[0] for s in seen] == ["False", "True"] and seen[0][1] == seen[1][1]


def test_shared_jaxprs_stay_shared():
    @weft.jit
    def inner(x):
        return jnp.sin(x) * jnp.cos(x)

    jaxpr = opened(lambda x: inner(inner(inner(x))), np.float32(1))
    back = s.deserialize(s.serialize(jaxpr)).jaxpr
    assert len({id(sub) for e in back.eqns for sub in subjaxprs(e.params)}) == 1


def test_x64_is_recorded():
    with weft.enable_x64(True):
        jaxpr = opened(lambda x: x * 2.0, np.float64(1))
        data = s.serialize(jaxpr)
    assert s.deserialize(data).x64 and s.deserialize(data).jaxpr.in_avals[0].dtype.name == "float64"


def test_every_parameter_kind():
    w = s._Serializer()
    values = [
        None,
        True,
        False,
        0,
        -1,
        2**63 - 1,
        -(2**63),
        0.5,
        float("inf"),
        -0.0,
        1j,
        "text",
        "",
        b"\x00\xff",
        (),
        (1, (2, "a")),
        [1, [None]],
        jnp.float32.dtype,
        np.dtype("bool"),
        lax.GatherScatterMode.CLIP,
        lax.Precision.HIGHEST,
        lax.RoundingMethod.TO_NEAREST_EVEN,
        lax.GatherDimensionNumbers((0,), (), (1,)),
    ]
    body = Writer()
    for v in values:
        w.value(body, v)
    reader = s._Deserializer(Reader(body.data), s.DEFAULT_LIMITS)
    reader.strings, reader.jaxprs = list(w.strings.numbers), []
    for v in values:
        got = reader.value(0)
        assert type(got) is type(v) and repr(got) == repr(v)
    reader.r.finish()


# what can't be written ----------------------------------------------------------------------------------------------


def test_a_parameter_that_has_no_bytes_is_named():
    x = Var(shaped((), "float32"))
    out = Var(shaped((), "float32"))
    jaxpr = Jaxpr([], [x], [out], [JaxprEqn([x], [out], registry["neg"], {"callback": print})])
    with pytest.raises(
        NotPortable, match="neg can't leave the process: its parameter 'callback' is a builtin_function_or_method"
    ):
        s.serialize(jaxpr)


def test_keys_and_constants_are_refused():
    with pytest.raises(NotPortable, match="key<fry>"):
        s.serialize(weft.make_jaxpr(lambda k: k)(weft.random.key(0)).jaxpr)
    closed = weft.make_jaxpr(lambda x: x + jnp.asarray(np.ones(3, np.float32)))(np.ones(3, np.float32))
    inner = ClosedJaxpr(closed.jaxpr, closed.consts)
    if closed.consts:
        with pytest.raises(NotPortable, match="constants"):
            s.serialize(inner.jaxpr)


def test_constants_inside_a_checkpoint_are_protected_too():
    table = jnp.arange(3.0)
    inner = weft.jit(lambda v: v + table)
    f = weft.checkpoint(lambda x, y: inner(x) * y, prevent_cse=(True, False))
    jaxpr, consts = portable(program_for(weft.make_jaxpr(lambda x, y: f(x, y))(table, table))[0])
    assert jaxpr.eqns[0].params["prevent_cse"] == (True, True, False)
    back = s.deserialize(s.serialize(jaxpr))
    np.testing.assert_array_equal(
        interpret(back.jaxpr, [np.asarray(x) for x in (*consts, table, table)])[0], (table + table) * table
    )


def test_constants_inside_become_arguments():
    table = jnp.asarray(np.arange(4, dtype=np.float32))
    other = jnp.asarray(np.ones(4, np.float32))

    @weft.jit
    def inner(x):
        return x * table + other

    def fun(x):
        y = lax.cond(x[0] > 0, lambda v: inner(v), lambda v: v - table, x)
        y = lax.while_loop(lambda c: (inner(c) < 3).all(), lambda c: inner(c) + 1, y)
        return lax.scan(lambda c, r: (inner(c) + r, c), y, jnp.stack([x, x]))

    closed = weft.make_jaxpr(fun)(np.ones(4, np.float32))
    jaxpr, lead = program_for(closed)
    moved, consts = portable(jaxpr)
    verify(moved)
    values = [np.asarray(c) for c in (*consts, *lead)] + [np.ones(4, np.float32)]
    plain = interpret(jaxpr, [np.asarray(c) for c in lead] + [np.ones(4, np.float32)])
    for a, b in zip(interpret(s.deserialize(s.serialize(moved)).jaxpr, values), plain):
        np.testing.assert_allclose(a, b)


def test_what_holds_no_constants_stays_the_object_that_it_was():
    """What is known of a jaxpr, its compiled program for one, is known by the object."""
    inner = weft.jit(lambda v: jnp.sin(v) + 1)
    jaxpr = weft.make_jaxpr(lambda x: lax.fori_loop(0, 3, lambda i, v: inner(v) * 2, x))(np.ones(4, np.float32)).jaxpr
    assert portable(jaxpr)[0] is jaxpr


# what is refused ------------------------------------------------------------------------------------------------------


def bytes_of(name="gradient of scan"):
    return s.serialize(written(name)[0])


@pytest.mark.parametrize(
    "data,message",
    [
        (b"", "no weft program"),
        (b"weft", "no weft program"),
        (b"PK\x03\x04\x00", "no weft program"),
        (b"weft\x00\x09", "has format 9"),
        (b"weft\x00\x01\x07", "unknown flags 7"),
        (b"weft\x00\x01\x00\xff\xff\xff\xff\x0f", "items are announced"),
        (b"weft\x00\x01\x00" + b"\xff" * 40, "too long"),
        (b"weft\x00\x01\x00\x00\x00\x00\x00", "there is no program"),
    ],
)
def test_bad_heads(data, message):
    with pytest.raises(DeserializationError, match=message) as info:
        s.deserialize(data)
    assert info.value.offset <= len(data)


def test_every_truncation_is_refused():
    data = bytes_of("cond")
    for n in range(len(data)):
        with pytest.raises(DeserializationError):
            s.deserialize(data[:n])
    with pytest.raises(DeserializationError, match="follow the end"):
        s.deserialize(data + b"\x00")


def test_limits():
    data = bytes_of()
    for limits, message in [
        (s.Limits(size=100), "exceeds the limit of 100"),
        (s.Limits(equations=3), "exceeds the limit of 3"),
        (s.Limits(depth=1), "nested more than 1"),
        (s.Limits(array_bytes=8), "exceeds the limit of 8 bytes"),
        (s.Limits(rank=1), "1 items allowed"),
    ]:
        with pytest.raises(DeserializationError, match=message):
            s.deserialize(data, limits)


def test_programs_that_unfold_without_end_are_refused():
    """Forty functions, each of which calls the one before it twice."""
    aval = shaped((), "float32")
    x = Var(aval)
    jaxpr = Jaxpr([], [x], [x], [])
    for _ in range(40):
        a, b, c = Var(aval), Var(aval), Var(aval)
        params = dict(jaxpr=ClosedJaxpr(jaxpr, []), name="f", donated_invars=(False,), keep_unused=False, inline=False)
        jaxpr = Jaxpr(
            [], [a], [c], [JaxprEqn([a], [b], registry["jit"], params), JaxprEqn([b], [c], registry["jit"], params)]
        )
    data = s.serialize(jaxpr)
    assert len(data) < 4000
    with pytest.raises(DeserializationError, match="equations exceeds the limit"):
        s.deserialize(data)


def jit_eqn(closed, ins, outs, name="jit", **params):
    return JaxprEqn(
        ins,
        outs,
        registry[name],
        {**dict(jaxpr=closed, name="f", donated_invars=(False,) * len(ins), keep_unused=False, inline=False), **params},
    )


def test_ill_typed_programs_are_refused():
    f32, i32, wide = shaped((), "float32"), shaped((), "int32"), shaped((3,), "float32")
    x, y, z = Var(f32), Var(i32), Var(wide)
    inner = Jaxpr([], [x], [x], [])
    for eqns, ins, out, message in [
        ([JaxprEqn([y], [Var(f32)], registry["neg"], {})], [y], y, "declares float32|declares f32"),
        ([JaxprEqn([x, y], [Var(f32)], registry["add"], {})], [x, y], x, "type-check"),
        ([JaxprEqn([x], [Var(f32), Var(f32)], registry["neg"], {})], [x], x, "results"),
        ([JaxprEqn([], [Var(f32)], registry["neg"], {})], [], Literal(1.0, f32), "type-check"),
        ([jit_eqn(ClosedJaxpr(inner, []), [y], [Var(f32)])], [y], y, "passes .int32.* to a program that takes"),
        ([jit_eqn(ClosedJaxpr(inner, []), [], [Var(f32)])], [], Literal(1.0, f32), "passes"),
        ([jit_eqn(inner, [x], [Var(f32)])], [x], x, "must be a program"),
        ([JaxprEqn([x], [Var(f32)], registry["neg"], {"jaxpr": inner})], [x], x, "neg has no parameter .jaxpr."),
        (
            [
                JaxprEqn(
                    [x, z],
                    [Var(f32)],
                    registry["scan"],
                    dict(jaxpr=ClosedJaxpr(inner, []), length=2, reverse=False, unroll=1, num_consts=0, num_carry=1),
                )
            ],
            [x, z],
            x,
            "length 2",
        ),
        (
            [
                JaxprEqn(
                    [x],
                    [Var(f32)],
                    registry["scan"],
                    dict(
                        jaxpr=ClosedJaxpr(inner, []), length=2, reverse=False, unroll=1, num_consts=2**60, num_carry=1
                    ),
                )
            ],
            [x],
            x,
            "counts more",
        ),
        (
            [
                JaxprEqn(
                    [x],
                    [Var(f32)],
                    registry["while"],
                    dict(
                        cond_jaxpr=ClosedJaxpr(inner, []),
                        body_jaxpr=ClosedJaxpr(inner, []),
                        cond_nconsts=0,
                        body_nconsts=0,
                    ),
                )
            ],
            [x],
            x,
            "truth value",
        ),
    ]:
        with pytest.raises(DeserializationError, match=message):
            s.deserialize(s.serialize(Jaxpr([], ins, [out], eqns)))


def test_sizes_that_only_equal_integers_do_not_enter_shared_caches():
    x = Var(shaped((3,), "float32"))
    out = Var(shaped((17, 3), "float32"))
    params = dict(shape=(17.0, True + 2), broadcast_dimensions=(1,), sharding=None)
    jaxpr = Jaxpr([], [x], [out], [JaxprEqn([x], [out], registry["broadcast_in_dim"], params)])
    try:
        s.deserialize(s.serialize(jaxpr))
    except DeserializationError:
        pass
    assert all(type(n) is int for n in shaped((17, 3), "float32").shape)
    assert all(type(n) is int for n in shaped((True, 19), "float32").shape)
    with pytest.raises(TypeError):
        ShapedArray((2.0,), "float32")


@pytest.mark.parametrize("seed", range(4))
def test_mutations_are_refused_or_verified(seed):
    """10,000 damaged programs in all: each gives DeserializationError, or a jaxpr that the verifier accepts."""
    rng = random.Random(seed)
    sources = [bytes_of(name) for name in PROGRAMS]
    accepted = 0
    for _ in range(2500):
        data = bytearray(rng.choice(sources))
        for _ in range(rng.choice((1, 1, 1, 2, 8))):
            kind, at = rng.randrange(5), rng.randrange(len(data) or 1)
            if kind == 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            elif kind == 1:
                data[at : at + 1] = bytes([data[at] ^ 1 << rng.randrange(8)]) if data else b""
            elif kind == 2:
                del data[at : at + rng.randrange(1, 9)]
            elif kind == 3:
                data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
            else:
                other = rng.choice(sources)
                start = rng.randrange(len(other))
                data[at : at + 16] = other[start : start + 16]
        try:
            program = s.deserialize(bytes(data))
        except DeserializationError as e:
            assert 0 <= e.offset <= len(data)
        else:
            accepted += 1
            verify(program.jaxpr)
            s.serialize(program.jaxpr)
    assert accepted  # some only change a name or a line: the test reaches past the first check


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "complex64"])
def test_integers_that_no_array_library_takes_for_a_float(dtype):
    """A power of two is exact in any float, and too long for the numbers from which arrays are made."""
    aval = shaped((2,), dtype)
    x, y = Var(aval), Var(aval)

    def program(value):
        eqn = JaxprEqn([x, Literal(value, shaped((), dtype))], [y], registry["mul"], {})
        return s.serialize(Jaxpr([], [x], [y], [eqn]))

    assert s.deserialize(program(-2)).jaxpr.eqns[0].invars[1].val == -2
    assert s.deserialize(program(-(1 << 14))).jaxpr.eqns
    for value in (1 << 63, -(1 << 64)):
        if dtype != "float16":  # where it is infinite, and refused for that
            with pytest.raises(DeserializationError, match=f"{value} is an integer of more than 64 bits"):
                s.deserialize(program(value))
