"""The files of deploy/ name options, paths and system calls that there are."""

import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tomllib

import numpy as np
import pytest
import weft
import weft.remote
from hosts import TOKEN
from platforms import need
from weft_native.host import settings
from weft_native.host.access import TokenFile
from weft_native.host.audit import Audit
from weft_native.host.check import contradictions
from weft_native.host.drain import ANSWER_SECONDS
from weft_native.host.main import parser
from weft_native.host.notify import Manager

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNIT = (DEPLOY / "weft-host.service").read_text()
CONTAINER = (DEPLOY / "Containerfile").read_text()
README = (DEPLOY / "README.md").read_text()

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


def directives(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.split("\n") if "=" in line)


def instructions(text: str) -> list[tuple[str, str]]:
    return [tuple(line.split(" ", 1)) for line in text.split("\n") if line]


def loaded(name: str) -> settings.Settings:
    given = parser().parse_args(["--config", str(DEPLOY / name)])
    return settings.load(given, {}).settings


@pytest.mark.parametrize("name", ["host.toml", "container.toml"])
def test_settings_can_be_used(name):
    found = contradictions(loaded(name))
    assert [p for p in found if "there is no such file. Make a token" not in p] == [], (
        "but for the tokens, which come later"
    )


def test_the_unit_starts_a_host_with_its_settings():
    line = shlex.split(directives(UNIT)["ExecStart"])
    assert line[0] == "/opt/weft-host/bin/weft-host" and "/opt/weft-host/bin/pip install weft" in README
    scripts = tomllib.loads((ROOT / "native/pyproject.toml").read_text())["project"]["scripts"]
    assert pathlib.Path(line[0]).name in scripts
    given = parser().parse_args(line[1:])
    assert given.config in README and f"install -D -m 644 deploy/host.toml {given.config}" in README
    found, unit = loaded("host.toml"), directives(UNIT)
    assert found.tokens.startswith(f"/var/lib/{unit['StateDirectory']}/")
    assert found.audit.startswith(f"/var/log/{unit['LogsDirectory']}/")
    assert float(unit["TimeoutStopSec"]) > found.drain + ANSWER_SECONDS


def test_each_line_of_the_unit_has_its_reason():
    names = set(directives(UNIT.split("[Service]")[1].split("[Install]")[0])) - {"ExecStart", "Restart"}
    families = {re.sub(r"^(ProtectKernel|SystemCall|StateDirectory|LogsDirectory).*", r"\1", name) for name in names}
    assert [f for f in families if f"`{f}" not in README] == [] and len(families) > 20


@needs_systemd
def test_systemd_reads_the_unit(tmp_path):
    made = tmp_path / "weft-host.service"
    made.write_text(UNIT.replace("/opt/weft-host/bin/weft-host", sys.executable))
    gpu = tmp_path / "weft-host.service.d"
    gpu.mkdir()
    shutil.copy(DEPLOY / "weft-host-gpu.conf", gpu / "gpu.conf")
    done = subprocess.run(["systemd-analyze", "verify", str(made)], capture_output=True, text=True)
    assert done.returncode == 0 and "weft-host" not in done.stderr, done.stderr


FILTERED = """
import os, sys
import pyseccomp as seccomp
rules = seccomp.SyscallFilter(seccomp.ERRNO(1))
for name in sys.argv[1].split():
    try:
        rules.add_rule(seccomp.ALLOW, name)
    except (OSError, RuntimeError):  # this machine has no such call
        pass
rules.load()
os.execv(sys.executable, [sys.executable, "-W", "ignore", "-m", "weft_native.host", *sys.argv[2:]])
"""


