"""pure_callback and io_callback in programs of a host: the functions stay with the client, and the program waits."""

import hashlib
import random
import threading
import time
import traceback

import numpy as np
import pytest
import weft
import weft.numpy as jnp
import weft.remote
from hosts import TOKEN, becomes, host_here, run_host
from proxy import Proxy
from raw import Raw
from refusals import read_changed
from weft import lax
from weft.base.avals import shaped
from weft.core.jaxpr import Jaxpr, JaxprEqn, Var, subjaxprs
from weft.experimental import io_callback
from weft.export import artifact
from weft.primitives.inspection import remote_callback_p
from weft.runtime.dispatch import program_for
from weft.serialization.binary import DeserializationError
from weft.serialization.portable import NotPortable
from weft.serialization.programs import deserialize, serialize
from weft.transforms.portable import reporting
from weft_native.host.reports import Reports
from weft_remote import protocol as p
from weft_remote.errors import LimitError

F32 = shaped((), "float32")


@pytest.fixture(scope="module", params=["reference", "cpu", "wasm"])
def anywhere(request, tmp_path_factory):
    """A host of each kind."""
    with run_host(tmp_path_factory.mktemp("host"), "--platform", request.param) as running:
        yield running


def test_a_program_gets_what_a_function_returns(anywhere):
    def scale(v):
        assert v.devices() == {weft.devices("cpu")[0]}
        return np.asarray(v) * 2

    f = weft.jit(lambda x: weft.pure_callback(scale, x, x) + 1)
    with anywhere.connect(default=True):
        for n in (3, 3, 4):
            assert f(jnp.arange(n, dtype=jnp.float32)).tolist() == [2 * i + 1 for i in range(n)]


KINDS = ["bool", "int4", "uint8", "int32", "float8_e4m3fn", "bfloat16", "float16", "float32", "complex64"]


def test_kinds_of_operands_and_results(anywhere):
    """Dtypes, shapes, structures, random keys, other arguments."""
    seen = []
    types = {name: weft.ShapeDtypeStruct((2,), jnp.dtype(name)) for name in KINDS}
    types |= {"empty": weft.ShapeDtypeStruct((0, 3), jnp.float32), "one": weft.ShapeDtypeStruct((), jnp.int32)}

    def look(values, key, *, named):
        seen.append((values, weft.random.key_data(key).tolist(), named.shape))
        return values

    values = {name: jnp.asarray([1, 0]).astype(name) for name in KINDS}
    values |= {"empty": jnp.zeros((0, 3)), "one": jnp.int32(-7)}
    key = weft.random.key(3)
    with anywhere.connect(default=True):
        got = weft.jit(lambda v, k: weft.pure_callback(look, types, v, k, named=v["one"]))(values, key)
        assert {n: np.asarray(x).tolist() for n, x in got.items()} == {
            n: np.asarray(x).tolist() for n, x in values.items()
        }
        assert {n: x.dtype for n, x in got.items()} == {n: x.dtype for n, x in values.items()}
    ((given, words, shape),) = seen
    assert given["int4"].dtype == jnp.int4 and words == weft.random.key_data(key).tolist() and shape == ()


def test_64_bit_results(anywhere):
    with anywhere.connect(default=True), weft.enable_x64(True):
        f = weft.jit(lambda x: weft.pure_callback(lambda v: np.float64(1) / 3 + np.asarray(v), x, x))
        assert float(f(np.float64(0))) == 1 / 3


def everything(note):
    """Calls in each kind of control flow, in order."""

    def said(what, v):
        return io_callback(lambda x: note(what, float(x)), jnp.float32(0), v, ordered=True)

    def program(x):
        x = said("first", x)
        x, _ = lax.scan(lambda c, k: (said("scan", c + k), c), x, jnp.arange(3.0))
        x = lax.while_loop(lambda c: c < 50, lambda c: said("while", c), x)
        x = lax.cond(x > 0, lambda c: said("cond", c), lambda c: c, x)
        weft.debug.print("printed {x}", x=x, ordered=True)
        return said("last", x)

    return program


def test_calls_are_in_the_order_of_the_program(anywhere, capsys):
    seen = []

    def note(what, v):
        seen.append((what, v))
        return np.float32(v * 2)

    with anywhere.connect(default=True):
        f = weft.jit(everything(note))
        for _ in range(2):
            assert float(f(1.0)) == 384
            assert [what for what, _ in seen] == ["first", *["scan"] * 3, *["while"] * 2, "cond", "last"]
            assert [v for _, v in seen] == [1, 2, 5, 12, 24, 48, 96, 192]
            assert capsys.readouterr().out == "printed 192.0\n"  # between two calls, so that it is here
            seen.clear()


