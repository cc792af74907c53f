"""What an operator sees of a host, and does to it."""

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import re
import signal
import urllib.error
import urllib.request

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from hosts import TOKEN, becomes, host_here
from operated import Page, operated
from prometheus_client.parser import text_string_to_metric_families
from raw import Raw
from test_access import request
from weft import export
from weft.errors import BackendError
from weft_native.host import counts
from weft_native.host.access import Gate, TokenFile
from weft_native.host.admin import Admin
from weft_native.host.check import contradictions
from weft_native.host.control import Answered, Ask, Totals, Up
from weft_native.host.drain import Drain
from weft_native.host.front import Front
from weft_native.host.health import Health
from weft_native.host.limits import Limits
from weft_native.host.metrics import Metrics
from weft_native.host.settings import Settings, place
from weft_native.host.totals import totals
from weft_native.host.workers import ThreadLauncher
from weft_remote.errors import AuthenticationError, ConnectionLost, LimitError


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """A host with all that it may have, and the page of its administrators."""
    folder = tmp_path_factory.mktemp("operated")
    models = folder / "models"
    models.mkdir()
    (models / "twice.weft").write_bytes(
        export.export(weft.jit(lambda x: 2 * x))(weft.ShapeDtypeStruct((), np.float32)).serialize()
    )
    tokens = TokenFile(folder / "tokens.json")
    made = {
        "admin": tokens.add("boss", ("admin",)),
        "metrics": tokens.add("prometheus", ("metrics",)),
        "sessions": tokens.add("alice", ("sessions",)),
        "one": tokens.add("bob", ("sessions",), sessions=1),
    }
    options = ["--platform", "cpu", "--serve", str(models), "--tokens", str(tokens.path), "--sessions", "4"]
    with operated(folder, *options, "--log-level", "info") as (running, page):
        running.page, running.tokens = page, made
        yield running


def test_metrics_count_what_sessions_do(host):
    before = host.page.metrics()
    with host.connect(name="counted") as session:
        device = session.devices()[0]
        x = weft.device_put(np.ones(1000, np.float32), device)
        f = weft.jit(lambda x: jnp.sin(x) + 1, device=device)
        for _ in range(5):
            x = f(x)
        np.asarray(x)
        assert becomes(lambda: host.page.metrics()["weft_host_memory_bytes"] >= 4000)
        now = host.page.metrics()
        assert now["weft_host_sessions"] == before["weft_host_sessions"] + 1
        assert now["weft_host_sessions_allowed"] == 4 and now["weft_host_memory_granted_bytes"] > 0
        assert now["weft_host_workers"] >= 1
    closed = 'weft_host_sessions_ended_total{reason="closed"}'
    assert becomes(lambda: host.page.metrics().get(closed, 0) > before.get(closed, 0))
    now = host.page.metrics()
    gained = lambda name: now[f"weft_host_{name}_total"] - before[f"weft_host_{name}_total"]
    assert gained("calls") >= 5 and gained("compilations") >= 1 and gained("compilation_seconds") > 0
    assert gained("received_bytes") > 4000 and gained("sent_bytes") > 4000 and gained("sessions_begun") == 1
    assert now["weft_host_sessions"] == before["weft_host_sessions"]
    assert now["weft_host_workers_started_total"] >= 2


def test_metrics_tell_why_sessions_end(host):
    with Raw(host.url) as raw:
        raw.frame(b"\xff")
        reason = raw.end().error
    assert reason.endswith("Error")
    assert becomes(lambda: f'weft_host_sessions_ended_total{{reason="{reason}"}}' in host.page.metrics())


def test_metrics_count_workers_that_die(host):
    count = lambda: host.page.metrics().get('weft_host_workers_died_total{how="crashed"}', 0)
    before = count()
    with host.connect(name="to be killed") as session:
        session.ping()
        process = re.findall(r"'to be killed' begins in process (\d+)", host.log.read_text())[-1]
        os.kill(int(process), signal.SIGKILL)
        with pytest.raises(BackendError):
            for _ in range(100):
                session.ping()
    assert becomes(lambda: count() == before + 1)


