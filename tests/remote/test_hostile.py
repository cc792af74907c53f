"""Programs that no tracer makes: what a client could send to have the host do more than compute."""

import hashlib
import logging
import pathlib
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from declared import REFUSED
from hosts import host_here, run_host
from raw import Raw
from weft import lax
from weft.base.avals import shaped, token
from weft.serialization import programs as s
from weft.serialization.binary import DeserializationError
from weft.core.jaxpr import Jaxpr, JaxprEqn, Var
from weft.serialization.parameters import why_refused
from weft.core.wire import COUNT, INTEGER, SIZE, portable
from weft.serialization.portable import NotPortable
from weft.core.primitive import Primitive, registry
from weft.runtime.device import backend_of
from weft_native.host.messages import LONGEST, LogFormatter, public_text
from weft_native.host.programs import Executable
from weft_remote import protocol as p

F32, I32 = shaped((), "float32"), shaped((), "int32")
LINE = s.RecordedLine("/home/someone/client.py", 7, "step")


class Careless(s._Serializer):
    """Writes what it is given."""

    def check(self, eqn):
        pass


def careless(jaxpr: Jaxpr) -> bytes:
    writer = Careless()
    writer.jaxpr(jaxpr)
    return writer.finish()


def one_equation(primitive: str, ins: list, outs: list, **params) -> bytes:
    """The bytes of a program of one equation, with results of types of one's choosing."""
    args, results = [Var(a) for a in ins], [Var(a) for a in outs]
    return careless(Jaxpr([], args, results, [JaxprEqn(args, results, registry[primitive], params, frozenset(), LINE)]))


def foreign_call(size: int) -> bytes:
    """A kernel of LAPACK on a 2x2 matrix, said to give `size` floats, of which it writes four."""
    return one_equation(
        "ffi_call",
        [shaped((2, 2), "float32")],
        [shaped((size,), "float32"), shaped((2,), "int32"), I32],
        target_name="lapack_sgetrf_ffi",
        attributes=(),
        custom_call_api_version=4,
        legacy_backend_config=None,
        input_layouts=((0, 1),),
        output_layouts=((0,), (0,), ()),
        input_output_aliases=(),
        has_side_effect=False,
        vmap_method=None,
        result_avals=(np.dtype("float32"), np.dtype("int32"), np.dtype("int32")),
    )


def test_a_client_can_call_no_compiled_code(tmp_path):
    """With results of its own choosing it would read what other sessions have freed, and write past its buffers."""
    data = foreign_call(1 << 18)
    digest = hashlib.sha256(data).digest()
    with run_host(tmp_path, "--platform", "cpu") as host, host.connect() as witness:
        device = witness.devices()[0]
        # the kernels are there
        assert np.isfinite(np.asarray(jnp.linalg.inv(weft.device_put(np.eye(3, dtype=np.float32), device)))).all()
        with Raw(host.url) as raw:
            matrix = np.eye(2, dtype=np.float32).tobytes()
            raw.frame(  # one frame: the host hangs up as soon as it has seen the program
                p.encode(
                    p.Put(1, 1, shaped((2, 2), "float32"), 0, matrix),
                    p.Program(2, digest, len(data), data),
                    p.Compile(3, 2, digest, 0, "f", (False,)),
                    p.Execute(4, 2, (1,), (3, 4, 5)),
                    p.Fetch(5, 3),
                )
            )
            answer = raw.receive()
            while not isinstance(answer, (p.Data, p.Error, p.End)):
                answer = raw.receive()
        assert isinstance(answer, p.End), f"the host sent {getattr(answer, 'size', answer)} bytes of its memory"
        assert (
            answer.error == "DeserializationError"
            and "ffi_call" in answer.message
            and "compiled code" in answer.message
        )
        assert float(weft.device_put(np.float32(2), device) * 2) == 4.0


def test_a_client_ends_no_host_with_constants(tmp_path):
    """Which the compiler divides by zero, or takes for numbers of another type."""
    with run_host(tmp_path, "--platform", "cpu") as host, host.connect(default=True):
        five, zero = lambda: lax.full((4,), 5, "int32"), lambda: lax.full((4,), 0, "int32")
        assert weft.jit(lambda: (lax.div(five(), zero()), lax.rem(five(), zero())))()[0].tolist() == [-1] * 4
        assert weft.jit(
            lambda: lax.rem(lax.broadcasted_iota("int32", (1, 1), 0), lax.full((1, 1), 0, "int32"))
        )().tolist() == [[0]]
        assert weft.jit(lambda: lax.abs(lax.iota("complex64", 3)))().tolist() == [0, 1, 2]