def test_unordered_calls_happen_as_often_as_the_program_says(anywhere):
    seen = []

    def note(v):
        seen.append(float(v))
        return np.float32(0)

    f = weft.jit(lambda x: lax.fori_loop(0, 5, lambda i, c: c + 1 + io_callback(note, jnp.float32(0), c), x))
    with anywhere.connect(default=True):
        assert float(f(0.0)) == 5
    assert seen == [0, 1, 2, 3, 4]


def test_a_call_without_results(anywhere):
    seen = []
    with anywhere.connect(default=True):
        weft.jit(lambda x: io_callback(lambda v: seen.append(float(v)), None, x))(2.0)
        assert seen == [2]  # it has happened when the call returns


def test_calls_of_vmap(anywhere):
    shapes = []

    def double(v):
        shapes.append(v.shape)
        return np.asarray(v) * 2

    def mapped(method):
        return weft.jit(weft.vmap(lambda v: weft.pure_callback(double, v, v, vmap_method=method)))

    x = np.arange(3, dtype=np.float32)
    with anywhere.connect(default=True):
        for method, want in (("sequential", [()] * 3), ("broadcast_all", [(3,)]), ("sequential_unrolled", [()] * 3)):
            assert mapped(method)(x).tolist() == [0, 2, 4] and shapes == want
            shapes.clear()
        with pytest.raises(ValueError, match="ordered io_callback"):
            weft.jit(weft.vmap(lambda v: io_callback(double, v, v, ordered=True)))(x)
        with pytest.raises(ValueError, match="do not support JVP"):
            weft.jit(weft.grad(lambda v: weft.pure_callback(double, v, v)))(1.0)


def test_a_derivative_that_the_user_gives(anywhere):
    @weft.custom_vjp
    def sine(x):
        return weft.pure_callback(lambda v: np.sin(v), x, x)

    sine.defvjp(lambda x: (sine(x), x), lambda x, g: (weft.pure_callback(lambda v: np.cos(v), x, x) * g,))
    with anywhere.connect(default=True):
        value, slope = weft.jit(weft.value_and_grad(sine))(1.0)
        assert float(value) == pytest.approx(np.sin(1)) and float(slope) == pytest.approx(np.cos(1))


def test_calls_in_the_condition_of_a_loop(anywhere):
    f = weft.jit(
        lambda x: lax.while_loop(
            lambda c: weft.pure_callback(lambda v: np.asarray(v) < 5, jnp.bool_(0), c), lambda c: c + 1, x
        )
    )
    with anywhere.connect(default=True):
        assert float(f(0.0)) == 5


def test_the_results_of_one_call_go_to_another(anywhere):
    add = lambda n: lambda v: np.asarray(v) + np.float32(n)
    f = weft.jit(lambda x: [x := weft.pure_callback(add(n), x, x) for n in range(1, 6)][-1])
    with anywhere.connect(default=True):
        assert float(f(0.0)) == 15


def test_equal_programs_that_call_other_functions(session):
    jits = [weft.jit(lambda x, n=n: weft.pure_callback(lambda v: np.float32(n), x, x)) for n in (1, 2)]
    assert [float(f(0.0)) for f in jits] == [1, 2]
    sent = [serialize(reporting(program_for(weft.make_jaxpr(f)(0.0))[0]).jaxpr) for f in jits]
    assert sent[0] == sent[1]


def test_donated_arguments(session):
    f = weft.jit(lambda x: weft.pure_callback(lambda v: np.asarray(v) + 1, x, x) + x, donate_argnums=0)
    x = jnp.arange(3.0)
    assert f(x).tolist() == [1, 3, 5] and x.is_deleted()


def test_large_operands_and_results_come_in_parts(session):
    big = np.arange(900_000, dtype=np.float32).reshape(3, -1)
    f = weft.jit(lambda x: weft.pure_callback(lambda v: (np.asarray(v)[::-1].copy(), np.asarray(v)[0]), (x, x[0]), x))
    flipped, first = f(big)
    np.testing.assert_array_equal(flipped, big[::-1])
    np.testing.assert_array_equal(first, big[0])


# errors -----------------------------------------------------------------------------------------------------------


