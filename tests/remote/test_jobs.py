"""Sessions that go on without their clients, and rest on disk: nothing is lost, also when the host starts again."""

import io
import json
import re
import socket
import sys
import time

import numpy as np
import pytest
import weft
import weft.numpy as jnp
import weft.remote
from hosts import TOKEN, becomes, run_host
from platforms import need
from weft import lax
from weft_native.host.access import TokenFile
from weft_native.host.jobs import _PIECE as PIECE
from weft_native.host.jobs import Job, Jobs
from weft_native.host.state import END
from weft_remote import errors

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes for sessions are Linux's")


@pytest.fixture
def keeping(tmp_path):
    """Starts hosts that keep sessions in one folder."""
    need("cpu")
    return lambda *options: run_host(
        tmp_path, "--platform", "cpu", "--log-level", "info", "--jobs", str(tmp_path / "jobs"), *options
    )


def files(tmp_path) -> list[str]:
    return sorted(path.suffix for path in (tmp_path / "jobs").iterdir())


def rests(host, times: int = 1) -> bool:
    return becomes(lambda: len(re.findall("rests on disk", host.log.read_text())) >= times)


def long(x):
    return lax.fori_loop(0, 3_000_000, lambda i, c: jnp.sin(c) + 1, x)


def begun(host, seconds: float = 100, **options):
    """The text of a session whose computation goes on, and what it gives."""
    session = host.connect(**options)
    device = session.devices()[0]
    x = weft.device_put(np.arange(5, dtype=np.float32), device)
    text = weft.remote.keep({"y": weft.jit(long)(x), "x": [x, ("a", 3, None, True)]}, seconds=seconds)
    session.leave()
    return text


WANTED = np.asarray(weft.jit(long)(np.arange(5, dtype=np.float32)))


def test_a_job_goes_on_without_its_client_and_waits_on_disk(keeping, tmp_path):
    with keeping("--unattended", "0.1", "--grace", "0.1") as host:
        text = begun(host)
        assert rests(host) and becomes(lambda: files(tmp_path) == [".json", ".session"])
        session, tree = weft.remote.resume(host.url, text, token=TOKEN)
        with session:
            np.testing.assert_allclose(tree["y"], WANTED, rtol=1e-6)
            assert tree["x"][1] == ["a", 3, None, True]
            np.testing.assert_array_equal(tree["x"][0] + 1, np.arange(5) + 1)
            assert becomes(lambda: not files(tmp_path))
            again = weft.remote.keep([tree["y"]], seconds=100)
            session.leave()
        assert rests(host, 2)
    with keeping() as host:  # another one, with what the first has left
        session, (y,) = weft.remote.resume(host.url, again, token=TOKEN)
        with session:
            np.testing.assert_allclose(y, WANTED, rtol=1e-6)
        assert becomes(lambda: not files(tmp_path) and " has ended: closed: " in host.log.read_text())
        with pytest.raises(errors.ConnectionLost, match="ended the session"):
            weft.remote.resume(host.url, again, token=TOKEN)


def test_a_job_can_be_taken_up_while_it_computes(keeping):
    with keeping("--unattended", "0.1") as host:
        session, tree = weft.remote.resume(host.url, begun(host), token=TOKEN)
        with session:
            np.testing.assert_allclose(tree["y"], WANTED, rtol=1e-6)