@needs_systemd
def test_a_host_encloses_its_workers_with_the_calls_of_the_unit(tmp_path):
    need("cpu")
    groups, names = [], []
    for word in directives(UNIT)["SystemCallFilter"].split():
        (groups if word.startswith("@") else names).append(word)
    seen = set()
    while groups:
        group = groups.pop()
        seen.add(group)
        listed = subprocess.run(
            ["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=True
        )
        words = [line.strip() for line in listed.stdout.split("\n")[1:] if line.strip() and "#" not in line]
        names += [w for w in words if not w.startswith("@")]
        groups += [w for w in words if w.startswith("@") and w not in seen]
    assert "landlock_restrict_self" in names and "read" in names and "ptrace" not in names
    options = ["--port", "0", "--token", TOKEN, "--platform", "cpu"]
    with open(tmp_path / "log", "w") as log:
        host = subprocess.Popen(
            [sys.executable, "-c", FILTERED, " ".join(names), *options], stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            found = re.search(r"ws://\S+", host.stdout.readline())
            assert found, (tmp_path / "log").read_text()
            with weft.remote.connect(found[0], token=TOKEN) as session:
                x = weft.device_put(np.arange(3, dtype=np.float32), session.devices()[0])
                assert float((x * 2).sum()) == 6
        finally:
            host.terminate()
            assert host.wait(60) == 0
            host.stdout.close()


# containers -----------------------------------------------------------------------------------------------------------


def test_the_container_has_what_it_copies_and_starts():
    lines = instructions(CONTAINER)
    words = [name for name, _ in lines]
    assert words[0] == "FROM" and words[-1] == "ENTRYPOINT"
    wheels = (ROOT / "Makefile").read_text()
    for source in [w for name, rest in lines if name == "COPY" for w in rest.split()[:-1]]:
        assert (ROOT / source).exists() or source == "build/dist/*.whl" and "--outdir build/dist" in wheels, source
    assert "make wheels" in README
    scripts = tomllib.loads((ROOT / "native/pyproject.toml").read_text())["project"]["scripts"]
    assert dict(lines)["ENTRYPOINT"] == '["weft-host"]' and "weft-host" in scripts
    found, (place,) = loaded("container.toml"), re.findall(r"COPY deploy/container.toml (\S+)", CONTAINER)
    assert dict(lines)["ENV"] == f"WEFT_HOST_CONFIG={place}"
    assert dict(lines)["EXPOSE"] == str(found.port) and dict(lines)["STOPSIGNAL"] == "SIGTERM"
    assert f"127.0.0.1:{settings.place(found.admin)[1]}/healthz" in dict(lines)["HEALTHCHECK"]
    assert found.tokens.startswith(dict(lines)["VOLUME"] + "/") and found.audit.startswith(dict(lines)["VOLUME"] + "/")
    (grace,) = set(re.findall(r"--stop-timeout (\d+)", README))
    assert float(grace) > found.drain + ANSWER_SECONDS


# several hosts --------------------------------------------------------------------------------------------------------


def test_each_line_of_the_proxys_configuration_has_its_reason():
    sections = ("global", "defaults", "frontend ", "backend ", "mode ", "log global", "server ", "#")
    lines = [line.strip() for line in (DEPLOY / "haproxy.cfg").read_text().split("\n") if line.strip()]
    told = re.findall(r"`([^`]+)`", README.split("## Several hosts")[1])
    known = (*sections, *told)
    assert len(told) > 20 and [line for line in lines if not line.startswith(known)] == []


def test_the_proxys_hosts_can_have_their_names():
    text = (DEPLOY / "haproxy.cfg").read_text()
    names = re.findall(r"^ +server (\S+) (\S+)", text, re.M)
    assert names and names == names[: len(names) // 3] * 3, "all backends have the same hosts"
    (line,) = re.findall(r"weft-host --config .* --name .*", README)
    given = settings.load(parser().parse_args(shlex.split(line)[3:]), {}).settings
    assert contradictions(given) == [] and (given.name, f"{given.host}:{given.port}") in names
    wrong = settings.Settings(name="a_b", trusted_proxy=("everywhere",))
    assert [p.partition(":")[0] for p in contradictions(wrong)] == ["--name a_b", "--trusted-proxy"]


# what root writes, and what the service manager is told ---------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
def test_what_root_writes_belongs_to_the_hosts_user(tmp_path):
    """The folder's owner, who can't make root write elsewhere."""
    os.chown(tmp_path, 12345, 12345)
    tokens = TokenFile(tmp_path / "tokens.json")
    tokens.add("alice")
    Audit(tmp_path / "audit.log", str).write("one")
    for name in ("tokens.json", "audit.log"):
        assert os.stat(tmp_path / name).st_uid == 12345
    (tmp_path / "victim").touch()
    (tmp_path / "link.log").symlink_to(tmp_path / "victim")
    Audit(tmp_path / "link.log", str).write("one")
    assert (tmp_path / "victim").read_text() == "" and os.stat(tmp_path / "victim").st_uid == 0


def test_systemd_is_told(tmp_path):
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(30)
        host = subprocess.Popen(
            [sys.executable, "-m", "weft_native.host", "--port", "0", "--token", TOKEN, "--platform", "reference"],
            env={**os.environ, "NOTIFY_SOCKET": address},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert re.fullmatch(r"READY=1\nSTATUS=serving on 127.0.0.1:\d+", manager.recv(200).decode())
            host.send_signal(signal.SIGTERM)
            assert manager.recv(200).startswith(b"STOPPING=1")
            assert host.wait(60) == 0
        finally:
            host.kill()
            host.wait()
            host.stdout.close()


def test_nobody_is_told_who_did_not_ask(monkeypatch, caplog):
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    Manager().tell("READY=1")
    monkeypatch.setenv("NOTIFY_SOCKET", "@weft-test-that-nobody-listens-to")
    made = Manager()
    assert "NOTIFY_SOCKET" not in os.environ
    made.tell("READY=1")
    assert "can't be told READY=1" in caplog.text