def test_an_error_of_a_function_is_the_calls(anywhere):
    """With its own traceback; the session goes on, and so do other programs."""

    def fails(v):
        raise KeyError("mine")

    for ordered in (False, True):
        f = weft.jit(lambda x: io_callback(fails, x, x, ordered=ordered) + 1)
        with anywhere.connect(default=True) as session:
            with pytest.raises(KeyError, match="mine") as caught:
                f(1.0)
            assert "in fails" in "".join(traceback.format_exception(caught.value))
            weft.effects_barrier()
            assert float(weft.jit(lambda x: x + 1)(1.0)) == 2
            with pytest.raises(KeyError):
                f(1.0)
            assert session.failure is None


def test_a_loop_ends_at_its_first_error(anywhere):
    seen = []

    def look(v):
        seen.append(float(v))
        if v == 2:
            raise ArithmeticError("two")
        return np.float32(0)

    f = weft.jit(
        lambda x: lax.fori_loop(0, 9, lambda i, c: c + 1 + io_callback(look, jnp.float32(0), c, ordered=True), x)
    )
    with anywhere.connect(default=True):
        with pytest.raises(ArithmeticError, match="two"):
            f(0.0)
        assert seen == [0, 1, 2]


def test_results_that_do_not_fit_are_refused_here(session):
    """Each message names the user's line."""
    want = weft.ShapeDtypeStruct((2,), jnp.float32)
    for wrong, error, message in (
        (np.zeros(3, np.float32), ValueError, r"has shape \(3,\) where"),
        (np.zeros(2, np.complex64), TypeError, "has dtype complex64"),
        ((np.zeros(2), np.zeros(2)), TypeError, "returned the structure"),
    ):
        f = weft.jit(lambda x, wrong=wrong: weft.pure_callback(lambda v: wrong, want, x))
        with pytest.raises(error, match=message):
            f(1.0)


def test_a_function_may_not_wait_for_the_host(session):
    """It would wait forever: the host goes on when the function has returned."""
    there = weft.device_put(np.ones(30_000, np.float32)) + 1
    f = weft.jit(lambda x: weft.pure_callback(lambda v: np.asarray(there)[:1].reshape(()), x, x))
    with pytest.raises(weft.errors.BackendError, match="can't wait for that host(.|\n)*test_callbacks"):
        f(0.0)
    np.asarray(there)
    assert float(f(0.0)) == 2


def test_other_threads_wait_until_a_function_has_returned(session):
    begun, go_on, got = threading.Event(), threading.Event(), []

    def slow(v):
        begun.set()
        assert go_on.wait(60)
        return np.asarray(v)

    f = weft.jit(lambda x: weft.pure_callback(slow, x, x))
    call = threading.Thread(target=lambda: got.append(float(f(3.0))))
    call.start()
    assert begun.wait(60)
    read = threading.Thread(target=lambda: got.append(float(weft.jit(lambda x: x + 1)(1.0))))
    read.start()
    assert becomes(lambda: session.transport.waiting == 1)
    go_on.set()
    call.join(20), read.join(20)
    assert sorted(got) == [2, 3]


def test_a_call_that_no_program_of_a_host_can_hold(session):
    """The function of a reduction runs on pairs of elements, which the host chooses."""
    combine = lambda a, b: weft.pure_callback(lambda x, y: np.asarray(x) + np.asarray(y), a, a, b)
    with pytest.raises(NotPortable, match=r"can't call a Python function from(.|\n)*test_callbacks"):
        weft.jit(lambda x: lax.reduce(x, np.float32(0), combine, (0,)))(np.ones(3, np.float32))


def test_a_stop_ends_a_program_that_waits(host):
    """Ctrl-C in a function; the session stays where it is, for nothing computes."""

    def look(v):
        if v == 20:
            raise KeyboardInterrupt
        return np.asarray(v) + 1

    f = weft.jit(lambda x: lax.while_loop(lambda c: c >= 0, lambda c: io_callback(look, c, c), x))
    with host.connect(default=True) as session:
        with pytest.raises(KeyboardInterrupt):
            f(0)
        assert float(weft.jit(lambda x: x + 1)(1.0)) == 2
        weft.effects_barrier()
        assert session.stats.connections == 1


# connections ------------------------------------------------------------------------------------------------------


def test_a_connection_that_breaks_loses_and_repeats_no_call(host):
    """It is cut before the operands are complete, while the function runs, and before the result is complete."""
    with Proxy(host.port) as proxy, weft.remote.connect(proxy.url, token=TOKEN, default=True) as session:
        seen = []

        def look(n, v):
            seen.append(int(n))
            if n % 5 == 2:
                proxy.cut()
            return np.asarray(v) + 1

        body = lambda i, c: io_callback(look, c, i, c, ordered=True)
        f = weft.jit(lambda x: lax.fori_loop(0, 20, body, x))
        for n in range(3):
            proxy.cut_after = 200_000 + 300_000 * n
            assert np.asarray(f(np.zeros(20_000, np.float32))).tolist() == [20] * 20_000
        assert seen == list(range(20)) * 3
        assert session.stats.connections > 6


