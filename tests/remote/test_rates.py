"""How often a token may be used: connections in a minute, requests in a second."""

import json
import time
import urllib.error
import urllib.request

import pytest
import weft.remote
from hosts import TOKEN, becomes
from operated import operated
from proxy import Proxy
from raw import Raw
from test_access import token
from test_audit import entries
from weft_native.host.access import TokenFile
from weft_native.host.grants import INNER, Grant
from weft_native.host.rates import Rates
from weft_remote import protocol as p
from weft_remote.errors import LimitError


def test_a_token_has_its_own_count_and_limits():
    rates = Rates(connections=2)
    one, other, few, many = Grant("1", "a"), Grant("2", "b"), Grant("3", "c", connections=1), Grant("4", "d")
    assert [rates.connect(one) > 0 for _ in range(4)] == [False, False, True, True]
    assert [rates.connect(other) > 0 for _ in range(3)] == [False, False, True]
    assert [rates.connect(few) > 0 for _ in range(3)] == [False, True, True]
    assert 55 <= rates.connect(one) <= 60
    assert not any(rates.request(many) or rates.connect(INNER) for _ in range(9)), "there is no limit"


def test_requests_go_on_after_a_second():
    rates, grant = Rates(requests=100), Grant("1", "a", rate=3)
    assert [rates.request(grant) for _ in range(4)] == [0, 0, 0, 1]
    time.sleep(1.05)
    assert rates.request(grant) == 0


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rates")
    (folder / "models").mkdir()
    tokens = TokenFile(folder / "tokens.json")
    made = {
        "app": tokens.add("app", ("programs",), rate=2),
        "few": tokens.add("few", connections=2),
        "lost": tokens.add("lost", connections=2),
        "usual": tokens.add("usual"),
    }
    options = ["--tokens", str(tokens.path), "--audit", str(folder / "audit.log"), "--serve", str(folder / "models")]
    with operated(folder, *options, "--token-connections", "3") as (running, page):
        running.page, running.tokens, running.audit = page, made, folder / "audit.log"
        yield running


def refusals(host, name):
    return [e for e in entries(host.audit) if e.get("cause") == "rate" and e["reason"].endswith(f" {name}")]


def ask(host, given):
    headers = {"Authorization": f"Bearer {given}", "Origin": "http://localhost:1"}
    address = host.url.replace("ws:", "http:") + "/v1/programs"
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as response:
            return response.status, response.headers, json.load(response)
    except urllib.error.HTTPError as e:
        return e.code, e.headers, json.load(e)


def test_too_many_requests(host):
    answers = [ask(host, host.tokens["app"]) for _ in range(6)]
    late = [a for a in answers if a[0] == 429]
    assert late and answers[0][0] == answers[1][0] == 200
    _, headers, body = late[0]
    assert headers["Retry-After"] == "1" and headers["Access-Control-Expose-Headers"] == "Retry-After"
    assert body["error"].endswith("Try again in 1 s.")
    assert len(refusals(host, "app")) == len(late)
    assert host.page.metrics()['weft_host_refusals_total{cause="rate"}'] >= len(late)
    assert all(ask(host, TOKEN)[0] == 200 for _ in range(6)), "other tokens have counts of their own"
    time.sleep(1.05)
    assert ask(host, host.tokens["app"])[0] == 200


def test_too_many_new_sessions(host):
    for name, most in (("few", 2), ("usual", 3)):
        for _ in range(most):
            weft.remote.connect(host.url, token=host.tokens[name]).close()
        with pytest.raises(LimitError, match=r"as many connections in a minute as it may. Try again in \d+ s"):
            weft.remote.connect(host.url, token=host.tokens[name])
        assert len(refusals(host, name)) == 1


def test_a_session_outlives_that_it_is_taken_up_too_often(host):
    """The connection is closed as a lost one is, without a word that would end the session at its client."""
    with Raw(host.url) as first:
        for _ in range(2):
            assert isinstance(Raw(host.url, session=first.welcome).welcome, p.Welcome)
        late = Raw(host.url, session=first.welcome)
        assert late.welcome is None and late.socket.close_code == 1013
        assert "Try again in" in late.socket.close_reason
        ids = [s["id"] for s in host.page.json("/api/sessions")[1]["sessions"]]
        assert first.welcome.id in ids
        host.page.ask(f"/api/sessions/{first.welcome.id}", "DELETE")


def test_a_client_goes_on_trying(host):
    with Proxy(host.port) as proxy, weft.remote.connect(proxy.url, token=host.tokens["lost"]) as session:
        proxy.cut()
        assert becomes(lambda: session.stats.connections == 2)
        proxy.cut()
        assert becomes(lambda: len(refusals(host, "lost")) >= 3), "it tries again and again"
        assert session.failure is None
        host.page.ask(f"/api/sessions/{session.granted.id}", "DELETE")
        session.transport.close(at_once=True)


def test_the_command_makes_tokens_with_rates(tmp_path):
    file = tmp_path / "tokens.json"
    text = token("new", "app", "--rate", "20", "--connections", "10", file=file).stdout.strip()
    grant = TokenFile(file).find(text.encode())
    assert (grant.rate, grant.connections) == (20, 10)
    assert "20 requests/s, 10 connections/min  app" in token("list", file=file).stdout
    assert "1 to 1000000 requests" in token("new", "x", "--rate", "0", file=file).stderr
    old = json.loads(file.read_text())
    for entry in old["tokens"]:
        del entry["rate"], entry["connections"]  # as an earlier release wrote it
    file.write_text(json.dumps(old))
    assert TokenFile(file).find(text.encode()).rate is None
