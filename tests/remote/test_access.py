"""Who may use a host: several tokens, what each is for, and guesses."""

import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
import weft
import weft.remote
from hosts import TOKEN, becomes, run_host
from platforms import need
from weft import export
from weft_native.host import access
from weft_native.host.access import AccessError, Gate, TokenFile
from weft_remote.errors import AuthenticationError, LimitError


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(access, "LOOK_SECONDS", 0)
    return TokenFile(tmp_path / "tokens.json")


def test_a_token_is_kept_as_a_hash(file):
    text = file.add("alice")
    assert text not in file.path.read_text() and text.split("_", 2)[2] not in file.path.read_text()
    assert stat.S_IMODE(os.stat(file.path).st_mode) == 0o600
    grant = file.find(text.encode())
    assert (grant.name, grant.scopes, grant.expires) == ("alice", ("sessions", "programs"), None)
    for wrong in (text[:-1], text + "a", text.swapcase(), text.replace("_", "-"), "", "weft__"):
        assert file.find(wrong.encode()) is None
    assert file.find(b"\xff" * 57) is None
    other = file.add("bob")
    mixed = text[:14] + other[14:]  # one's id, another's secret
    assert file.find(mixed.encode()) is None and file.find(other.encode()).name == "bob"


def test_changes_of_its_own_are_seen_at_once(tmp_path):
    """Not with the next look, as those of others are."""
    file = TokenFile(tmp_path / "tokens")
    for name in "ab":
        assert file.find(file.add(name).encode()).name == name
    file.revoke("a")
    assert [grant.name for grant in file.grants().values()] == ["b"]


def test_tokens_end(file):
    short, other = file.add("short", days=1e-6), file.add("other")
    gate = Gate(None, file.path)
    time.sleep(0.1)
    with pytest.raises(AuthenticationError, match="has expired"):
        gate.admit(short.encode(), "here")
    grant = gate.admit(other.encode(), "here")
    assert gate.holds(grant)
    assert file.revoke("other") == grant
    assert not gate.holds(grant)
    with pytest.raises(AuthenticationError, match="does not know"):
        gate.admit(other.encode(), "here")
    with pytest.raises(AccessError, match="no token has the id or name 'other'"):
        file.revoke("other")


def test_names_that_two_tokens_have_revoke_neither(file):
    file.add("a"), file.add("a")
    with pytest.raises(AccessError, match="2 tokens have"):
        file.revoke("a")
    for id in list(file.grants()):
        file.revoke(id)
    assert file.grants() == {}