def test_a_client_that_is_away_is_waited_for(host):
    """For as long as a session outlives its connection, though programs that compute end sooner."""
    with Proxy(host.port) as proxy, weft.remote.connect(proxy.url, token=TOKEN, default=True) as session:

        def look(v):
            proxy.refusing = True
            proxy.cut()
            time.sleep(2)  # longer than a session computes without its client
            proxy.refusing = False
            return np.asarray(v) + 1

        assert float(weft.jit(lambda x: weft.pure_callback(look, x, x))(1.0)) == 2
        assert session.failure is None


def test_a_lost_host_ends_the_wait(tmp_path):
    with pytest.raises(AssertionError, match="the host has ended"), run_host(tmp_path) as mine:
        with mine.connect(default=True):

            def look(v):
                mine.process.kill()
                mine.process.wait(60)
                return np.asarray(v)

            with pytest.raises(weft.errors.BackendError):
                weft.jit(lambda x: weft.pure_callback(look, x, x))(1.0)


# what the host believes -------------------------------------------------------------------------------------------


def asking(number=0, ordered=False, shapes=((),), dtypes=("float32",), **more):
    """A program that calls a function with its argument."""
    x = Var(F32)
    types = tuple([jnp.dtype(d) for d in dtypes])
    outs = [Var(shaped(s, d)) for s, d in zip(shapes, types)]
    params = {"number": number, "ordered": ordered, "shapes": shapes, "dtypes": types, **more.pop("given", more)}
    eqn = JaxprEqn([x], outs, remote_callback_p, params, remote_callback_p.effects(params))
    return Jaxpr([], [x], outs, [eqn], eqn.effects)


def sent(raw, jaxpr: Jaxpr) -> None:
    """Puts an argument as handle 1, and compiles a program as handle 2."""
    data = serialize(jaxpr)
    digest = hashlib.sha256(data).digest()
    raw.send(p.Program, digest, len(data), data)
    raw.send(p.Put, 1, F32, 0, bytes(4))
    raw.send(p.Compile, 2, digest, 0, "f", (False,))


def test_the_hosts_words_for_an_error_hold_no_path(anywhere):
    with Raw(anywhere.url) as raw:
        sent(raw, asking())
        op = raw.send(p.ExecuteReporting, 2, (1,), (3,))
        report = raw.until(p.Report)
        assert (report.op, report.function, report.last, bytes(report.data)) == (op, 0, True, bytes(4))
        raw.send(p.Raised, report.number)
        error = raw.until(p.Error)
        assert error.op == op and "raised an error at its client" in error.message
        assert "/" not in error.message and ".py" not in error.message and "Traceback" not in error.message


def test_a_result_in_parts(host):
    with Raw(host.url) as raw:
        sent(raw, asking(shapes=((2,), ()), dtypes=("float32", "int32")))
        op = raw.send(p.ExecuteReporting, 2, (1,), (3, 4))
        number = raw.until(p.Report).number
        data = np.float32([1, 2]).tobytes() + np.int32(3).tobytes()
        for at, end in ((0, 3), (3, 3), (3, 12)):
            raw.send(p.Result, number, end == 12, data[at:end])
        assert raw.until(p.Ready) == p.Ready(op)
        raw.send(p.Fetch, 3)
        assert bytes(raw.until(p.Data).data) == data[:8]
        raw.send(p.Result, number, True, data)  # again: nobody waits for it
        raw.send(p.Raised, number)
        raw.send(p.Fetch, 4)
        assert bytes(raw.until(p.Data).data) == data[8:]