def test_a_client_has_no_python_function_called_and_learns_nothing_of_the_host(tmp_path):
    with run_host(tmp_path) as host:
        for name in ("pure_callback", "io_callback", "debug_callback"):
            data = one_equation(name, [F32], [F32])
            digest = hashlib.sha256(data).digest()
            with Raw(host.url) as raw:
                raw.send(p.Program, digest, len(data), data)
                answer = raw.until(p.End)
            assert answer.error == "DeserializationError" and name in answer.message and "client.py:7" in answer.message
            said = answer.message.replace("client.py", "")
            assert (
                "Traceback" not in said
                and ".py" not in said
                and str(pathlib.Path.home()) not in said
                and str(pathlib.Path(weft.__file__).parents[2]) not in said
            )
        log = host.log.read_text()
        assert "Traceback" not in log


# what programs from outside hold -------------------------------------------------------------------------------------


def test_somebody_has_decided_about_every_primitive():
    """tests/remote/wire.txt lists what each primitive of each module declares, so that nothing gets in unseen. If the
    test fails, read what changed as somebody who sends programs would, then write the list again:
    `python tests/remote/declared.py > tests/remote/wire.txt`.
    """
    here = pathlib.Path(__file__).parent
    now = subprocess.run(
        [sys.executable, "-W", "ignore", str(here / "declared.py")], check=True, capture_output=True, text=True
    ).stdout
    assert now == (here / "wire.txt").read_text()
    assert "no decision has been made yet" not in now


NEVER = """
    addupdate call_exported check composite custom_jvp_call custom_vjp_call debug_callback dce_sink empty_ref ffi_call
    free_ref freeze get inspect_sharding io_callback new_ref pure_callback random_bits shard_map sharding_constraint
    swap todense transfer
"""


@pytest.mark.parametrize("name", NEVER.split())
def test_what_reaches_python_or_the_process_never_leaves(name):
    """Whatever the list says: these call Python or compiled code, write references, or look at the process."""
    assert REFUSED[name].parameters is None and REFUSED[name].why_not


def test_a_primitive_that_declares_nothing_is_refused():
    primitive = Primitive("undeclared_for_a_test", foreign=True)
    primitive.foreign = False
    assert why_refused(primitive) == "no decision has been made yet that it may"


def test_a_library_declares_in_vain():
    assert why_refused(Primitive("of_a_library", foreign=True, wire=portable())) == "it belongs to a library"


@pytest.mark.parametrize(
    "kind,least", [(INTEGER, -1 << 63), (COUNT, 0), (SIZE, -1 << 63)], ids=["integer", "count", "size"]
)
def test_integers_have_64_bits(kind, least):
    assert kind.holds((1 << 63) - 1) and kind.holds(least) and not any(map(kind.holds, (1 << 63, least - 1, True, 1.0)))


@pytest.mark.parametrize("name", REFUSED)
def test_what_exists_in_one_process_only_is_refused(name):
    """Whatever its parameters are: by the writer, and by the reader should someone write it all the same."""
    args = [Var(F32)]
    jaxpr = Jaxpr([], args, args, [JaxprEqn(args, [], registry[name], {}, frozenset(), LINE)])
    with pytest.raises(NotPortable, match=rf"{name} can't leave the process: (.|\n)*client.py:7"):
        s.serialize(jaxpr)
    with pytest.raises(
        DeserializationError,
        match=rf"client.py:7 \(step\): .*can't hold the primitive '{name}': .*[.] Leave it out of the program, or run",
    ):
        s.deserialize(careless(jaxpr))