REFUSED = {
    "token": lambda host: weft.remote.connect(host.url, token="guess"),
    "scope": lambda host: weft.remote.connect(host.url, token=host.tokens["metrics"]),
    "origin": lambda host: Raw(host.url, origin="https://elsewhere.example").end() and fail(),
    "protocol": lambda host: Raw(host.url, offers=["weft.1"]).end() and fail(),
    "full": lambda host: [host.connect(token=host.tokens["one"]) for _ in range(2)],
}


def fail():
    raise AuthenticationError("refused")


@pytest.mark.parametrize("cause", REFUSED)
def test_metrics_count_refusals_by_cause(host, cause):
    count = lambda: host.page.metrics().get(f'weft_host_refusals_total{{cause="{cause}"}}', 0)
    before = count()
    with pytest.raises((AuthenticationError, LimitError)):
        REFUSED[cause](host)
    assert count() == before + 1


def test_metrics_count_requests(host):
    assert request(host, "twice", TOKEN) == (200, {"result": 2.0})
    assert request(host, "nothing", TOKEN)[0] == 404 and request(host, "twice", "guess")[0] == 401
    found = host.page.metrics()
    labels = 'program="twice",version="1"'
    assert found['weft_host_requests_total{program="twice",status="200",version="1"}'] >= 1
    assert found['weft_host_requests_total{program="twice",status="401",version="1"}'] >= 1
    assert found['weft_host_requests_total{program="",status="404",version="0"}'] >= 1
    assert not any("nothing" in name for name in found), "names that clients make up are no labels"
    assert found[f"weft_host_request_seconds_count{{{labels}}}"] >= 2
    assert found[f'weft_host_batch_size_bucket{{le="1.0",{labels}}}'] >= 1


def test_metrics_have_the_form_that_prometheus_reads(host):
    _, headers, text = host.page.ask("/metrics")
    assert headers["Content-Type"].startswith("text/plain; version=")
    families = {f.name: f for f in text_string_to_metric_families(text)}
    assert families["weft_host_calls"].type == "counter" and families["weft_host_batch_size"].type == "histogram"
    assert all(f.documentation for f in families.values()) and not any("_created" in name for name in families)


def test_words_of_workers_are_no_labels():
    metrics = Metrics()
    for reason in ("LimitError", "closed", "x" * 100, "y"):
        metrics.end(reason)
    text = metrics.text().decode()
    assert 'reason="LimitError"} 1.0' in text and 'reason="other"} 2.0' in text and "xxx" not in text


def test_totals_that_can_not_be():
    before = Totals("s", calls=5, received=100)
    counts.check(before, Totals("s", calls=7, received=100))
    for wrong in (Totals("s", calls=4, received=100), Totals("s", calls=5), Totals("s", calls=5, received=1 << 60)):
        with pytest.raises(BackendError, match="a session's (calls|received) went from"):
            counts.check(before, wrong)


def test_a_worker_in_a_thread_reports_too():
    """What it says of sessions that it has not is left out."""
    with host_here() as worker:
        with weft.remote.connect(worker.url, token=TOKEN) as session:
            (id,) = worker.sessions
            worker.send(Totals("another's", calls=10))
            x = weft.device_put(np.ones(3, np.float32), session.devices()[0])
            assert float((x + 1).sum()) == 6
            assert totals(worker.sessions[id]).calls >= 2
            assert totals(worker.sessions[id]).held >= 12


# who may come to the administrators' listener -------------------------------------------------------------------------


def test_a_token_decides(host):
    status = lambda token: host.page.ask("/metrics", token=token)[0]
    assert status(host.tokens["admin"]) == status(host.tokens["metrics"]) == status(TOKEN) == 200
    assert status(host.tokens["sessions"]) == 403
    for wrong in ("guess", " ", host.tokens["admin"][:-1]):
        code, headers, body = host.page.ask("/metrics", token=wrong)
        assert code == 401 and headers["WWW-Authenticate"] == "Bearer" and "Bearer TOKEN" in body
    code, _, _ = host.page.ask("/metrics", Authorization=f"Basic {TOKEN}")
    assert code == 401


