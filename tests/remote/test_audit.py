"""The log and the audit log of a host: what happened, in lines that programs read, and no tokens."""

import json
import logging
import os
import pathlib
import stat
import sys
import urllib.error
import urllib.request

import pytest
import weft.remote
from hosts import TOKEN, becomes
from operated import operated
from raw import Raw
from test_access import request, token
from test_settings import command
from weft_native.host.access import TokenFile
from weft_native.host.audit import Audit
from weft_native.host.grants import Denied
from weft_native.host.journal import REFUSALS, Journal
from weft_native.host.logs import JsonFormatter, TextFormatter, hiding, moment
from weft_remote.errors import AuthenticationError, ConnectionLost

SECRET = "weft_0123abcd_" + "x" * 43


def entries(path: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().split("\n") if line]


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """One that logs JSON, and keeps an audit log."""
    folder = tmp_path_factory.mktemp("audited")
    (folder / "models").mkdir()
    tokens = TokenFile(folder / "tokens.json")
    made = {"alice": tokens.add("alice"), "boss": tokens.add("boss", ("admin",))}
    options = ["--tokens", str(tokens.path), "--audit", str(folder / "audit.log"), "--log", "json"]
    options += ["--log-level", "info", "--serve", str(folder / "models"), "--grace", "30"]
    with operated(folder, *options) as (running, page):
        running.page, running.tokens, running.file, running.audit = page, made, tokens, folder / "audit.log"
        yield running


def last(host, event, **like):
    found = [e for e in entries(host.audit) if e["event"] == event and all(e.get(k) == v for k, v in like.items())]
    return found[-1] if found else None


def test_a_session_leaves_its_traces(host):
    with weft.remote.connect(host.url, token=host.tokens["alice"], name="traced") as session:
        session.ping()
    assert becomes(lambda: last(host, "session-ends", client="traced"))
    began, ended = last(host, "session-begins", client="traced"), last(host, "session-ends", client="traced")
    assert began["session"] == ended["session"] and began["token_name"] == ended["token_name"] == "alice"
    assert began["address"] == "127.0.0.1" and began["token"] == host.tokens["alice"].split("_")[1]
    assert ended["reason"] == "closed" and ended["seconds"] == round(ended["seconds"], 3) > 0
    assert began["time"] <= ended["time"]
    logged = [e for e in entries(host.log) if e.get("client") == "traced"]
    assert [e["event"] for e in logged if "event" in e] == ["session-begins", "session-ends"]
    assert {(e["session"], e["token"], e["level"]) for e in logged} == {(began["session"], "alice", "info")}


def test_a_session_that_is_taken_up_again(host):
    with Raw(host.url) as first:
        Raw(host.url, session=first.welcome).socket.close()
    assert becomes(lambda: last(host, "session-resumes", session=first.welcome.id))


def test_entries_of_workers_name_the_session(host):
    with Raw(host.url) as raw:
        raw.frame(b"\xff")
        raw.end()
        id = last(host, "session-begins")["session"]
    said = lambda: [e for e in entries(host.log) if e.get("session") == id and e["message"].startswith("session ")]
    assert becomes(lambda: any(e["level"] == "warning" and " ends: " in e["message"] for e in said()))
    ended = lambda: last(host, "session-ends", session=id)
    assert becomes(ended) and ended()["reason"].endswith("Error")


def test_refusals(host):
    with pytest.raises(AuthenticationError):
        weft.remote.connect(host.url, token="a guess", name="stranger")
    found = last(host, "refused", cause="token")
    assert found["address"] == "127.0.0.1" and "does not know" in found["message"]
    assert request(host, "x", "another guess")[0] == 401 and host.page.ask("/metrics", token="a third")[0] == 401
    assert len([e for e in entries(host.audit) if e.get("cause") == "token"]) >= 3
    assert any(e.get("event") == "refused" for e in entries(host.log))


def test_acts_of_administrators(host):
    with host.connect(name="ended by the boss") as session:
        session.ping()
        id = last(host, "session-begins", client="ended by the boss")["session"]
        assert host.page.ask(f"/api/sessions/{id}", "DELETE", host.tokens["boss"])[0] == 202
        with pytest.raises(ConnectionLost):
            while True:
                session.ping()
    found = last(host, "administrator", session=id)
    assert (found["token_name"], found["act"], found["client"]) == ("boss", "ends session", "ended by the boss")
    assert becomes(lambda: "operator has ended" in (last(host, "session-ends", session=id) or {}).get("message", ""))


def test_the_start_of_a_host(host):
    assert entries(host.audit)[0]["event"] == "host-starts"
    assert stat.S_IMODE(os.stat(host.audit).st_mode) == 0o600


