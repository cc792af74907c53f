"""Several hosts behind HAProxy, with the configuration of deploy/."""

import collections
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import weft
import weft.remote
from balanced import NAMES, TLS, Balanced, answered, free_port
from hosts import TOKEN, becomes
from operated import operated
from platforms import need
from proxy import Proxy
from weft import export
from weft_native.host.ids import ID, new_id
from weft_native.host.proxies import Proxies
from weft_remote.errors import ConnectionLost, LimitError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="all of 127.0.0.0/8 is this machine's on Linux alone")


@contextlib.contextmanager
def one(folder: pathlib.Path, name: str, *options: str):
    """A host as the configuration of the proxy expects it."""
    need("haproxy", "cpu")
    folder.mkdir(exist_ok=True)
    models = folder / "models"
    models.mkdir(exist_ok=True)
    made = export.export(weft.jit(lambda x: 2 * x))(weft.ShapeDtypeStruct((), np.float32))
    (models / "twice.weft").write_bytes(made.serialize())
    given = (
        "--platform",
        "cpu",
        "--name",
        name,
        "--trusted-proxy",
        "127.0.0.1",
        "--serve",
        str(models),
        "--audit",
        str(folder / "audit"),
    )
    with operated(folder, *given, *options) as (host, page):
        host.name, host.page, host.audit, host.may_end = name, page, folder / "audit", True
        yield host


@contextlib.contextmanager
def both(folder: pathlib.Path, *options: str):
    """Two hosts, and HAProxy before them."""
    with contextlib.ExitStack() as stack:
        hosts = [stack.enter_context(one(folder / name, name, *options)) for name in NAMES]
        balanced = Balanced(folder, {host.name: host.port for host in hosts})
        stack.enter_context(balanced.running())
        yield balanced, hosts


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with both(tmp_path_factory.mktemp("pair"), "--guesses", "3") as made:
        yield made


@pytest.fixture(autouse=True)
def trusted(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "certificate.pem"))


def host_of(session) -> str:
    return session.welcome.id.partition("_")[0]


def events(host, kind: str) -> list[dict]:
    found = [json.loads(line) for line in host.audit.read_text().split("\n") if line]
    return [event for event in found if event["event"] == kind]


def test_sessions_are_spread(pair):
    balanced, hosts = pair
    with contextlib.ExitStack() as stack:
        sessions = [stack.enter_context(balanced.connect()) for _ in range(6)]
        assert collections.Counter(map(host_of, sessions)) == {"host-1": 3, "host-2": 3}
        for host in hosts:
            ids = {found["id"] for found in host.page.json("/api/sessions")[1]["sessions"]}
            assert ids >= {s.welcome.id for s in sessions if host_of(s) == host.name}
        for k, session in enumerate(sessions):
            x = weft.device_put(np.full(3, k, np.float32), session.devices()[0])
            assert float((x * 2).sum()) == 6 * k


def test_a_connection_that_breaks_is_taken_up_by_its_host(pair):
    """However the others are spread: most of all resumed ones would come to the other host by chance."""
    balanced, _ = pair
    with Proxy(balanced.port) as cut, contextlib.ExitStack() as stack:
        url = cut.url.replace("ws:", "wss:")
        sessions = [stack.enter_context(balanced.connect(url)) for _ in range(4)]
        arrays = [weft.device_put(np.full(3, k, np.float32), s.devices()[0]) for k, s in enumerate(sessions)]
        for round in range(3):
            cut.cut()
            for k, (x, session) in enumerate(zip(arrays, sessions)):
                assert float((x + 1).sum()) == 3 * k + 3
                assert session.stats.connections >= round + 1
        assert sum(s.stats.connections for s in sessions) > 4
        assert {host_of(s) for s in sessions} == set(NAMES)


CLIENT = """
import { createRequire } from "node:module";
import readline from "node:readline";
import { connect } from "./client.mjs";

const [root, url, token, program] = process.argv.slice(2);
const { WebSocket } = createRequire(root + "/package.json")("ws");
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const hosts = [];
for (let k = 0; k < 4; k++) hosts.push(await connect(url, { token, WebSocket }));
const steps = await Promise.all(hosts.map((host) => host.load(new URL("file://" + program))));
const states = await Promise.all(steps.map((step, k) => step.onDevice(k + 1)));
console.log("ready");
await lines.next(); // the connections are cut meanwhile
const found = [];
for (const [k, step] of steps.entries()) found.push(await (await step.onDevice(states[k])).read());
console.log(JSON.stringify(found));
for (const host of hosts) host.close();
process.exit();
"""