STRANGE = {
    "a page of another origin": {"Origin": "https://elsewhere.example"},
    "a page of another port": {"Origin": "http://127.0.0.1:1"},
    "a page without an origin": {"Origin": "null"},
    "a broken origin": {"Origin": "http://[::1"},
    "what a browser calls foreign": {"Sec_Fetch_Site": "cross-site"},
    "a name that leads here": {"Host": "elsewhere.example"},
}


@pytest.mark.parametrize("case", STRANGE)
def test_pages_of_others_are_refused(host, case):
    status, headers, body = host.page.ask("/metrics", **STRANGE[case])
    assert status == 403 and "another origin" in body and "Access-Control-Allow-Origin" not in headers


def test_the_own_page_may_ask(host):
    status, headers, _ = host.page.ask("/metrics", Origin=host.page.url, Sec_Fetch_Site="same-origin")
    assert status == 200 and headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
    assert host.page.ask("/nothing")[0] == 404


def test_clients_do_not_find_it(host):
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(f"http://127.0.0.1:{host.port}/metrics")
        raise AssertionError("metrics are at the clients' port")


def test_the_address_of_the_listener():
    assert place("9100") == place(":9100") == place("127.0.0.1:9100") == ("127.0.0.1", 9100)
    assert place("[::1]:9100") == ("::1", 9100) and place("0.0.0.0:1") == ("0.0.0.0", 1)
    for wrong in ("", "x", "127.0.0.1", "127.0.0.1:", "1:2:3", "[::1]", "127.0.0.1:65536", "http://x:1", "a b:1"):
        assert "--admin: ADDRESS:PORT, such as" in contradictions(Settings(admin=wrong))[0]
    assert contradictions(Settings(admin="9100")) == []
    remote = contradictions(Settings(admin="0.0.0.0:9100"))
    assert "--allow-remote" in remote[0] and "--scope admin" in remote[1]
    assert "--scope admin" in contradictions(Settings(admin="0.0.0.0:9100", allow_remote=True, token="x"))[0]


def test_a_listener_for_others_takes_no_token_of_the_command_line():
    async def go():
        gate = Gate(TOKEN)
        front = Front(gate, ThreadLauncher([], Limits()))
        admin = Admin(front, gate, Health(front), Drain(front, None, 0))
        url = await admin.start("0.0.0.0", 0)
        page = Page(url.replace("0.0.0.0", "127.0.0.1"))
        found = await asyncio.to_thread(page.ask, "/metrics")
        await admin.stop()
        return found

    status, _, body = asyncio.run(go())
    assert status == 403 and "has not the scope 'metrics'" in body


# health ---------------------------------------------------------------------------------------------------------------


