"""Hosts behind HAProxy, with the configuration of deploy/."""

from __future__ import annotations

import contextlib
import http.client
import json
import pathlib
import shutil
import socket
import ssl
import subprocess

import weft.remote
from hosts import TOKEN, becomes
from platforms import SERVERS

SHIPPED = (pathlib.Path(__file__).resolve().parents[2] / "deploy/haproxy.cfg").read_text()
TLS = pathlib.Path(__file__).parent / "tls"  # of localhost, signed by itself
NAMES = ("host-1", "host-2")
BACKENDS = ("sessions", "queue", "programs")  # of the configuration


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Balanced:
    """Clients' side of HAProxy, with the shipped configuration but for addresses and the place of the certificate."""

    def __init__(self, folder: pathlib.Path, ports: dict[str, int]):
        self.port, self.control = free_port(), folder / "haproxy.sock"
        (folder / "both.pem").write_text((TLS / "certificate.pem").read_text() + (TLS / "key.pem").read_text())
        text = SHIPPED
        for found, given in [
            ("bind :80", f"bind 127.0.0.1:{free_port()}"),
            ("bind :443", f"bind 127.0.0.1:{self.port}"),
            ("/etc/haproxy/weft-host.pem", str(folder / "both.pem")),
            (
                "    maxconn 20000",
                f"    stats socket {self.control} level admin\n    maxconn 1000",
            ),  # a test may open few files
            *[(f"server {name} 10.0.0.1{k}:8765", f"server {name} 127.0.0.1:{ports[name]}") for k, name in NUMBERED],
        ]:
            assert found in text
            text = text.replace(found, given)
        self.file, self.log = folder / "haproxy.cfg", folder / "haproxy.log"
        self.file.write_text(text)
        self.url = f"wss://127.0.0.1:{self.port}"

    @contextlib.contextmanager
    def running(self):
        program = shutil.which("haproxy", path=SERVERS)
        checked = subprocess.run([program, "-c", "-f", self.file], capture_output=True, text=True)
        assert checked.returncode == 0 and "WARNING" not in checked.stderr, checked.stderr
        with open(self.log, "w") as log:
            self.process = process = subprocess.Popen([program, "-db", "-f", self.file], stdout=log, stderr=log)
        try:
            assert becomes(lambda: process.poll() is not None or self.control.exists())
            assert becomes(lambda: all(self.up(name) for name in NAMES)), self.log.read_text()
            yield self
        finally:
            process.terminate()
            process.wait(60)

    def hold_checks(self, backend: str, names: tuple[str, ...] = NAMES) -> None:
        """HAProxy takes hosts for ready from now on, whatever they say."""
        for name in names:
            with socket.socket(socket.AF_UNIX) as control:
                control.connect(str(self.control))
                control.sendall(f"disable health {backend}/{name}; set server {backend}/{name} health up\n".encode())
                assert not control.recv(1 << 16).strip()

    def connect(self, url: str = "", **options):
        return weft.remote.connect(url or self.url, token=TOKEN, **options)

    def up(self, name: str, backends: tuple[str, ...] = BACKENDS) -> bool:
        """Whether HAProxy gives a host new sessions, clients that wait, and requests."""
        states = self._states(name, backends)
        return bool(states) and all(state.startswith("UP") for state in states)

    def down(self, name: str, backends: tuple[str, ...] = BACKENDS) -> bool:
        """Whether it gives a host none of these."""
        return not any(state.startswith("UP") for state in self._states(name, backends))

    def _states(self, name: str, backends: tuple[str, ...]) -> list[str]:
        with socket.socket(socket.AF_UNIX) as control:
            try:
                control.connect(str(self.control))
            except OSError:
                return []
            control.sendall(b"show stat\n")
            text = b"".join(iter(lambda: control.recv(1 << 16), b"")).decode()
        rows = [line.split(",") for line in text.split("\n") if line]
        states = [row[rows[0].index("status")] for row in rows if row[1] == name and row[0].strip("# ") in backends]
        assert len(states) == len(backends)
        return states

    def ask(self, x: float, token: str = TOKEN, source: str = "127.0.0.1", **headers: str) -> tuple[int, dict]:
        """The answer to a request for a program, from an address of this machine."""
        context = ssl.create_default_context(cafile=str(TLS / "certificate.pem"))
        line = http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=30, source_address=(source, 0), context=context
        )
        return answered(line, x, token, headers)


NUMBERED = list(enumerate(NAMES, 1))


def answered(line, x: float, token: str, headers: dict[str, str]) -> tuple[int, dict]:
    with contextlib.closing(line):
        sent = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        line.request("POST", "/v1/programs/twice", json.dumps({"args": [x]}), sent)
        response = line.getresponse()
        return response.status, json.loads(response.read())