@pytest.mark.parametrize(
    "ins,outs,primitive,params,message",
    [
        ([F32], [shaped((), "float32", True)], "neg", {}, "declares .*float32.* where its primitive gives float32"),
        ([F32], [token], "neg", {}, "declares Tok where its primitive gives float32"),
        ([], [F32], "create_token", {}, "declares float32.. where its primitive gives Tok"),
        (
            [F32],
            [shaped((3,), "float32")],
            "optimization_barrier",
            {},
            r"declares float32\[3\] where its primitive gives float32",
        ),
        (
            [F32],
            [F32],
            "convert_element_type",
            dict(new_dtype=np.dtype("int32"), weak_type=False, sharding=None),
            "declares float32.. where its primitive gives int32",
        ),
        (
            [F32],
            [F32],
            "optimization_barrier",
            {"sharding": None},
            "optimization_barrier has no parameter 'sharding'; it has none",
        ),
        (
            [F32],
            [shaped((2,), "float32")],
            "broadcast_in_dim",
            dict(shape=(2.0,), broadcast_dimensions=(), sharding=None),
            "parameter shape of broadcast_in_dim must be a tuple",
        ),
        (
            [F32],
            [shaped((1,), "float32")],
            "broadcast_in_dim",
            dict(shape=(True,), broadcast_dimensions=(), sharding=None),
            "each entry a size; got '.True,.'",
        ),
        (
            [F32],
            [shaped((2,), "float32")],
            "broadcast_in_dim",
            dict(shape=(2,), broadcast_dimensions=()),
            "broadcast_in_dim has no parameter sharding",
        ),
        ([F32], [F32], "reduce_sum", dict(axes=[], out_sharding=None), "parameter axes of reduce_sum must be a tuple"),
        ([F32], [F32], "device_put", dict(memory='device"}, evil = {x = "'), "must be one of 'device', 'pinned_host'"),
        (
            [F32],
            [F32],
            "convert_element_type",
            dict(new_dtype="float32", weak_type=False, sharding=None),
            "must be a dtype of numbers; got 'float32'",
        ),
    ],
)
def test_types_and_parameters_must_be_those_of_the_primitive(ins, outs, primitive, params, message):
    with pytest.raises(DeserializationError, match=rf"client.py:7.*{message}"):
        s.deserialize(one_equation(primitive, ins, outs, **params))


@pytest.mark.parametrize(
    "data",
    [
        one_equation("after_all", [token], [token]),
        one_equation("create_token", [], [token]),
        one_equation("optimization_barrier", [token], [token]),
    ],
)
def test_arguments_and_results_are_arrays(data):
    with pytest.raises(DeserializationError, match="a program takes and gives arrays"):
        s.deserialize(data)


# what clients are told -----------------------------------------------------------------------------------------------


TRACEBACK = """INTERNAL: a callback failed: Traceback (most recent call last):
  File "/srv/weft/native/dispatch.py", line 83, in run
    return function(device, secret)
  File "/home/host/venv/lib/python3.12/site-packages/numpy/x.py", line 1, in f

ValueError: no such library: /opt/lib/libcusolver.so (or C:\\Users\\host\\lapack.dll); "/home/ho st/a b.so" is \
missing at /home/someone/client.py:7, a/b and 1/2 are no paths
"""


def test_errors_name_no_file_of_the_host():
    text = public_text(RuntimeError(TRACEBACK), {"/home/someone/client.py"}.__contains__)
    assert (
        text
        == 'INTERNAL: a callback failed: \nValueError: no such library: libcusolver.so (or lapack.dll); "a b.so" is'
        " missing at /home/someone/client.py:7, a/b and 1/2 are no paths\n"
    )


def test_integers_of_parameters_have_64_bits():
    for kind in (INTEGER, SIZE):
        assert kind.holds(0) and kind.holds(-(2**63)) and kind.holds(2**63 - 1)
        assert not any([kind.holds(v) for v in (-(2**63) - 1, 2**63, True, 1.0, None)])
    assert COUNT.holds(0) and COUNT.holds(2**63 - 1) and not any([COUNT.holds(v) for v in (-1, 2**63, False)])


