"""How a host stops: nobody's work is lost, and those who have to leave are told why."""

import asyncio
import contextlib
import http.client
import json
import signal
import socket

import aiohttp
import numpy as np
import pytest
import weft
import weft.remote
from hosts import TOKEN, becomes
from operated import operated
from test_operations import asked
from weft import export
from weft_remote.errors import ConnectionLost, LimitError


@contextlib.contextmanager
def host(tmp_path, *options: str):
    with operated(tmp_path, *options) as (running, page):
        running.page, running.may_end = page, True
        yield running


def told(running) -> None:
    """The host knows that it is to stop."""
    assert becomes(lambda: running.page.json("/api/host")[1]["draining"])


def test_no_new_sessions_begin_and_the_others_end_by_themselves(tmp_path):
    with host(tmp_path, "--drain", "600", "--log-level", "info") as running:
        session = running.connect(name="old")
        x = weft.device_put(np.ones(3, np.float32), session.devices()[0])
        running.process.send_signal(signal.SIGTERM)
        told(running)
        with pytest.raises(LimitError, match=r"about to stop, .* Try again in \d+ s, or connect to another host"):
            running.connect(name="new")
        status, found = asked(running.url.replace("ws:", "http:"), "/readyz")
        assert (status, found) == (503, {"ready": False, "why": "the host is about to stop."})
        assert asked(running.page.url, "/healthz")[0] == 200
        metrics = running.page.metrics()
        assert metrics["weft_host_draining"] == 1 and metrics['weft_host_refusals_total{cause="draining"}'] == 1
        assert float((x + 1).sum()) == 6, "the old one goes on"
        session.close()
        assert running.process.wait(60) == 0
        assert "the host is about to stop: 1 sessions, for 600 s" in running.log.read_text()


def test_those_that_are_left_are_told_why(tmp_path):
    with host(tmp_path, "--drain", "0.2") as running:
        session = running.connect()
        session.ping()
        running.process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionLost, match="the host is shutting down"):
            while True:
                session.ping()
        assert running.process.wait(60) == 0


@pytest.mark.parametrize("signals", [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT,)], ids=["second", "interrupt"])
def test_a_host_stops_at_once(tmp_path, signals):
    """At a second signal, or when somebody at the terminal wants it to."""
    with host(tmp_path, "--drain", "600") as running:
        session = running.connect()
        session.ping()
        for k, number in enumerate(signals):
            running.process.send_signal(number)
            if k + 1 < len(signals):
                told(running)
        assert running.process.wait(60) == 0
        with pytest.raises(ConnectionLost):
            session.ping()


def test_an_administrator_stops_the_host(tmp_path):
    with host(tmp_path, "--drain", "600", "--audit", str(tmp_path / "audit.log")) as running:
        with running.connect() as session:
            assert running.page.json("/api/drain", "POST", token="a guess")[0] == 401
            assert running.page.json("/api/drain")[0] == 405
            session.ping()
            assert running.page.json("/api/drain", "POST") == (202, {"draining": True, "seconds": 600})
            told(running)
            session.ping()
        assert running.process.wait(60) == 0
    events = [json.loads(line) for line in (tmp_path / "audit.log").read_text().split("\n") if line]
    assert [e["event"] for e in events][-1] == "host-stops" and any(e.get("act") == "stops the host" for e in events)


# requests for programs ------------------------------------------------------------------------------------------------


@pytest.fixture
def models(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    made = export.export(weft.jit(lambda x: 2 * x))(weft.ShapeDtypeStruct((), np.float32))
    (folder / "twice.weft").write_bytes(made.serialize())
    return folder


CLIENTS, EACH, BEFORE = 8, 25, 40  # requests before the host is told to stop


def test_no_request_is_lost(tmp_path, models):
    """Clients that hold their connections open, and ask while the host stops: each request is answered."""
    answered = []

    async def client(url, stop):
        async with aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {TOKEN}"}) as session:
            for k in range(EACH):
                async with session.post("/v1/programs/twice", json={"args": [k]}) as response:
                    assert response.status == 200, await response.text()
                    answered.append((await response.json())["result"] == 2 * k)
                    closed.append(response.headers.get("Connection") == "close")
                if len(answered) == BEFORE:
                    stop()

    closed = []
    with host(tmp_path, "--platform", "cpu", "--serve", str(models), "--drain", "600") as running:
        url = running.url.replace("ws:", "http:")
        stop = lambda: running.process.send_signal(signal.SIGTERM)

        async def go():
            await asyncio.gather(*[client(url, stop) for _ in range(CLIENTS)])

        asyncio.run(go())
        assert running.process.wait(60) == 0
    assert len(answered) == CLIENTS * EACH and all(answered)
    assert closed[-1] and not closed[0], "so that clients go elsewhere"


def test_a_request_that_has_come_is_answered_though_the_host_waits_for_nobody(tmp_path, models):
    """It is still on its way when the host closes its doors, and needs a session that there is not yet."""
    body = json.dumps({"args": [21]}).encode()
    with host(tmp_path, "--platform", "cpu", "--serve", str(models)) as running:
        client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
        client.putrequest("POST", "/v1/programs/twice")
        for name, value in (("Authorization", f"Bearer {TOKEN}"), ("Content-Type", "application/json")):
            client.putheader(name, value)
        client.putheader("Content-Length", str(len(body)))
        client.putheader("Expect", "100-continue")
        client.endheaders()
        assert client.sock.recv(100).startswith(b"HTTP/1.1 100"), "the request has begun"
        running.process.send_signal(signal.SIGTERM)

        def closed():
            with contextlib.closing(socket.socket()) as tried:
                return tried.connect_ex(("127.0.0.1", running.port)) != 0

        assert becomes(closed) and running.process.poll() is None
        client.send(body)
        response = client.getresponse()
        assert response.status == 200 and json.loads(response.read()) == {"result": 42.0}
        client.close()
        assert running.process.wait(60) == 0


def test_a_request_that_never_comes_holds_nobody_up_at_a_second_signal(tmp_path, models):
    with host(tmp_path, "--platform", "reference", "--serve", str(models)) as running:
        with contextlib.closing(socket.create_connection(("127.0.0.1", running.port))) as client:
            lines = f"POST /v1/programs/twice HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
            client.sendall(f"{lines}Content-Length: 9\r\nExpect: 100-continue\r\n\r\n".encode())
            assert client.recv(100).startswith(b"HTTP/1.1 100")
            running.process.send_signal(signal.SIGTERM)
            told(running)
            running.process.send_signal(signal.SIGTERM)
            assert running.process.wait(60) == 0
