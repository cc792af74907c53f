"""Hosts with a listener for administrators."""

from __future__ import annotations

import contextlib
import json
import re
import urllib.error
import urllib.request

from hosts import TOKEN, run_host


class Page:
    """The administrators' listener of a host, asked with a token."""

    def __init__(self, url: str, token: str | None = TOKEN):
        self.url, self.token = url.rstrip("/"), token

    def ask(self, path: str, method: str = "GET", token: str | None = None, **headers):
        """The status, the headers and the body of an answer."""
        given = self.token if token is None else token
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if given:
            sent.setdefault("Authorization", f"Bearer {given}")
        request = urllib.request.Request(self.url + path, None, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, response.headers, response.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.headers, e.read().decode()

    def json(self, path: str, method: str = "GET", token: str | None = None):
        status, _, body = self.ask(path, method, token)
        return status, json.loads(body)

    def metrics(self) -> dict[str, float]:
        """Each series by its name and labels, as Prometheus' text has them."""
        status, _, text = self.ask("/metrics")
        assert status == 200, text
        lines = [line for line in text.split("\n") if line and not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


@contextlib.contextmanager
def operated(tmp_path, *options: str):
    """A host, and its page for administrators."""
    with run_host(tmp_path, "--admin", "0", *options) as host:
        while not (found := re.match(r"admin (http\S+)", host.process.stdout.readline())):
            assert host.process.poll() is None, host.log.read_text()
        yield host, Page(found[1])