def asked(url, path):
    try:
        with urllib.request.urlopen(url + path, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def test_health_needs_no_login(host):
    """At the clients' port and at that of administrators, and tells nothing but that."""
    for url in (host.url.replace("ws:", "http:"), host.page.url):
        assert asked(url, "/healthz") == (200, {"status": "ok"})
        assert asked(url, "/readyz") == (200, {"ready": True})


class Hand:
    """Workers that a test moves by hand."""

    def __init__(self):
        self.ends, self.asked = [], []

    async def start(self, exited, forked, broken):
        self.exited, self.broken = exited, broken
        return "cpu"

    def launch(self, number, alone, end):
        self.ends.append((number, end))
        end.send(Up(("cpu", "")))

    def hear(self, answer):
        """Waits for a question, in a thread; answers it or not."""
        _, end = self.ends[0]
        (message,) = end.receive()
        assert isinstance(message, Ask)
        if answer:
            end.send(Answered())

    def stop(self):
        for _, end in self.ends:
            end.close()


def by_hand(work, seconds=10.0):
    async def go():
        hand = Hand()
        front = Front(Gate(TOKEN), hand)
        await front.start("127.0.0.1", 0)
        try:
            await work(hand, front, Health(front, seconds))
        finally:
            await front.stop()

    asyncio.run(go())


def test_a_host_is_ready_when_its_device_answers():
    async def work(hand, front, health):
        looks = [asyncio.ensure_future(health.why_not()) for _ in range(5)]
        await asyncio.to_thread(hand.hear, True)
        assert await asyncio.gather(*looks) == [None] * 5, "one look is enough for all who ask"
        assert await health.why_not() is None, "and holds for a moment"

    by_hand(work)


def test_a_host_is_not_ready_when_its_device_does_not_answer():
    async def work(hand, front, health):
        assert await health.why_not() == "the device does not answer."
        health.looked_at -= 60
        assert await health.why_not() == "the device does not answer."
        await asyncio.to_thread(hand.hear, True)  # the first question; no other one was asked meanwhile
        peer = front.pool.spares[0]
        while not peer.answer.done():
            await asyncio.sleep(0.001)
        health.seconds, health.looked_at = 10, health.looked_at - 60
        looking = asyncio.ensure_future(health.why_not())
        await asyncio.to_thread(hand.hear, True)
        assert await looking is None

    by_hand(work, seconds=0.1)


def test_a_host_is_not_ready_when_the_worker_that_was_asked_ends():
    async def work(hand, front, health):
        looking = asyncio.ensure_future(health.why_not())
        await asyncio.to_thread(hand.hear, False)
        hand.exited(hand.ends[0][0], 1, 0, "", 0.0)
        assert await looking == "the device does not answer."

    by_hand(work)


def test_all_the_processor_time_of_a_session_is_counted():
    """From when its process is given to it until that has ended, between two looks of the front too."""

    async def work(hand, front, _):
        (number, _), *_ = hand.ends
        peer = await front.pool.take("s", 10)
        assert peer.number == number and peer.processor == 0
        front.pool.left(peer, "s")  # it has ended before the front has looked
        hand.exited(number, 0, 0, "", 0.2)
        counted = "weft_host_processor_seconds_total 0.2"
        assert counted in front.journal.metrics.text().decode()
        hand.exited((await front.pool.waiting()).number, 0, 0, "", 5.0)
        assert counted in front.journal.metrics.text().decode(), "that one had no session"

    by_hand(work)


def test_a_host_is_not_ready_when_no_worker_can_be_started():
    async def work(hand, front, health):
        front.pool.spares.clear()
        assert await health.why_not() == "no process for a session is ready."
        hand.broken()
        assert await health.why_not() == "no process for a session can be started."

    by_hand(work, seconds=0.1)


def test_a_host_that_is_about_to_stop_is_not_ready():
    async def work(hand, front, health):
        front.draining = True
        assert await health.why_not() == "the host is about to stop."

    by_hand(work)


# administrators -------------------------------------------------------------------------------------------------------


def sessions(host, **with_token):
    status, found = host.page.json("/api/sessions", **with_token)
    assert status == 200, found
    return {s["name"]: s for s in found["sessions"]}


def test_an_administrator_sees_sessions(host):
    with weft.remote.connect(host.url, token=host.tokens["sessions"], name="seen") as session:
        x = weft.device_put(np.ones(1000, np.float32), session.devices()[0])
        float((x * 2).sum())
        assert becomes(lambda: sessions(host)["seen"]["calls"] >= 2)
        found = sessions(host, token=host.tokens["admin"])["seen"]
        assert (found["token"], found["address"]) == ("alice", "127.0.0.1")
        assert found["memory"] >= 4000 and found["seconds"] >= 0 and not found["ending"]
        assert becomes(lambda: sessions(host)["seen"]["queued"] == 0)  # what is freed comes a moment later
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["began"]) and found["process"] > 0
    assert becomes(lambda: "seen" not in sessions(host))


def test_an_administrator_sees_what_a_session_does_now(host):
    with host.connect(name="busy") as session:
        forever = weft.jit(
            lambda x: weft.lax.while_loop(lambda v: v > 0, lambda v: jnp.sin(v) ** 2 + 1, x),
            device=session.devices()[0],
        )
        result = forever(weft.device_put(np.float32(1), session.devices()[0]))
        assert becomes(lambda: sessions(host)["busy"]["doing"].startswith("runs "))
        del result


