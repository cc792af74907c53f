"""A host that speaks TLS itself."""

import json
import pathlib
import socket
import ssl
import subprocess
import sys
import urllib.request

import numpy as np
import pytest
import weft
import weft.numpy as jnp
import weft.remote
from hosts import TOKEN, run_host
from proxy import Proxy
from weft import export
from weft_remote.errors import ConnectionLost

TLS = pathlib.Path(__file__).parent / "tls"  # of localhost, signed by itself
OPTIONS = ("--tls-cert", str(TLS / "certificate.pem"), "--tls-key", str(TLS / "key.pem"))


@pytest.fixture
def trusted(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "certificate.pem"))


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    folder = tmp_path_factory.mktemp("host")
    made = export.export(weft.jit(lambda x: x + 1))(weft.ShapeDtypeStruct((), np.float32))
    (folder / "f.weft").write_bytes(made.serialize())
    with run_host(folder, "--platform", "cpu", "--serve", str(folder), *OPTIONS) as running:
        yield running


def test_a_session(host, trusted):
    assert host.url.startswith("wss://")
    with host.connect(default=True) as session:
        x = np.random.default_rng(0).normal(size=(700, 1000)).astype(np.float32)  # 2.8 MB each way
        y = weft.jit(lambda x: x * 2)(jnp.asarray(x))
        np.testing.assert_array_equal(np.asarray(y), x * 2)
        assert session.stats.connections == 1


def test_a_connection_that_breaks_is_taken_up_again(host, trusted):
    with Proxy(host.port) as proxy, weft.remote.connect(proxy.url.replace("ws:", "wss:"), token=TOKEN) as session:
        x = weft.device_put(np.zeros(3, np.float32), session.devices()[0])
        step = weft.jit(lambda x: x + 1)
        for _ in range(3):
            x = step(step(x))
            proxy.cut()
        assert np.asarray(x).tolist() == [6, 6, 6]
        assert session.stats.connections > 1


def test_a_certificate_that_nobody_signed_is_refused(host):
    with pytest.raises(ConnectionLost, match="certificate"):
        host.connect()


def test_plain_bytes_are_refused(host):
    with pytest.raises(ConnectionLost):
        weft.remote.connect(host.url.replace("wss:", "ws:"), token=TOKEN)
    with socket.create_connection(("127.0.0.1", host.port)) as plain:
        plain.sendall(b"GET /session HTTP/1.1\r\n\r\n")
        plain.settimeout(10)
        assert b"101" not in plain.recv(100)


def test_programs_by_name(host):
    context = ssl.create_default_context(cafile=TLS / "certificate.pem")
    request = urllib.request.Request(
        f"https://127.0.0.1:{host.port}/v1/programs/f",
        json.dumps({"args": [1.5]}).encode(),
        {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, context=context) as response:
        assert json.load(response) == {"result": 2.5}


WRONG = {
    "no key": (OPTIONS[:2], "--tls-cert and --tls-key belong together"),
    "no file": ((*OPTIONS[:2], "--tls-key", "/nowhere"), "are not a certificate and its key"),
    "no certificate": (("--tls-cert", __file__, *OPTIONS[2:]), "are not a certificate and its key"),
}


@pytest.mark.parametrize("case", WRONG)
def test_files_that_are_none(case):
    options, words = WRONG[case]
    command = [sys.executable, "-m", "weft_native.host", "--port", "0", "--platform", "cpu", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode in (1, 2) and words in done.stderr and "Traceback" not in done.stderr