WRONG = {
    "too few bytes": (lambda n: (p.Result, n, True, bytes(3)), "a function returned 3 bytes, and its program takes 4"),
    "too many": (lambda n: (p.Result, n, False, bytes(5)), "a function returned 5 bytes, and its program takes 4"),
    "no such report": (lambda n: (p.Result, n + 1, True, bytes(4)), "a result came for report 2, and the last one is"),
    "no such error": (lambda n: (p.Raised, n + 1), "a result came for report 2, and the last one is 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_results_that_no_client_sends(case, host):
    make, message = WRONG[case]
    with Raw(host.url) as raw:
        sent(raw, asking())
        raw.send(p.ExecuteReporting, 2, (1,), (3,))
        raw.send(*make(raw.until(p.Report).number))
        assert message in raw.end().message


def test_whatever_the_bytes_they_are_values_of_the_dtype(host):
    """A bool is true or false, an integer of four bits has four."""
    with Raw(host.url) as raw:
        sent(raw, asking(shapes=((2,), (2,)), dtypes=("bool", "int4")))
        raw.send(p.ExecuteReporting, 2, (1,), (3, 4))
        raw.send(p.Result, raw.until(p.Report).number, True, bytes([7, 0, 0x71, 0xFF]))
        raw.send(p.Fetch, 3)
        assert bytes(raw.until(p.Data).data) == bytes([1, 0])


def test_a_client_that_does_not_answer_has_its_program_end():
    """The session goes on."""
    with host_here("reference", answer=0.3) as running, Raw(running.url) as raw:
        sent(raw, asking())
        op = raw.send(p.ExecuteReporting, 2, (1,), (3,))
        number = raw.until(p.Report).number
        error = raw.until(p.Error)
        assert (error.op, error.error) == (op, "LimitError")
        assert "has not answered a callback of its program for 0.3 s" in error.message
        raw.send(p.Result, number, True, bytes(4))  # too late
        raw.send(p.Ping)
        raw.until(p.Ready)
        session = next(iter(running.sessions.values()))
        assert not session.reports.questions


def test_a_program_that_waits_ends_with_its_client():
    with host_here("reference", grace=0.3) as running:
        with Raw(running.url) as raw:
            sent(raw, asking())
            raw.send(p.ExecuteReporting, 2, (1,), (3,))
            raw.until(p.Report)
            (session,) = running.sessions.values()
        assert becomes(lambda: session.end is not None and not session.performer.thread.is_alive())
        assert "not taken up again in time" in session.end.message


def test_results_count_as_memory():
    """Together with what is reported; the program fails alone."""
    with host_here("reference", session_bytes=1 << 20) as running, weft.remote.connect(running.url, token=TOKEN) as s:
        big, x = weft.ShapeDtypeStruct((180_000,), jnp.float32), weft.device_put(np.float32(1), s.devices()[0])
        f = weft.jit(lambda x: weft.pure_callback(np.asarray, big, jnp.broadcast_to(x, (180_000,))).sum())
        with pytest.raises(LimitError, match="a report takes"):
            f(x)
        assert float(weft.jit(lambda x: x + 1)(x)) == 2


def test_a_client_in_javascript_is_told(host):
    with Raw(host.url) as raw:
        sent(raw, asking())
        raw.send(p.Execute, 2, (1,), (3,))
        assert "A client that knows no callbacks, as that in JavaScript" in raw.end().message


def test_a_file_holds_no_calls():
    with pytest.raises(NotPortable, match="pure_callback"):
        weft.export.export(weft.jit(lambda x: weft.pure_callback(lambda v: v, x, x)))(F32)
    exported = weft.export.export(weft.jit(lambda x: x * 1))(F32)
    fields = artifact.deserialize(exported.serialize())
    assert not fields["closed"].jaxpr.effects


@pytest.mark.parametrize(
    "made,message",
    [
        (lambda: asking(shapes=((), ()), dtypes=("float32",)), "2 shapes of results, and 1 dtypes"),
        (lambda: asking(given={"shapes": ((-1,),)}), "shapes of remote_callback must be"),
        (lambda: asking(number=-1), "number of remote_callback must be"),
        (lambda: asking(callback=1), "has no parameter 'callback'"),
    ],
)
def test_programs_that_no_client_sends(made, message):
    with pytest.raises((DeserializationError, ValueError, TypeError), match=message):
        deserialize(serialize(made()))


def primitives(jaxpr: Jaxpr) -> set[str]:
    return {e.primitive.name for e in jaxpr.eqns}.union(
        *[primitives(s) for e in jaxpr.eqns for s in subjaxprs(e.params)]
    )


def test_whatever_the_bytes_no_call_stays_unseen():
    """A host knows of every program that it accepts whether it calls its client, and puts its own function there."""
    closed = weft.make_jaxpr(everything(lambda what, v: np.float32(v)))(np.float32(1))
    data = serialize(reporting(program_for(closed)[0]).jaxpr)
    rng, mine = random.Random(7), Reports(None)
    accepted = asked = 0
    for _ in range(3000):
        jaxpr = read_changed(data, rng)
        if jaxpr is None:
            continue
        accepted += 1
        found = primitives(jaxpr) & {"remote_callback", "debug_report"}
        assert bool(found) == bool(jaxpr.effects)
        if found:
            asked += 1
            assert not primitives(mine.program(jaxpr)) & {"remote_callback", "debug_report"}
    assert accepted > 100 and asked > 50
