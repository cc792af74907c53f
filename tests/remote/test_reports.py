"""debug.print and debug.callback in programs of a host: the operands travel, the functions stay with the client."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import weft
import weft.numpy as jnp
import weft.remote
from hosts import TOKEN, host_here, interruptible, run_host
from proxy import Proxy
from raw import Raw
from refusals import read_changed
from test_strange_hosts import WELCOME
from test_strange_hosts import host as strange
from weft import export, lax
from weft.base.avals import shaped
from weft.core.carries import Runs
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, subjaxprs
from weft.export import artifact
from weft.primitives.inspection import debug_report_p
from weft.runtime.dispatch import program_for
from weft.serialization.binary import DeserializationError
from weft.serialization.portable import NotPortable
from weft.serialization.programs import deserialize, serialize
from weft.transforms.portable import reporting
from weft_native.host.reports import Reports
from weft_remote import protocol as p
from weft_remote import reports
from weft_remote.errors import LimitError, ProtocolError

F32 = shaped((), "float32")


def lines(capsys) -> list[str]:
    weft.effects_barrier()
    return capsys.readouterr().out.splitlines()


@pytest.fixture(scope="module", params=["reference", "cpu", "wasm"])
def anywhere(request, tmp_path_factory):
    """A host of each kind."""
    with run_host(tmp_path_factory.mktemp("host"), "--platform", request.param) as running:
        yield running


def printing(x):
    weft.debug.print("x {x}", x=x, ordered=True)

    def step(c, k):
        weft.debug.print("step {k}: {c:.1f}", k=k, c=c, ordered=True)
        return c * 2, c

    x, _ = lax.scan(step, x, jnp.arange(3))

    def more(c):
        weft.debug.print("while {}", c, ordered=True)
        return c * 3

    x = lax.while_loop(lambda c: c < 50, more, x)
    return lax.cond(x > 0, lambda c: (weft.debug.print("positive", ordered=True), c)[1], lambda c: -c, x)


def test_prints_are_in_the_order_of_the_program(anywhere, capsys):
    with anywhere.connect(default=True):
        f = weft.jit(printing)
        for _ in range(2):
            assert f(1.0) == 72
            wanted = ["x 1.0", "step 0: 1.0", "step 1: 2.0", "step 2: 4.0", "while 8.0", "while 24.0", "positive"]
            assert lines(capsys) == wanted


def test_functions_get_what_they_get_elsewhere(anywhere):
    """Kinds of operands and of other arguments, under vmap and grad."""
    seen = []

    def program(key, flags, half, x):
        weft.debug.callback(lambda *a, **k: seen.append((a, k)), key, {"flags": flags}, "text", None, half=half, n=3)
        weft.vmap(lambda v: weft.debug.callback(lambda w: seen.append(float(w)), v, ordered=False))(x)
        return weft.grad(lambda v: (weft.debug.callback(lambda w: seen.append(w.shape), v), (v * v).sum())[1])(x)

    flags, half, x = np.array([True, False]), jnp.array([0.5, 1.5], jnp.bfloat16), np.float32([1, 2])
    with anywhere.connect(default=True):
        out = weft.jit(program)(weft.random.key(3), flags, half, x)
        weft.effects_barrier()
        (key, tree, text, nothing), named = next(s for s in seen if isinstance(s, tuple) and len(s) == 2)
        assert (text, nothing, named["n"]) == ("text", None, 3) and tree["flags"].tolist() == [True, False]
        assert weft.random.key_data(key).tolist() == weft.random.key_data(weft.random.key(3)).tolist()
        assert named["half"].dtype == jnp.bfloat16 and named["half"].tolist() == [0.5, 1.5]
        assert sorted(s for s in seen if isinstance(s, float)) == [1, 2] and (2,) in seen
        assert out.tolist() == [2, 4]


def test_a_program_without_results_prints(session, capsys):
    weft.jit(lambda x: weft.debug.print("only {}", x))(jnp.arange(2))
    assert lines(capsys) == ["only [0 1]"]


def test_whoever_waits_for_a_result_sees_the_prints_before_it(session, capsys):
    y = weft.jit(lambda x: (weft.debug.print("x {}", x), x + 1)[1])(jnp.arange(2))
    assert y.tolist() == [1, 2] and capsys.readouterr().out == "x [0 1]\n"


def test_equal_programs_that_print_other_texts(session, capsys):
    """They have the same bytes: no text leaves this process."""
    jits = [weft.jit(lambda x, t=text: (weft.debug.print(t + " {}", x), x * 2)[1]) for text in ("this", "that")]
    assert [int(f(3)) for f in jits] == [6, 6]
    assert lines(capsys) == ["this 3", "that 3"]
    sent = [serialize(reporting(program_for(weft.make_jaxpr(f)(3))[0]).jaxpr) for f in jits]
    assert sent[0] == sent[1] and b"this" not in sent[0]


def test_large_operands_come_in_parts(session):
    seen, big = [], np.arange(900_000, dtype=np.float32).reshape(3, -1)
    weft.jit(lambda *a: weft.debug.callback(lambda *v: seen.extend(map(np.asarray, v)), *a))(
        big, np.zeros((0, 3), np.float32), np.int8([1, -2]), big[0]
    )
    weft.effects_barrier()
    assert [s.shape for s in seen] == [(3, 300_000), (0, 3), (2,), (300_000,)]
    np.testing.assert_array_equal(seen[0], big)
    np.testing.assert_array_equal(seen[3], big[0])


def test_a_function_computes_here_and_may_read_from_the_host(session):
    """The host still runs the program; later reports wait while a function does."""
    seen = []
    double, there = weft.jit(lambda v: v * 2), jnp.ones(1 << 15) + 1

    def look(v):
        seen.append(("in", float(v)))
        assert v.devices() == double(v).devices() and "Remote" not in str(v.devices())
        np.asarray(there)
        seen.append(("out", float(double(v))))

    def body(i, c):
        weft.debug.callback(look, c, ordered=True)
        return c + 1

    weft.jit(lambda x: lax.fori_loop(0, 3, body, x))(1.0)
    weft.effects_barrier()
    assert seen == [("in", 1), ("out", 2), ("in", 2), ("out", 4), ("in", 3), ("out", 6)]


def test_an_error_of_a_function_is_raised_where_the_program_is_waited_for(session):
    seen = []

    def look(v):
        seen.append(float(v))
        if v == 1:
            raise KeyError("one")

    f = weft.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: (weft.debug.callback(look, c, ordered=True), c + 1)[1], x))
    y = f(0.0)
    with pytest.raises(KeyError, match="one"):
        weft.effects_barrier()
    weft.effects_barrier()
    assert float(y) == 3 and seen == [0, 1, 2]
    assert float(weft.jit(lambda x: x + 1)(1.0)) == 2


def test_a_stop_ends_a_program_that_prints_forever(session):
    """Ctrl-C in a callback, as it reaches whoever waits."""
    seen = []

    def look(n):
        seen.append(int(n))
        if n == 20:
            raise KeyboardInterrupt

    endless = weft.jit(lambda: lax.while_loop(lambda n: n >= 0, lambda n: (weft.debug.callback(look, n), n + 1)[1], 0))
    n = endless()
    with pytest.raises(KeyboardInterrupt):
        n.block_until_ready()
    assert seen == list(range(21))
    began = time.monotonic()
    assert float(weft.jit(lambda x: x + 1)(1.0)) == 2  # the host has stopped it, though it never ends by itself
    assert time.monotonic() - began < 20 and seen == list(range(21))
    with pytest.raises(weft.errors.BackendError, match="was stopped"):
        n.block_until_ready()
    weft.effects_barrier()


def test_a_connection_that_breaks_loses_and_repeats_nothing(host):
    with Proxy(host.port) as proxy, weft.remote.connect(proxy.url, token=TOKEN, default=True) as session:
        seen = []

        def body(i, c):
            weft.debug.callback(lambda n, v: seen.append((int(n), len(v))), i, c, ordered=True)
            return c

        f = weft.jit(lambda x: lax.fori_loop(0, 40, body, x))
        for n in range(3):
            proxy.cut_after = 400_000 + 300_000 * n
            f(np.zeros(20_000, np.float32))
            weft.effects_barrier()
        assert seen == [(i, 20_000) for i in range(40)] * 3
        assert session.stats.connections > 2


def test_sessions_get_their_own_reports(anywhere):
    """At the same time, of the same program."""
    seen: dict[int, list[int]] = {0: [], 1: []}

    def work(k, device):
        def body(i, c):
            weft.debug.callback(lambda v: seen[k].append(int(v)), c, ordered=True)
            return c + 2

        f = weft.jit(lambda x: lax.fori_loop(0, 50, body, x))
        f(weft.device_put(np.int32(k), device)).block_until_ready()

    with anywhere.connect() as one, anywhere.connect() as other:
        threads = [threading.Thread(target=work, args=(k, s.devices()[0])) for k, s in enumerate((one, other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert seen == {k: [k + 2 * i for i in range(50)] for k in range(2)}


def test_the_end_of_a_session_and_of_python_wait_for_prints(host, capsys):
    f = weft.jit(lambda x: weft.debug.print("last {}", x))
    with host.connect(default=True):
        f(1)
    assert capsys.readouterr().out == "last 1\n"
    program = [
        "import weft, weft.remote",
        f"weft.remote.connect({host.url!r}, token={TOKEN!r}, default=True)",
        "weft.jit(lambda x: weft.debug.print('last {}', x))(2)",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(program)], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("last 2\n", 0), done.stderr


# what is refused ------------------------------------------------------------------------------------------------------


def report(number=0, ordered=False, **more):
    """The bytes of a program that reports its argument."""
    x = Var(F32)
    params = {"number": number, "ordered": ordered, **more}
    return Jaxpr([], [x], [x], [JaxprEqn([x], [], debug_report_p, params, debug_report_p.effects(params))])


def test_a_file_holds_no_reports():
    exported = export.export(weft.jit(lambda x: x * 1))(F32)
    fields = artifact.deserialize(exported.serialize())
    assert not fields["closed"].jaxpr.effects
    with pytest.raises(NotPortable, match="debug_callback"):
        export.export(weft.jit(lambda x: weft.debug.print("{}", x)))(F32)


def test_effects_are_those_of_the_primitive():
    """A reader does not take a program's word for them, and a program that can't report carries none that does."""
    for ordered in (False, True):
        jaxpr = report(ordered=ordered)
        assert deserialize(serialize(jaxpr)).jaxpr.effects == debug_report_p.effects({"ordered": ordered})
    combine = lambda a, b: a * b + b
    carrier = weft.make_jaxpr(lambda x: lax.reduce(x, np.float32(0), combine, (0,)))(np.ones(3, "float32")).jaxpr
    (eqn,) = carrier.eqns
    assert eqn.primitive.carries.runs is Runs.COMBINING
    a, b = Var(F32), Var(F32)
    inner = report().eqns[0].replace(invars=[a])
    (key,) = [k for k, v in eqn.params.items() if isinstance(v, ClosedJaxpr)]
    bad = eqn.replace(params={**eqn.params, key: ClosedJaxpr(Jaxpr([], [a, b], [a], [inner], inner.effects), [])})
    with pytest.raises(DeserializationError, match="has effects, or carries some"):
        deserialize(serialize(carrier.replace(eqns=[bad])))


def primitives(jaxpr: Jaxpr) -> set[str]:
    return {e.primitive.name for e in jaxpr.eqns}.union(
        *[primitives(s) for e in jaxpr.eqns for s in subjaxprs(e.params)]
    )


def test_whatever_the_bytes_no_report_stays_unseen():
    """A host knows of every program that it accepts whether it reports, and puts its own function in each place."""
    closed = weft.make_jaxpr(printing)(np.float32(1))
    data = serialize(reporting(program_for(closed)[0]).jaxpr)
    rng, mine = random.Random(5), Reports(None)
    accepted = reported = 0
    for _ in range(4000):
        jaxpr = read_changed(data, rng)
        if jaxpr is None:
            continue
        accepted += 1
        assert ("debug_report" in primitives(jaxpr)) == bool(jaxpr.effects)
        if jaxpr.effects:
            reported += 1
            assert "debug_report" not in primitives(mine.program(jaxpr))
    assert accepted > 100 and reported > 50


def sent(raw, jaxpr: Jaxpr) -> None:
    """Puts an argument as handle 1, and compiles a program as handle 2."""
    data = serialize(jaxpr)
    digest = hashlib.sha256(data).digest()
    raw.send(p.Program, digest, len(data), data)
    raw.send(p.Put, 1, F32, 0, bytes(4))
    raw.send(p.Compile, 2, digest, 0, "f", (False,))


def test_a_client_names_the_operation_that_fits(host):
    with Raw(host.url) as raw:
        sent(raw, report())
        raw.send(p.Execute, 2, (1,), (3,))
        assert "ExecuteReporting is for the programs that report" in raw.end().message
    x = Var(F32)
    with Raw(host.url) as raw:
        sent(raw, Jaxpr([], [x], [x], []))
        raw.send(p.ExecuteReporting, 2, (1,), (3,))
        assert "ExecuteReporting is for the programs that report" in raw.end().message


def test_a_report_and_what_follows_it(host):
    with Raw(host.url) as raw:
        sent(raw, report(number=(1 << 63) - 1))
        op = raw.send(p.ExecuteReporting, 2, (1,), (3,))
        assert raw.until(p.Report) == p.Report(1, op, (1 << 63) - 1, True, bytes(4))
        assert raw.until(p.Ready) == p.Ready(op)
        raw.frame(p.encode(p.Reported(0), p.Reported(1 << 60), p.Reported(1)))  # nothing, too much, again
        wrong = raw.send(p.ExecuteReporting, 2, (1,), (4,))
        assert raw.until(p.Report) == p.Report(2, wrong, (1 << 63) - 1, True, bytes(4))
    with Raw(host.url) as raw:
        sent(raw, report())
        raw.send(p.ExecuteReporting, 2, (9,), (3,))
        assert "there is no handle 9" in raw.end().message


def test_an_argument_that_failed_answers_the_operation(host):
    big = shaped((1 << 40,), "float32")
    with Raw(host.url) as raw:
        sent(raw, report())
        raw.send(p.Put, 7, big, 0, b"")
        op = raw.send(p.ExecuteReporting, 2, (7,), (3,))
        assert raw.until(p.Error).op == op


def endless() -> Jaxpr:
    """A program that prints for as long as its argument is 0."""

    def body(c):
        weft.debug.print("{}", c)
        return c

    closed = weft.make_jaxpr(lambda x: lax.while_loop(lambda c: c == 0, body, x))(np.float32(0))
    return reporting(program_for(closed)[0]).jaxpr


def test_a_client_that_takes_no_reports_has_its_program_wait_and_end():
    with host_here("reference", seconds=2) as running, Raw(running.url) as raw:
        sent(raw, endless())
        raw.send(p.ExecuteReporting, 2, (1,), (3,))
        assert raw.until(p.Report).number == 1
        session = next(iter(running.sessions.values()))
        end = raw.until(p.End)
        assert "took longer than 2 s" in end.message
        assert session.reports.size <= 4 << 20


def test_reports_count_as_memory():
    """One that is larger than the session may have fails its program alone."""
    with host_here("reference", session_bytes=3 << 20) as running, weft.remote.connect(running.url, token=TOKEN) as s:
        x = weft.device_put(np.zeros(1 << 18, np.float32), s.devices()[0])
        f = weft.jit(lambda x: (weft.debug.callback(lambda *v: None, *[x] * 4), x + 1)[1])
        y = f(x)
        with pytest.raises(LimitError, match="a report takes"):
            y.block_until_ready()
        with pytest.raises(LimitError):
            weft.effects_barrier()
        assert float(weft.jit(lambda x: x.sum())(x)) == 0


def test_many_small_parts_of_a_report_count_for_more_than_their_bytes():
    """Each is a message of its own, which takes memory beside its data."""
    with host_here("reference", session_bytes=100_000) as running, weft.remote.connect(running.url, token=TOKEN) as s:
        x = weft.device_put(np.float32(1), s.devices()[0])
        for count, refused in ((100, False), (500, True)):
            weft.jit(lambda x, n=count: weft.debug.callback(lambda *v: None, *[x] * n))(x)
            if refused:
                with pytest.raises(LimitError, match="a report takes"):
                    weft.effects_barrier()
            else:
                weft.effects_barrier()


STRANGE = {
    "a gap": (lambda op: [p.Report(2, op, 0, True, bytes(4))], "report 2 came after 0"),
    "an unknown function": (lambda op: [p.Report(1, op, 1, True, bytes(4))], "reports to function 1 of 1"),
    "too few bytes": (lambda op: [p.Report(1, op, 0, True, bytes(3))], "reports 3 bytes where function 0 takes 4"),
    "too many": (lambda op: [p.Report(1, op, 0, False, bytes(5))], "reports 5 bytes where function 0 takes 4"),
    "one in another": (
        lambda op: [p.Report(1, op, 0, False, bytes(2)), p.Report(2, op + 1, 0, True, bytes(4))],
        "began a report within another",
    ),
}


@pytest.mark.parametrize("case", STRANGE)
def test_reports_that_no_host_sends(case):
    make, message = STRANGE[case]
    seen = []
    with strange(WELCOME, {p.ExecuteReporting: make}) as url, weft.remote.connect(url, token="") as session:
        x = weft.device_put(np.float32(1), session.devices()[0])
        y = weft.jit(lambda x: (weft.debug.callback(seen.append, x), x)[1])(x)
        with pytest.raises(ProtocolError, match=message):
            y.block_until_ready()
        with pytest.raises(ProtocolError, match=message):
            weft.effects_barrier()
    assert not seen


def test_the_host_hears_of_no_more_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(reports, "ROOM", 10)
    queue, seen = reports.Reports(), []
    queue.reporters[1] = reports.Reporter([lambda v: seen.append(bytes(v[0]))], [[F32]])
    for n in range(1, 4):
        queue.take(p.Report(n, 1, 0, True, bytes([n] * 4)))
        assert queue.confirm() == (p.Reported(n) if n < 3 else None)
    queue.take(p.Report(2, 1, 0, True, bytes(4)))  # sent again
    queue.deliver(lambda: None, lambda *_: None)
    assert queue.confirm() == p.Reported(3) and queue.confirm() is None
    assert seen == [bytes([n] * 4) for n in range(1, 4)]


def test_a_stop_drops_the_reports_of_the_programs_before_it():
    queue, seen = reports.Reports(), []
    for op in (1, 2, 3):
        queue.reporters[op] = reports.Reporter([lambda v: seen.append(bytes(v[0]))], [[F32]])
    queue.take(p.Report(1, 1, 0, True, bytes(4)))
    queue.cancel(2)
    for n, op in ((2, 2), (3, 3)):
        queue.take(p.Report(n, op, 0, True, bytes([n] * 4)))
    queue.deliver(lambda: None, lambda *_: None)
    assert seen == [bytes([3] * 4)]


def test_a_program_without_results_fails_where_it_is_waited_for():
    with host_here("reference", session_bytes=3 << 20) as running, weft.remote.connect(running.url, token=TOKEN) as s:
        x = weft.device_put(np.zeros(1 << 18, np.float32), s.devices()[0])
        weft.jit(lambda x: weft.debug.callback(lambda *v: None, *[x] * 4))(x)
        with pytest.raises(LimitError, match="a report takes"):
            weft.effects_barrier()


def test_an_error_of_a_function_does_not_keep_a_session_open(host):
    def fails(v):
        raise KeyError("at the end")

    session = host.connect(default=True)
    weft.jit(lambda x: weft.debug.callback(fails, x))(1.0)
    with pytest.raises(KeyError, match="at the end"):
        session.close()
    assert session.closed and weft.default_backend() != "remote"


def test_what_was_reported_before_the_session_closes_is_not_lost(host):
    seen = []
    with host.connect() as session:
        x = weft.device_put(np.float32(1), session.devices()[0])
        weft.jit(lambda x: weft.debug.callback(seen.append, x))(x)
        while session._reporting():  # until the program is answered, unseen by the one that called it
            time.sleep(0.01)
        assert not seen
    assert [float(x) for x in seen] == [1.0]


def test_literals_are_reported_too(session, capsys):
    weft.jit(lambda: weft.debug.print("{} {}", 1, 2.5))()
    assert lines(capsys) == ["1 2.5"]


def test_ctrl_c_within_a_frame_loses_none_of_its_messages(host):
    """The interrupt comes while a report is taken, and more reports are in the same frame."""
    seen = []

    def tell(x):
        for _ in range(50):
            weft.debug.callback(lambda v: seen.append(int(v)), x, ordered=True)
            x = x + 1
        return x

    with host.connect() as session:
        device = session.devices()[0]
        f = weft.jit(tell, device=device)
        take, struck = session._handle, []

        def strike(message):
            if isinstance(message, p.Report) and not struck:
                struck.append(message.number)
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)
            take(message)

        session._handle = strike
        with interruptible(), pytest.raises(KeyboardInterrupt):
            np.asarray(f(weft.device_put(np.int32(0), device)))
        assert struck == [1]
        seen.clear()
        assert int(f(weft.device_put(np.int32(100), device))) == 150
        weft.effects_barrier()
        assert seen == list(range(100, 150))
