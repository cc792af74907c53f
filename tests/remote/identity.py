"""An identity provider: its keys, the tokens that it signs, and a server that publishes the keys over TLS."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import pathlib
import ssl
import threading
import time

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import get_default_algorithms

TLS = pathlib.Path(__file__).parent / "tls"  # of localhost
ISSUER, AUDIENCE = "https://issuer.example", "weft-tests"
RSA = rsa.generate_private_key(65537, 2048)
PRIVATE = {
    "rsa": RSA,
    "other": rsa.generate_private_key(65537, 2048),
    "p256": ec.generate_private_key(ec.SECP256R1()),
    "p384": ec.generate_private_key(ec.SECP384R1()),
    "p521": ec.generate_private_key(ec.SECP521R1()),
    "ed": ed25519.Ed25519PrivateKey.generate(),
}
USUAL = {"rsa": "RS256", "other": "RS256", "p256": "ES256", "p384": "ES384", "p521": "ES512", "ed": "EdDSA"}


def public(name: str, **more) -> dict:
    """A key as a key set has it; a field that is None is left out."""
    made = get_default_algorithms()[USUAL[name]].to_jwk(PRIVATE[name].public_key(), as_dict=True)
    made.pop("key_ops", None)
    return {k: v for k, v in {**made, "kid": name, "use": "sig", **more}.items() if v is not None}


def key_set(*names: str) -> bytes:
    return json.dumps({"keys": [public(name) for name in names]}).encode()


def signed(key: str = "rsa", algorithm: str | None = None, kid: str | None = "", **claims) -> str:
    """A token that is good unless `claims` say otherwise; a claim that is None is left out."""
    now = int(time.time())
    usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 600, "scope": "weft:sessions"}
    found = {k: v for k, v in {**usual, **claims}.items() if v is not None}
    headers = {} if kid is None else {"kid": kid or key}
    return jwt.encode(found, PRIVATE[key], algorithm or USUAL[key], headers)


def by_hand(header: dict, claims: object, signature: bytes = b"") -> str:
    """A token that no library makes."""
    text = lambda data: base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    return ".".join([text(json.dumps(header).encode()), text(json.dumps(claims).encode()), text(signature)])


class Server:
    """Publishes `body`, with `status`; `asked` counts requests."""

    def __init__(self, body: bytes):
        self.body, self.status, self.asked, self.url = body, 200, 0, ""


@contextlib.contextmanager
def publishing(body: bytes):
    """A server of keys on a free port, with the certificate of localhost."""
    made = Server(body)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked += 1
            self.send_response(made.status)
            self.send_header("Content-Length", str(len(made.body)))
            self.end_headers()
            self.wfile.write(made.body)

        def log_message(self, *_) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    made.url = f"https://localhost:{server.server_address[1]}/keys.json"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