def test_clients_in_javascript_come_back_to_their_hosts(pair, tmp_path):
    need("node")
    balanced, hosts = pair
    root = pathlib.Path(__file__).resolve().parents[2]
    bundler, client = root / "node_modules/.bin/esbuild", root / "wasm/runtime/src/host/index.ts"
    assert bundler.exists(), "it comes with `make test-python`, or `npm ci`"
    options = ("--bundle", "--platform=node", "--format=esm", "--log-level=warning")
    subprocess.run([bundler, client, f"--outfile={tmp_path}/client.mjs", *options], check=True)
    (tmp_path / "main.mjs").write_text(CLIENT)
    before = [len(events(host, "session-resumes")) for host in hosts]
    with Proxy(balanced.port) as cut:
        given = [root, cut.url.replace("ws:", "wss:"), TOKEN, hosts[0].audit.parent / "models/twice.weft"]
        with subprocess.Popen(
            ["node", tmp_path / "main.mjs", *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "NODE_EXTRA_CA_CERTS": str(TLS / "certificate.pem")},
        ) as process:
            assert process.stdout.readline() == "ready\n"
            cut.cut()
            process.stdin.write("\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline()) == [4, 8, 12, 16]
            assert process.wait(60) == 0
    assert all(len(events(host, "session-resumes")) >= b + 2 for host, b in zip(hosts, before))


def test_requests_for_programs_reach_both(pair):
    balanced, hosts = pair
    before = [host.page.json("/api/programs")[1]["programs"][0]["requests"] for host in hosts]
    for k in range(10):
        status, found = balanced.ask(k)
        assert status == 200 and found["result"] == 2 * k
    after = [host.page.json("/api/programs")[1]["programs"][0]["requests"] for host in hosts]
    gained = [b - a for a, b in zip(before, after)]
    assert sum(gained) == 10 and min(gained) >= 3


def test_the_proxy_says_whether_a_host_is_ready(pair):
    balanced, _ = pair
    context = ssl.create_default_context(cafile=str(TLS / "certificate.pem"))
    with contextlib.closing(http.client.HTTPSConnection("127.0.0.1", balanced.port, context=context)) as line:
        line.request("GET", "/proxyz")
        assert line.getresponse().status == 200


def test_addresses_of_clients_reach_the_hosts(pair):
    """In their audit logs, and where they count guesses; a client's own word on it counts for nothing."""
    balanced, hosts = pair
    refused = []
    for _ in range(12):  # more than both hosts allow
        status, found = balanced.ask(1, "a guess", "127.0.0.2", X_Forwarded_For="127.0.0.9")
        assert status == 401
        refused.append(found["error"])
    assert "does not know this token" in str(refused[0]) and "too many wrong tokens" in str(refused[-1])
    assert balanced.ask(1, source="127.0.0.2")[0] == 401, "for a while, also with the right token"
    assert balanced.ask(1, source="127.0.0.3")[0] == 200, "other addresses are let in"
    for host in hosts:
        found = collections.Counter(event["address"] for event in events(host, "refused"))
        assert found["127.0.0.2"] >= 3 and "127.0.0.9" not in found
    with socket.create_server(("127.0.0.1", 0)) as server:  # a session, from an address of its own
        port = server.getsockname()[1]
    with relay(port, balanced.port, "127.0.0.4"):
        with balanced.connect(f"wss://127.0.0.1:{port}") as session:
            (host,) = [h for h in hosts if h.name == host_of(session)]
            (began,) = [e for e in events(host, "session-begins") if e["session"] == session.welcome.id]
            assert began["address"] == "127.0.0.4"


@contextlib.contextmanager
def relay(port: int, target: int, source: str):
    """Carries what comes to one port to another, from an address of its own."""
    program = (
        "import socket, sys, threading\n"
        "port, target, source = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]\n"
        "def pump(a, b):\n"
        "    while data := a.recv(65536): b.sendall(data)\n"
        "    b.shutdown(socket.SHUT_WR)\n"
        "server = socket.create_server(('127.0.0.1', port)); print(flush=True)\n"
        "while True:\n"
        "    a = server.accept()[0]\n"
        "    b = socket.create_connection(('127.0.0.1', target), source_address=(source, 0))\n"
        "    for pair in ((a, b), (b, a)): threading.Thread(target=pump, args=pair, daemon=True).start()\n"
    )
    given = [sys.executable, "-c", program, str(port), str(target), source]
    with subprocess.Popen(given, stdout=subprocess.PIPE, text=True) as process:
        try:
            process.stdout.readline()
            yield
        finally:
            process.kill()


def test_others_are_not_believed(pair):
    """Who comes to a host past the proxy can't say where he is."""
    _, hosts = pair
    line = http.client.HTTPConnection("127.0.0.1", hosts[0].port, timeout=30, source_address=("127.0.0.5", 0))
    assert answered(line, 1, "a guess", {"X_Forwarded_For": "127.0.0.10"})[0] == 401
    addresses = {event["address"] for event in events(hosts[0], "refused")}
    assert "127.0.0.5" in addresses and "127.0.0.10" not in addresses


def test_a_host_that_is_killed(tmp_path):
    with both(tmp_path) as (balanced, hosts):
        sessions = {host_of(s): s for s in [balanced.connect(), balanced.connect()]}
        assert set(sessions) == set(NAMES)
        hosts[0].process.send_signal(signal.SIGKILL)
        hosts[0].process.wait(60)
        began = time.monotonic()
        for k in range(10):
            assert balanced.ask(k)[0] == 200
        with pytest.raises(ConnectionLost, match="nothing answers there any more"):
            while True:
                sessions["host-1"].ping()
        assert time.monotonic() - began < 40
        sessions["host-2"].ping()
        for _ in range(3):
            with balanced.connect() as session:
                assert host_of(session) == "host-2"
        sessions["host-2"].close()


def test_a_host_that_drains(tmp_path):
    """It keeps its sessions, also when their connections break, and gets no more."""
    with both(tmp_path, "--drain", "600") as (balanced, hosts), Proxy(balanced.port) as cut:
        sessions = {host_of(s): s for s in [balanced.connect(cut.url.replace("ws:", "wss:")) for _ in range(2)]}
        x = weft.device_put(np.ones(3, np.float32), sessions["host-1"].devices()[0])
        hosts[0].process.send_signal(signal.SIGTERM)
        assert becomes(lambda: balanced.down("host-1")) and balanced.up("host-2")
        before = hosts[1].page.json("/api/programs")[1]["programs"][0]["requests"]
        for k in range(5):
            with balanced.connect() as session:
                assert host_of(session) == "host-2"
            assert balanced.ask(k)[0] == 200
        assert hosts[1].page.json("/api/programs")[1]["programs"][0]["requests"] == before + 5
        cut.cut()
        assert float((x + 1).sum()) == 6 and sessions["host-1"].stats.connections > 1
        sessions["host-1"].close()
        assert hosts[0].process.wait(60) == 0, "its last session has ended"
        sessions["host-2"].close()


def test_no_host_is_left(tmp_path):
    """Clients are told why, by the host that is about to stop or by the proxy."""
    with both(tmp_path, "--drain", "600") as (balanced, hosts):
        kept = balanced.connect()
        for host in hosts:
            host.process.send_signal(signal.SIGTERM)
        with pytest.raises((ConnectionLost, LimitError), match="about to stop|HTTP 503"):
            while True:
                balanced.connect().close()
        kept.ping()
        kept.close()


def test_a_host_that_starts_again_has_its_sessions(tmp_path):
    """While nothing answers, the proxy says so (503), and the client goes on trying."""
    port = str(free_port())
    options = ("--jobs", str(tmp_path / "jobs"))
    with contextlib.ExitStack() as stack:
        first = one(tmp_path / "1", "host-1", "--port", port, *options)
        host = first.__enter__()
        other = stack.enter_context(one(tmp_path / "2", "host-2"))
        balanced = Balanced(tmp_path, {"host-1": host.port, "host-2": other.port})
        stack.enter_context(balanced.running())
        sessions = {host_of(s): s for s in [balanced.connect() for _ in range(2)]}
        session = sessions["host-1"]
        x = weft.device_put(np.ones(3, np.float32), session.devices()[0])
        session.ping()
        first.__exit__(None, None, None)
        assert becomes(lambda: balanced.down("host-1"))
        time.sleep(2)  # longer than clients wait for a host that was killed
        stack.enter_context(one(tmp_path / "1", "host-1", "--port", port, *options))
        assert float((x + 1).sum()) == 6 and session.stats.connections == 2
        for found in sessions.values():
            found.close()


def test_a_host_that_is_full_gets_no_new_clients_while_another_has_room(tmp_path):
    """Then they wait, and those who come back are handed to their hosts all the same."""
    with both(tmp_path, "--sessions", "1", "--queue", "1") as (balanced, hosts), Proxy(balanced.port) as cut:
        first = balanced.connect(cut.url.replace("ws:", "wss:"))
        other = next(host.name for host in hosts if host.name != host_of(first))
        assert becomes(lambda: balanced.down(host_of(first), ("sessions",)))
        assert balanced.up(host_of(first), ("queue", "programs")) and balanced.up(other)
        second = balanced.connect()
        assert host_of(second) == other
        assert becomes(lambda: balanced.down(other, ("sessions",)))
        told, found = [], []
        waiting = [
            threading.Thread(target=lambda: found.append(balanced.connect(on_progress=told.append))) for _ in range(2)
        ]
        for thread in waiting:
            thread.start()
            assert becomes(lambda: len(told) == len(waiting) - sum(not t.ident for t in waiting))
        assert becomes(lambda: all(balanced.down(name, ("queue",)) for name in NAMES)), "both queues are full"
        with pytest.raises(ConnectionLost, match="HTTP 503"):
            balanced.connect()
        x = weft.device_put(np.ones(3, np.float32), first.devices()[0])
        cut.cut()
        assert float((x + 1).sum()) == 6 and first.stats.connections > 1
        for session in (first, second):
            session.close()
        for thread in waiting:
            thread.join(20)
        assert {host_of(s) for s in found} == set(NAMES) and {(t.place, t.of) for t in told} == {(1, 1)}
        for session in found:
            session.close()


@contextlib.contextmanager
def unequal(tmp_path, few: tuple[str, ...]):
    """Two hosts, of which the first one has these options, and HAProxy, which holds both for ready."""
    with contextlib.ExitStack() as stack:
        hosts = [stack.enter_context(one(tmp_path / name, name, *options)) for name, options in zip(NAMES, (few, ()))]
        balanced = Balanced(tmp_path, {host.name: host.port for host in hosts})
        stack.enter_context(balanced.running())
        sessions = [stack.enter_context(balanced.connect()) for _ in NAMES]
        assert {host_of(s) for s in sessions} == set(NAMES)
        balanced.hold_checks("sessions")
        yield balanced, hosts[0]


@pytest.mark.parametrize("why", ["full", "draining"])
def test_a_host_that_the_proxy_has_not_asked_yet(tmp_path, why):
    """For up to a second it gets new sessions; it sends them elsewhere by a status that the proxy sees."""
    few = ("--sessions", "1", "--queue", "0") if why == "full" else ("--drain", "600")
    with unequal(tmp_path, few) as (balanced, host):
        if why == "draining":
            host.process.send_signal(signal.SIGTERM)
            assert becomes(lambda: host.page.json("/api/host")[1]["draining"])
        for _ in range(3):  # both have as many connections
            with balanced.connect() as session:
                assert host_of(session) == "host-2"
        assert [event["cause"] for event in events(host, "refused")][:1] == [why]


# what needs no proxy --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "trusted,remote,lines,client",
    [
        ((), "192.0.2.1", ["198.51.100.1"], "192.0.2.1"),
        (("192.0.2.1",), "192.0.2.1", [], "192.0.2.1"),
        (("192.0.2.1",), "192.0.2.1", ["198.51.100.1"], "198.51.100.1"),
        (("192.0.2.1",), "192.0.2.1", ["203.0.113.7, 198.51.100.1"], "198.51.100.1"),
        (("192.0.2.1",), "192.0.2.1", ["203.0.113.7", "198.51.100.1"], "198.51.100.1"),
        (("192.0.2.1", "198.51.100.0/24"), "192.0.2.1", ["203.0.113.7, 198.51.100.1"], "203.0.113.7"),
        (("192.0.2.0/24",), "192.0.2.1", ["192.0.2.9, 192.0.2.8"], "192.0.2.9"),
        (("192.0.2.1",), "192.0.2.1", ["unknown"], "192.0.2.1"),
        (("192.0.2.1",), "192.0.2.1", ["198.51.100.1, "], "192.0.2.1"),
        (("192.0.2.1",), "::ffff:192.0.2.1", ["::ffff:198.51.100.1"], "198.51.100.1"),
        (("2001:db8::/32",), "2001:db8::1", ["2001:db9::5"], "2001:db9::5"),
        (("192.0.2.1",), "", ["198.51.100.1"], ""),
    ],
)
def test_whose_word_on_an_address_counts(trusted, remote, lines, client):
    assert Proxies(trusted).client(remote, lines) == client


def test_ids_name_their_host():
    assert re.fullmatch("[0-9a-f]{16}", new_id(None)) and re.fullmatch("host-1_[0-9a-f]{16}", new_id("host-1"))
    assert ID.fullmatch(new_id(None)) and ID.fullmatch(new_id("host-1")) and not ID.fullmatch("a/b_" + "0" * 16)