@pytest.mark.parametrize("length", [0, LONGEST - 1, LONGEST, LONGEST + 1, 3 * LONGEST])
def test_the_text_of_an_error_has_a_greatest_length(length):
    text = ("0123456789" * (length // 10 + 1))[:length]
    assert public_text(ValueError(text), lambda path: False) == (text if length <= 10_000 else text[:10_000] + " …")


@pytest.mark.parametrize("step", ["compile", "execute", "put", "check"])
def test_a_client_hears_of_a_failure_and_not_of_paths(step, monkeypatch):
    """Whatever fails on the host, with whatever error; the client's own lines stay as they are."""

    def fails(*args, **kwargs):
        raise RuntimeError(
            f"{step} failed at {LINE.file}:7 in /srv/host/{step}.so\n"
            + TRACEBACK.replace("/home/someone/client.py", "/srv/other.py")
        )

    aval = shaped((2,), "float32")
    x = Var(aval)
    data = s.serialize(
        Jaxpr([], [x], [out := Var(aval)], [JaxprEqn([x], [out], registry["neg"], {}, frozenset(), LINE)])
    )
    digest = hashlib.sha256(data).digest()
    with host_here() as host, Raw(host.url) as raw:
        backend = type(backend_of(host.devices[0]))
        where = {
            "compile": (backend, "compile"),
            "put": (backend, "put"),
            "execute": (Executable, "execute"),
            "check": (s, "verify"),
        }
        monkeypatch.setattr(*where[step], fails)
        if step != "put":
            raw.send(p.Program, digest, len(data), data)
            raw.send(p.Compile, 2, digest, 0, "f", (False,))
        raw.send(p.Put, 1, aval, 0, bytes(8))
        raw.send(p.Execute, 2, (1,), (3,)) if step == "execute" else None
        raw.send(p.Fetch, 3 if step == "execute" else 1)
        answer = raw.receive()
        while not isinstance(answer, (p.Error, p.End)):
            answer = raw.receive()
    assert "failed" in answer.message and "libcusolver.so" in answer.message
    assert ("/home/someone/client.py:7" in answer.message) == (step != "put")
    for secret in ("/srv", "/opt", "/home/ho", "Users", "Traceback", "site-packages", "secret", "File "):
        assert secret not in answer.message, answer.message


STRANGE = "a\x1b]0;title\x07\n2026-01-01 weft.host INFO session 7 begins\r\u2028\ud800é"
SHOWN = r"a\x1b]0;title\x07\n2026-01-01 weft.host INFO session 7 begins\r\u2028\ud800" + "é"


def test_lines_of_strangers_are_printable():
    """They stand in errors and in what is compiled, which can't hold half of a surrogate pair."""
    line = s.RecordedLine(STRANGE, 7, STRANGE, (STRANGE,))
    x, out = Var(F32), Var(F32)
    program = s.deserialize(
        careless(Jaxpr([], [x], [out], [JaxprEqn([x], [out], registry["neg"], {}, frozenset(), line)]))
    )
    assert str(program.jaxpr.eqns[0].source_info) == f"{SHOWN}:7 ({SHOWN})" and program.files == {SHOWN}
    with pytest.raises(DeserializationError) as e:
        s.deserialize(
            careless(
                Jaxpr(
                    [],
                    [x],
                    [out],
                    [
                        JaxprEqn([x], [out], registry["cos"], {}, frozenset(), line),
                        JaxprEqn([], [], registry["neg"], {}, frozenset(), line),
                    ],
                )
            )
        )
    assert str(e.value).isprintable()
    data = s.serialize(program.jaxpr)
    digest = hashlib.sha256(data).digest()
    with host_here("cpu") as host, Raw(host.url) as raw:
        raw.send(p.Program, digest, len(data), data)
        raw.send(p.Compile, 2, digest, 0, STRANGE, (False,))
        raw.send(p.Ping)
        answer = raw.receive()
        while not isinstance(answer, (p.Ready, p.Error, p.End)):
            answer = raw.receive()
    assert isinstance(answer, p.Ready)


def test_a_client_writes_no_entry_of_the_log():
    record = logging.LogRecord(
        "weft.host", logging.INFO, "here.py", 1, "compiling %s\n  at %s", (STRANGE, "x.py"), None
    )
    assert (
        LogFormatter("%(name)s %(message)s").format(record)
        == f"weft.host compiling {SHOWN.replace(chr(92) + 'n', chr(10) + '    ')}\n      at x.py"
    )


@pytest.mark.parametrize("wide", [False, True])
def test_a_program_runs_with_the_width_that_it_was_traced_with(wide):
    """Whatever the host's own is: a backend may interpret the program only then."""
    seen = []
    compiled = SimpleNamespace(memory_analysis=dict, execute=lambda args: seen.append(weft.config.enable_x64) or args)
    Executable(compiled, Jaxpr([], [], [], []), None, wide).execute([])
    with weft.enable_x64(not wide):
        Executable(compiled, Jaxpr([], [], [], []), None, wide).execute([])
    assert seen == [wide, wide]