def test_an_administrator_ends_a_session(host):
    before = host.page.metrics().get('weft_host_sessions_ended_total{reason="ConnectionLost"}', 0)
    with host.connect(name="to be ended") as session:
        session.ping()
        id = sessions(host)["to be ended"]["id"]
        assert host.page.json(f"/api/sessions/{id}", "DELETE") == (202, {"ending": id})
        with pytest.raises(ConnectionLost, match="the host's operator has ended the session"):
            while True:
                session.ping()
    assert becomes(lambda: "to be ended" not in sessions(host))
    assert host.page.metrics()['weft_host_sessions_ended_total{reason="ConnectionLost"}'] == before + 1
    assert host.page.json(f"/api/sessions/{id}", "DELETE")[0] == 404
    assert host.page.json("/api/sessions/..%2F..", "DELETE")[0] == 404
    assert re.search(r"administrator here from 127.0.0.1 ends session \d+ 'to be ended'", host.log.read_text())


def test_a_session_that_does_not_end_is_killed(host):
    """Its worker does not listen."""
    with host.connect(name="deaf") as session:
        session.ping()
        found = sessions(host)["deaf"]
        os.kill(found["process"], signal.SIGSTOP)
        assert host.page.json(f"/api/sessions/{found['id']}", "DELETE")[0] == 202
        assert sessions(host)["deaf"]["ending"]
        assert becomes(lambda: "deaf" not in sessions(host))
        with pytest.raises(ConnectionLost, match="the host's operator has ended the session"):
            while True:
                session.ping()


def test_an_administrator_sees_programs_and_the_host(host):
    request(host, "twice", TOKEN)
    (found,) = host.page.json("/api/programs")[1]["programs"]
    assert (found["name"], found["version"]) == ("twice", 1) and found["requests"] >= found["calls"] >= 1
    status, found = host.page.json("/api/host")
    assert status == 200 and (found["platform"], found["sessions_allowed"]) == ("cpu", 4) and found["devices"] >= 1
    assert found["draining"] is False and found["seconds"] > 0


@pytest.mark.parametrize("path", ["/api/host", "/api/sessions", "/api/programs"])
def test_only_administrators_see_and_act(host, path):
    for token, status in ((host.tokens["metrics"], 403), (host.tokens["sessions"], 403), ("guess", 401)):
        assert host.page.json(path, token=token)[0] == status
        assert host.page.json("/api/sessions/x", "DELETE", token=token)[0] == status
    assert host.page.ask("/api/sessions/x", "DELETE", Origin="https://elsewhere.example")[0] == 403


def test_the_page_runs_nothing_but_its_own(host):
    status, headers, text = host.page.ask("/", token=" ")
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert status == 200 and headers["Content-Type"].startswith("text/html")
    assert policy["default-src"] == policy["form-action"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    for kind, tag in (("script-src", "script"), ("style-src", "style")):
        (inside,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.S)
        assert policy[kind] == f"'sha256-{base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'"
    assert not re.search(r"\son\w+=|style=|src=|https?://|innerHTML", text), "nothing that the policy would refuse"


def test_an_administrator_sees_and_ends_a_session_that_rests(tmp_path):
    options = ["--platform", "cpu", "--jobs", str(tmp_path / "jobs"), "--unattended", "0.1", "--grace", "0.1"]
    with operated(tmp_path, *options) as (host, page):
        session = host.connect(name="kept")
        weft.remote.keep([weft.device_put(np.float32(1), session.devices()[0])], seconds=100)
        session.leave()
        listed = lambda: {s["name"]: s for s in page.json("/api/sessions")[1]["sessions"]}
        assert becomes(lambda: listed()["kept"]["doing"] == "rests on disk")
        found = listed()["kept"]
        assert found["process"] is None and page.metrics()["weft_host_sessions"] == 0
        assert page.json(f"/api/sessions/{found['id']}", "DELETE")[0] == 202
        assert becomes(lambda: not listed() and not list((tmp_path / "jobs").iterdir()))