WRONG = [
    dict(name=""),
    dict(name="a\nb"),
    dict(name="a" * 61),
    dict(name="a", scopes=()),
    dict(name="a", scopes=("everything",)),
    dict(name="a", scopes=("programs:../x",)),
    dict(name="a", days=0),
    dict(name="a", days=-1),
    dict(name="a", days=float("nan")),
    dict(name="a", sessions=0),
    dict(name="a", rate=0),
    dict(name="a", connections=0),
    dict(name="a", rate=10**9),
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_tokens_that_can_not_be_made(file, options):
    with pytest.raises(AccessError):
        file.add(**options)
    assert not file.path.exists()


DAMAGED = ["", "{", "[]", '{"tokens": 1}', '{"tokens": [{}]}', '{"tokens": [{"id": "1", "sha256": "zz"}]}']


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_file_lets_nobody_in(file, text):
    token = file.add("a").encode()
    gate = Gate(TOKEN, file.path)
    grant = gate.admit(token, "here")
    time.sleep(0.01)
    file.path.write_text(text)
    with pytest.raises(AuthenticationError, match="can't read its tokens"):
        gate.admit(token, "here")
    with pytest.raises(AccessError):
        gate.holds(grant)
    with pytest.raises(AccessError):
        file.add("b")
    assert file.path.read_text() == text, "nothing is lost"
    assert gate.admit(TOKEN.encode(), "here").id == ""


def test_a_damaged_file_ends_no_session_however_often_one_looks(file, monkeypatch):
    monkeypatch.setattr(access, "LOOK_SECONDS", 60)
    gate = Gate(None, file.path)
    grant = gate.admit(file.add("a").encode(), "here")
    file.path.write_text("{")
    reader = Gate(None, file.path)
    for _ in range(3):  # the first reads the file; a front looks four times a second
        with pytest.raises(AccessError):
            reader.holds(grant)


def test_guesses_are_few():
    gate = Gate(TOKEN)
    for _ in range(10):
        with pytest.raises(AuthenticationError, match="does not know"):
            gate.admit(b"guess", "there")
    for token in (b"guess", TOKEN.encode(), None):
        with pytest.raises(AuthenticationError, match="too many wrong tokens"):
            gate.admit(token, "there")
    assert gate.admit(TOKEN.encode(), "elsewhere").may("sessions")


def test_changes_at_one_time_are_all_kept(file):
    makers = [threading.Thread(target=TokenFile(file.path).add, args=(f"t{i}",)) for i in range(8)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert sorted(g.name for g in file.grants().values()) == [f"t{i}" for i in range(8)]


def token(*arguments, file):
    command = [sys.executable, "-m", "weft_native.host", "token", *arguments, "--file", str(file)]
    return subprocess.run(command, capture_output=True, text=True)


def request(host, name, with_token):
    address = f"{host.url.replace('ws:', 'http:')}/v1/programs{'/' + name if name else ''}"
    body = None if not name else json.dumps({"args": [1.0]}).encode()
    headers = {"Authorization": f"Bearer {with_token}", "Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(address, body, headers)) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


def test_a_host_with_a_file_of_tokens(tmp_path):
    """Each token is for what it is for, and one that is revoked ends its sessions."""
    file, models = tmp_path / "tokens.json", tmp_path / "models"
    models.mkdir()
    for name in ("f", "g"):
        made = export.export(weft.jit(lambda x: x + 1))(weft.ShapeDtypeStruct((), np.float32))
        (models / f"{name}.weft").write_bytes(made.serialize())
    all_of_it = token("new", "alice", "--sessions", "1", file=file).stdout.strip()
    one = token("new", "bob", "--scope", "programs:f", "--days", "2", file=file).stdout.strip()
    listed = token("list", file=file).stdout
    assert "sessions programs, 1 sessions  alice" in listed and "programs:f  bob" in listed and all_of_it not in listed
    options = ("--platform", "cpu", "--tokens", str(file), "--serve", str(models))
    with run_host(tmp_path, *options) as host:
        assert request(host, "f", one) == (200, {"result": 2.0})
        assert request(host, "g", one) == (403, {"error": "this token is not for the program 'g'."})
        assert request(host, "g", all_of_it) == (200, {"result": 2.0})
        assert request(host, "", one)[0] == 200 and request(host, "", "guess")[0] == 401
        with pytest.raises(AuthenticationError, match="not for sessions"):
            weft.remote.connect(host.url, token=one)
        session = weft.remote.connect(host.url, token=all_of_it)
        with pytest.raises(LimitError, match="for 1 sessions at one time"):
            weft.remote.connect(host.url, token=all_of_it)
        assert token("revoke", "alice", file=file).stdout.endswith("alice\n")
        until = time.monotonic() + 10
        with pytest.raises(AuthenticationError, match="expired or was revoked"):
            while time.monotonic() < until:
                session.ping()
                time.sleep(0.05)
        with pytest.raises(AuthenticationError, match="does not know"):
            weft.remote.connect(host.url, token=all_of_it)


def test_commands_that_can_not_be_carried_out(tmp_path):
    file = tmp_path / "tokens.json"
    gone = token("revoke", "x", file=file)
    assert gone.returncode == 1 and gone.stderr.startswith("weft-host token: no token has the id or name 'x'")
    wrong = token("new", "x", "--scope", "all", file=file)
    assert (
        wrong.returncode == 1
        and "a scope is sessions, programs, programs:NAME, admin or metrics; got all" in wrong.stderr
    )
    command = [sys.executable, "-m", "weft_native.host", "--tokens", str(file)]
    none = subprocess.run(command, capture_output=True, text=True)
    assert none.returncode == 2 and "there is no such file. Make a token with `weft-host token new" in none.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="processes for sessions are Linux's")
def test_sessions_of_a_token_yield_to_others(tmp_path):
    """Whatever process they are in, with all its threads."""
    need("cpu")
    file = tmp_path / "tokens.json"
    slow = token("new", "batch", "--nice", "7", file=file).stdout.strip()
    assert "nice 7" in token("list", file=file).stdout
    assert "from 0 to 19" in token("new", "x", "--nice", "20", file=file).stderr
    options = ("--platform", "cpu", "--tokens", str(file), "--log-level", "info", "--jobs", str(tmp_path / "jobs"))

    def nices(name: str) -> set[int]:
        process = re.findall(rf"'{name}'[^\n]* (?:begins|goes on) in process (\d+)", host.log.read_text())[-1]
        threads = pathlib.Path(f"/proc/{process}/task")
        return {int((t / "stat").read_text().rsplit(")", 1)[1].split()[16]) for t in threads.iterdir()}

    with run_host(tmp_path, *options) as host:
        own = os.getpriority(os.PRIO_PROCESS, 0)
        with weft.remote.connect(host.url, token=TOKEN, name="first"):
            assert nices("first") == {own}
        session = weft.remote.connect(host.url, token=slow, name="second")
        x = weft.device_put(np.ones(3, np.float32), session.devices()[0]) + 1
        session.ping()
        assert nices("second") == {min(own + 7, 19)}
        text = weft.remote.keep([x], seconds=60)
        session.leave()
        assert becomes(lambda: list((tmp_path / "jobs").glob("*.json")))
        session, (x,) = weft.remote.resume(host.url, text, token=slow)
        np.testing.assert_array_equal(x + 1, [3, 3, 3])
        assert nices("second") == {min(own + 7, 19)}
        session.close()