def test_sessions_go_on_when_the_host_starts_again(keeping):
    """Also those whose clients are there, and have asked for nothing: they wait for the host as long as it takes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    with keeping("--port", port) as host:
        session = host.connect()
        device = session.devices()[0]
        f = weft.jit(long, device=device)
        x = weft.device_put(np.arange(5, dtype=np.float32), device)
        np.testing.assert_allclose(f(x), WANTED, rtol=1e-6)
        y = f(x + 0)  # it computes while the host stops
    time.sleep(2)  # longer than clients wait for a host that was killed
    with keeping("--port", port):
        np.testing.assert_allclose(y, WANTED, rtol=1e-6)
        np.testing.assert_allclose(f(x), WANTED, rtol=1e-6)
        assert session.stats.connections == 2
        session.close()


def test_a_job_ends_when_its_time_is_over(keeping, tmp_path):
    with keeping("--grace", "20") as host:
        text = begun(host, 3)
        assert rests(host)
        assert becomes(lambda: not files(tmp_path))
        with pytest.raises(errors.ConnectionLost, match="in the time for which it was kept"):
            weft.remote.resume(host.url, text, token=TOKEN)


def test_who_may_not_take_a_job_up(keeping, tmp_path):
    tokens = TokenFile(tmp_path / "tokens.json")
    alice, bob = tokens.add("alice"), tokens.add("bob")
    with keeping("--tokens", str(tmp_path / "tokens.json"), "--grace", "20") as host:
        text = begun(host, token=alice)
        assert rests(host)
        other = json.loads(text)
        other["ticket"]["secret"] = "A" * 43
        for token, kept in ((bob, text), (alice, json.dumps(other)), (TOKEN, text)):
            with pytest.raises(errors.ConnectionLost, match="does not know the session"):
                weft.remote.resume(host.url, kept, token=token)
        (about,) = (tmp_path / "jobs").glob("*.json")
        assert json.loads(text)["ticket"]["secret"] not in about.read_text()
        tokens.revoke("alice")
        assert becomes(lambda: not files(tmp_path))
        with pytest.raises(errors.AuthenticationError, match="does not know this token"):
            weft.remote.resume(host.url, text, token=alice)


def test_a_session_for_which_the_disk_has_no_room_stays_in_its_process(keeping, tmp_path):
    with keeping("--job-bytes", "100") as host:
        text = begun(host)
        assert becomes(lambda: "can't be put on disk" in host.log.read_text())
        assert files(tmp_path) == []
        session, tree = weft.remote.resume(host.url, text, token=TOKEN)
        with session:
            np.testing.assert_allclose(tree["y"], WANTED, rtol=1e-6)
            np.testing.assert_array_equal(tree["x"][0] * 2, np.arange(5) * 2)


def test_jobs_take_no_place_of_a_session(keeping):
    with keeping("--sessions", "1") as host:
        begun(host)
        assert rests(host)
        with host.connect() as session:
            session.ping()


@pytest.mark.parametrize("damage", ["short", "changed", "gone"])
def test_a_job_whose_file_is_damaged(keeping, tmp_path, damage):
    with keeping() as host:
        text = begun(host)
        assert rests(host)
        (path,) = (tmp_path / "jobs").glob("*.session")
        data = path.read_bytes()
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(data[:-20] if damage == "short" else data[:200] + bytes(50) + data[250:])
        with pytest.raises(errors.ConnectionLost, match="arrays are gone"):
            session, tree = weft.remote.resume(host.url, text, token=TOKEN)
            np.asarray(tree["y"])
        with host.connect() as session:
            session.ping()


def test_hosts_that_keep_nothing_or_not_for_so_long(tmp_path, keeping):
    with run_host(tmp_path) as host, host.connect() as session:
        x = weft.device_put(np.ones(3), session.devices()[0])
        with pytest.raises(errors.LimitError, match="keeps no sessions; its operator lets it with `weft-host --jobs"):
            weft.remote.keep(x, seconds=60)
        assert weft.remote.keep(x)  # for as long as a lost connection
        np.testing.assert_array_equal(x, np.ones(3))
    with keeping("--job-seconds", "50") as host, host.connect() as session:
        x = weft.device_put(np.ones(3), session.devices()[0])
        with pytest.raises(errors.LimitError, match="for 50 s at most"):
            weft.remote.keep(x, seconds=60)
        for seconds in (-1, float("nan"), float("inf")):
            with pytest.raises(ValueError, match="a number from 0 on"):
                weft.remote.keep(x, seconds=seconds)
        with pytest.raises(TypeError, match="key_data"):
            weft.remote.keep([x, weft.random.key(0)])
        with pytest.raises(TypeError, match="dicts with texts as keys"):
            weft.remote.keep([x, {1: x}])
        with pytest.raises(ValueError, match="of one session, and these are of 0"):
            weft.remote.keep(3)
        session.leave()
        with pytest.raises(errors.ConnectionLost, match="left to whoever resumes it"):
            np.asarray(x + 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"kind": "weft session 2"}',
        '{"kind": "weft session 1", "ticket": {"id": "a"}}',
        '{"kind": "weft session 1", "ticket": {"id": "a", "secret": "ä"}, "tree": {"value": 1}}',
        '{"kind": "weft session 1", "ticket": {"id": "a", "secret": 3}, "tree": {"value": 1}}',
    ],
)
def test_texts_that_are_no_session(text):
    with pytest.raises(ValueError, match="no kept session"):
        weft.remote.resume("ws://127.0.0.1:1", text, token=TOKEN)


def test_a_folder_of_jobs_is_put_in_order(tmp_path):
    """What an earlier host has written by halves, or what is over, is removed; other files are left alone."""
    jobs = Jobs(tmp_path, 1000)
    ids = [f"{k:016x}" for k in range(5)]
    for id in ids[:4]:
        (tmp_path / f"{id}.session").write_bytes(b"12345")
    job = Job(ids[0], "0" * 64, "a", "", "", "", 4e9)
    (tmp_path / f"{ids[0]}.json").write_text(json.dumps(job._asdict()))
    (tmp_path / f"{ids[1]}.json").write_text(json.dumps(job._replace(id=ids[1], until=1.0)._asdict()))
    (tmp_path / f"{ids[2]}.json").write_text("{")
    (tmp_path / f"{ids[3]}.json").write_text(json.dumps(job._replace(id=ids[3], until="soon")._asdict()))
    (tmp_path / f"{ids[4]}.json").write_text(json.dumps(job._replace(id=ids[4])._asdict()))
    (tmp_path / "notes.txt").write_text("mine")
    assert jobs.known() == [job] and jobs.bytes.used == 5
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{ids[0]}.json", f"{ids[0]}.session", "notes.txt"]


@pytest.mark.parametrize("beyond", [*range(2 * len(END) + 2), PIECE])
def test_the_end_of_a_session_is_seen_wherever_its_pieces_end(tmp_path, beyond):
    """It is read in pieces, and the last may be shorter than the mark of the end."""
    jobs, job = Jobs(tmp_path, 4 * PIECE), Job("0" * 16, "0" * 64, "a", "", "", "", 4e9)
    data = bytes(PIECE + beyond - len(END)) + END
    jobs.write(job, io.BytesIO(data))
    assert jobs.known() == [job] and jobs.bytes.used == len(data)
    with jobs.open(job.id) as file:
        assert file.read() == data
    for short in (data[:-1], data[:-1] + b"?", b""):
        with pytest.raises(EOFError):
            jobs.write(job._replace(id="1" * 16), io.BytesIO(short))
    assert jobs.bytes.used == len(data)