def test_no_token_is_written_wherever_a_client_puts_it(host):
    """Neither one that is good, nor one that may be elsewhere."""
    alice = host.tokens["alice"]
    for given in (alice, TOKEN, SECRET):
        with host.connect(name=given):
            pass
        for wrong in (given + "x", given[:-1]):
            with pytest.raises(AuthenticationError):
                weft.remote.connect(host.url, token=wrong, name=given)
        Raw(host.url, origin=f"https://{given}.example").socket.close()
        Raw(host.url, offers=[f"weft.{given}"]).socket.close()
        request(host, given, given)
        http = host.url.replace("ws:", "http:")
        for path in (f"/session?name={given}", f"/session/{given}", f"/v1/programs/{given}"):
            sent = urllib.request.Request(http + path, headers={"Authorization": f"Bearer {given}", "Origin": given})
            try:
                urllib.request.urlopen(sent).close()
            except urllib.error.HTTPError as e:
                e.close()
        host.page.ask(f"/api/sessions/{given}", "DELETE", given)
    assert becomes(lambda: len([e for e in entries(host.audit) if e["event"] == "session-ends"]) >= 3)
    for text in (host.audit.read_text(), host.log.read_text()):
        assert "[token" in text
        for secret in (alice[14:30], alice[-20:], TOKEN, SECRET[14:30]):  # nor a part of one
            assert secret not in text, secret


def test_tokens_that_come_and_go(tmp_path):
    """The command names what it did in the audit log of the host, whose settings say where that is."""
    (tmp_path / "host.toml").write_text('tokens = "tokens.json"\naudit = "audit.log"')
    config = ("--config", str(tmp_path / "host.toml"))
    text = command("token", "new", "alice", "--scope", "admin", "--days", "1", *config).stdout.strip()
    assert text.startswith("weft_")
    assert "alice" in command("token", "list", WEFT_HOST_CONFIG=str(tmp_path / "host.toml")).stdout
    assert command("token", "revoke", "alice", *config).returncode == 0
    made, gone = entries(tmp_path / "audit.log")
    assert (made["event"], made["token_name"], made["scopes"]) == ("token-new", "alice", "admin") and "until" in made
    assert (gone["event"], gone["token"], gone["user"]) == ("token-revoked", made["token"], os.getuid())
    assert text not in (tmp_path / "audit.log").read_text()
    failed = command("token", "revoke", "nobody", *config)
    assert failed.returncode == 1 and len(entries(tmp_path / "audit.log")) == 2


def test_tokens_can_be_revoked_though_the_settings_are_wrong(tmp_path):
    (tmp_path / "host.toml").write_text("port = -1")
    file = tmp_path / "tokens.json"
    token("new", "alice", file=file)
    done = command("token", "revoke", "alice", "--file", str(file), WEFT_HOST_CONFIG=str(tmp_path / "host.toml"))
    assert done.returncode == 0 and "not in the audit log" in done.stderr and "port" in done.stderr
    done = command("token", "list", WEFT_HOST_CONFIG=str(tmp_path / "host.toml"))
    assert done.returncode == 2 and "port" in done.stderr
    assert "--file is missing" in command("token", "list").stderr


# by themselves --------------------------------------------------------------------------------------------------------


def record(message, *args, **extra):
    try:
        raise ValueError("a\nb")
    except ValueError:
        made = logging.LogRecord("weft.host", logging.WARNING, "file", 1, message, args, sys.exc_info())
    vars(made).update(extra)
    return made


def test_an_entry_is_one_line_of_json():
    entry = record("a %s\n%s", "b", '"\x1b', session="s", client="c\n", other="x")
    text = JsonFormatter(hiding([])).format(entry)
    assert "\n" not in text and text.isascii()
    found = json.loads(text)
    assert found["message"] == 'a b\n"\x1b' and found["error"].endswith("ValueError: a\nb")
    assert (found["level"], found["session"], found["client"]) == ("warning", "s", "c\n") and "other" not in found


@pytest.mark.parametrize("formatter", [JsonFormatter, TextFormatter])
def test_tokens_are_taken_out(formatter):
    text = formatter(hiding(["sesame", "short"])).format(record(f"{SECRET} sesame short", client="my-sesame"))
    assert SECRET not in text and "sesame" not in text and "[token 0123abcd]" in text and "short" in text


def test_a_log_that_was_renamed_begins_anew(tmp_path):
    audit = Audit(tmp_path / "audit.log", str)
    audit.write("one", empty="", none=None, zero=0)
    os.rename(tmp_path / "audit.log", tmp_path / "audit.log.1")
    audit.write("two")
    assert [e["event"] for e in entries(tmp_path / "audit.log")] == ["two"]
    (one,) = entries(tmp_path / "audit.log.1")
    assert set(one) == {"time", "event", "zero"}


def test_a_log_that_can_not_be_written_is_told(tmp_path, caplog):
    Audit(tmp_path / "none" / "audit.log", str).write("one", session="s")
    assert "can't be written: No such file" in caplog.text and '"session": "s"' in caplog.text


def test_strangers_can_not_fill_the_log(tmp_path, caplog):
    journal = Journal(audit=Audit(tmp_path / "audit.log", str))
    for _ in range(3 * REFUSALS):
        journal.refused("there", "token", Denied("token", "no"))
    found = entries(tmp_path / "audit.log")
    assert len(found) <= 2 * (REFUSALS + 1)  # a minute may end meanwhile
    assert [e["cause"] for e in found].count("many") >= 1 and len(caplog.records) <= 2 * (REFUSALS + 1)
    assert b'weft_host_refusals_total{cause="token"} 1800.0' in journal.metrics.text()


def test_moments():
    assert moment(0) == "1970-01-01T00:00:00.000Z" and moment(1e9 + 0.25) == "2001-09-09T01:46:40.250Z"
