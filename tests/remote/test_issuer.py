"""Tokens that an identity provider signs."""

import asyncio
import hashlib
import hmac
import json
import os
import random
import time

import numpy as np
import pytest
import weft
import weft.remote
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hosts import TOKEN, becomes
from identity import AUDIENCE, ISSUER, PRIVATE, TLS, by_hand, key_set, public, publishing, signed
from jwt.algorithms import RSAAlgorithm
from operated import operated
from test_access import request
from test_audit import entries
from test_settings import command
from weft import export
from weft_native.host import issuer as module
from weft_native.host.access import Gate
from weft_native.host.check import contradictions
from weft_native.host.grants import Denied
from weft_native.host.issuer import ALGORITHMS, LONGEST, MESSAGE, Issuer, Keys, KeysError
from weft_native.host.settings import Settings
from weft_remote.errors import AuthenticationError, LimitError


def now() -> int:
    """Asked for in each test: a run of all of them takes longer than these tokens live."""
    return int(time.time())


def issuer(folder, *names, algorithms=ALGORITHMS, body=None, **options):
    file = folder / "keys.json"
    file.write_bytes(key_set(*names) if body is None else body)
    return Issuer(ISSUER, [AUDIENCE], Keys(str(file)), algorithms, **options)


def enter(checked, token):
    """What a token gets at a host, whose keys are read when they are needed."""
    return asyncio.run(Gate(None, issuer=checked).enter(token.encode(), "here"))


def cause(checked, token):
    with pytest.raises(Denied) as e:
        enter(checked, token)
    assert str(e.value) == MESSAGE, "the client learns no more"
    assert e.value.reason
    return e.value.cause


SIGNED = [("rsa", a) for a in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")]
SIGNED += [("p256", "ES256"), ("p384", "ES384"), ("p521", "ES512"), ("ed", "EdDSA")]


@pytest.mark.parametrize("key, algorithm", SIGNED)
def test_each_algorithm_lets_in(tmp_path, key, algorithm):
    checked = issuer(tmp_path, *PRIVATE)
    grant = enter(checked, signed(key, algorithm))
    assert (grant.name, grant.scopes, grant.sessions, grant.nice) == ("alice", ("sessions",), None, 0)
    others = tuple(a for a in ALGORITHMS if a != algorithm)
    assert cause(issuer(tmp_path, *PRIVATE, algorithms=others), signed(key, algorithm)) == "jwt-algorithm"
    text = signed(key, algorithm)
    changed = text[:-10] + ("A" if text[-10] != "A" else "B") + text[-9:]
    assert cause(checked, changed) == "jwt-signature"


def hmac_with_the_public_key():
    pem = (
        PRIVATE["rsa"]
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "eve", "exp": now() + 600}
    unsigned = by_hand({"alg": "HS256", "kid": "rsa"}, claims).rpartition(".")[0]
    return by_hand({"alg": "HS256", "kid": "rsa"}, claims, hmac.digest(pem, unsigned.encode(), hashlib.sha256))


REFUSED = {
    "expired": ("jwt-expired", lambda: signed(exp=now() - 40)),
    "not valid yet": ("jwt-early", lambda: signed(nbf=now() + 600)),
    "issued in the future": ("jwt-early", lambda: signed(iat=now() + 600)),
    "another issuer": ("jwt-issuer", lambda: signed(iss=ISSUER + "/")),
    "no text as issuer": ("jwt-issuer", lambda: signed_with({"iss": 3})),
    "another audience": ("jwt-audience", lambda: signed(aud="another")),
    "audiences": ("jwt-audience", lambda: signed(aud=["another", "third"])),
    "a key of somebody else": ("jwt-signature", lambda: signed("other", kid="rsa")),
    "an unknown key": ("jwt-key", lambda: signed("other")),
    "no name of a key": ("jwt-key", lambda: signed(kid=None)),
    "a name that is none": ("jwt-form", lambda: by_hand({"alg": "RS256", "kid": 3}, {})),
    "no signature": ("jwt-algorithm", lambda: by_hand({"alg": "none", "kid": "rsa"}, {"sub": "eve"})),
    "a signature with the public key": ("jwt-algorithm", hmac_with_the_public_key),
    "another kind of key": ("jwt-algorithm", lambda: signed("p256", kid="rsa")),
    "critical headers": ("jwt-form", lambda: by_hand({"alg": "RS256", "kid": "rsa", "crit": ["x"], "x": 1}, {})),
    "no end": ("jwt-claims", lambda: signed(exp=None)),
    "no subject": ("jwt-claims", lambda: signed(sub=None)),
    "an empty subject": ("jwt-claims", lambda: signed(sub="")),
    "no audience": ("jwt-claims", lambda: signed(aud=None)),
    "an end that is none": ("jwt-form", lambda: signed_with({"exp": "soon"})),
    "a late end": ("jwt-claims", lambda: signed(exp=10**400)),
    "an endless end": ("jwt-form", lambda: signed(exp=float("inf"))),
    "an unknown scope": ("jwt-claims", lambda: signed(scope="weft:everything")),
    "a scope that is none": ("jwt-claims", lambda: signed(scope={"weft:sessions": 1})),
    "scopes that are none": ("jwt-claims", lambda: signed(scope=["weft:sessions", 1])),
    "a quota that is none": ("jwt-claims", lambda: signed(weft={"sessions": "3"})),
    "a truth as quota": ("jwt-claims", lambda: signed(weft={"sessions": True})),
    "no sessions": ("jwt-claims", lambda: signed(weft={"sessions": 0})),
    "a misspelt quota": ("jwt-claims", lambda: signed(weft={"session": 3})),
    "too nice": ("jwt-claims", lambda: signed(weft={"nice": 20})),
    "no object": ("jwt-claims", lambda: signed(weft=[3])),
    "too large": ("jwt-size", lambda: signed(more="x" * 3600)),
    "large and no token": ("jwt-size", lambda: "x." * 2 + "x" * LONGEST),
    "no base64": ("jwt-form", lambda: "..!"),
    "no JSON": ("jwt-form", lambda: "eyJ.eyJ.eyJ"),
    "nested": ("jwt-form", lambda: "W1tb" * 1200 + ".."),
}


def signed_with(claims):
    """Whatever the library thinks of the claims."""
    header = {"alg": "RS256", "kid": "rsa"}
    usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": now() + 600}
    unsigned = by_hand(header, usual | claims).rpartition(".")[0]
    algorithm = RSAAlgorithm(RSAAlgorithm.SHA256)
    return by_hand(header, usual | claims, algorithm.sign(unsigned.encode(), PRIVATE["rsa"]))


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(tmp_path, case):
    expected, make = REFUSED[case]
    assert cause(issuer(tmp_path, "rsa", "p256"), make()) == expected


def test_damaged_tokens_are_refused_and_nothing_else(tmp_path):
    checked, rng = issuer(tmp_path, "rsa", "p256"), random.Random(0)
    checked.keys.read()
    text = bytearray(signed("p256").encode())
    for _ in range(1500):
        damaged = bytearray(text)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(damaged))
            damaged[at : at + rng.choice((0, 1, 1, 1, 9))] = rng.choice(
                (b"", b".", b"A", b"_", b"\xff", bytes([rng.randrange(256)]))
            )
        if checked.is_meant(bytes(damaged)) and damaged != text:
            with pytest.raises(Denied):
                checked.admit(bytes(damaged))


def test_clocks_may_differ_a_little(tmp_path):
    moment = now()
    grant = enter(issuer(tmp_path, "rsa"), signed(exp=moment - 5, nbf=moment + 20))
    assert not grant.expired and grant.expires == moment + 25
    assert cause(issuer(tmp_path, "rsa", leeway=1.0), signed(exp=now() - 5)) == "jwt-expired"


def test_claims_say_what_a_token_is_for(tmp_path):
    claims = {"name": "email", "scope": "roles", "quotas": "https://example.org/weft"}
    checked = issuer(tmp_path, "rsa", claims=claims, prefix="gpu.")
    given = {"email": "bob@example.org", "roles": ["gpu.programs:f", "admin", "weft:admin", "gpu.metrics"]}
    grant = enter(
        checked, signed(sub="7", **given, **{"https://example.org/weft": {"sessions": 2, "nice": 5, "rate": 9}})
    )
    assert (grant.name, grant.scopes) == ("bob@example.org", ("programs:f", "metrics"))
    assert (grant.sessions, grant.nice, grant.rate, grant.connections) == (2, 5, 9, None) and grant.signed
    assert cause(checked, signed(**(given | {"email": None}))) == "jwt-claims"
    assert cause(checked, signed(**(given | {"email": "a\nb"}))) == "jwt-claims"
    usual = issuer(tmp_path, "rsa")
    assert enter(usual, signed(scope="openid weft:sessions admin")).scopes == ("sessions",)
    assert enter(usual, signed(scope=None)).scopes == () and not enter(usual, signed(scope=None)).may("sessions")
    assert len(enter(usual, signed(sub="x" * 100)).name) == 60


def test_a_subject_is_one_whatever_token_it_comes_with(tmp_path):
    checked = issuer(tmp_path, "rsa", "p256")
    first, second = enter(checked, signed()), enter(checked, signed("p256", exp=now() + 900, aud=["x", AUDIENCE]))
    assert first.id == second.id != enter(checked, signed(sub="bob")).id
    gate = Gate(None, issuer=checked)
    assert gate.holds(first) and not gate.holds(first._replace(expires=now() - 1.0))
    assert not Gate(TOKEN).holds(first)


def test_only_what_a_stranger_can_send_counts_as_a_guess(tmp_path):
    for case, (expected, make) in REFUSED.items():
        gate = Gate(TOKEN, guesses=1, issuer=issuer(tmp_path, "rsa", "p256"))
        with pytest.raises(Denied):
            asyncio.run(gate.enter(make().encode(), "here"))
        strange = not expected.endswith(("expired", "early", "claims"))
        assert gate.guesses.test(gate.allowed, "here") != strange, case


# keys -----------------------------------------------------------------------------------------------------------------


def weak():
    made = RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 1024).public_key(), as_dict=True)
    return made | {"kid": "weak"}


USELESS = {
    "is not for signatures": lambda: public("other", use="enc"),
    "is secret": lambda: public("other", d="AQAB"),
    "is secret, and": lambda: {"kty": "oct", "k": "c2VjcmV0", "kid": "shared"},
    "is for none of": lambda: public("other", alg="HS256"),
    "has 1024 bits": weak,
    "is damaged": lambda: {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"},
    "without a name": lambda: 3,
}


@pytest.mark.parametrize("words", USELESS)
def test_keys_that_are_of_no_use(tmp_path, words):
    body = json.dumps({"keys": [USELESS[words](), public("rsa")]}).encode()
    checked = issuer(tmp_path, body=body)
    assert enter(checked, signed()).name == "alice"
    assert len(checked.keys.useless) == 1 and words in checked.keys.useless[0]
    issuer(tmp_path, body=json.dumps({"keys": [USELESS[words]()]}).encode())
    with pytest.raises(KeysError, match="no key for signatures"):
        checked.keys.read()


def test_a_key_is_for_the_algorithm_that_it_names(tmp_path):
    checked = issuer(tmp_path, body=json.dumps({"keys": [public("rsa", alg="PS256")]}).encode())
    assert enter(checked, signed(algorithm="PS256")).name == "alice"
    assert cause(checked, signed(algorithm="RS256")) == "jwt-algorithm"


def test_a_key_that_is_alone_needs_no_name(tmp_path):
    assert enter(issuer(tmp_path, "rsa"), signed(kid=None)).name == "alice"


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"keys": 1}', b"[" * 100_000, b"\xff"])
def test_a_damaged_file_of_keys_lets_nobody_in(tmp_path, body, monkeypatch):
    monkeypatch.setattr(module, "FILE_SECONDS", 0)
    checked = issuer(tmp_path, "rsa")
    assert enter(checked, signed()).name == "alice"
    (tmp_path / "keys.json").write_bytes(body)
    assert cause(checked, signed()) == "jwt-keys"
    (tmp_path / "keys.json").write_bytes(key_set("p256"))
    assert enter(checked, signed("p256")).name == "alice"
    assert cause(checked, signed()) == "jwt-key"
    os.unlink(tmp_path / "keys.json")
    assert cause(checked, signed("p256")) == "jwt-keys"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(TLS / "certificate.pem"))
    with publishing(key_set("rsa")) as made:
        yield made


def at(server, refresh):
    return Issuer(ISSUER, [AUDIENCE], Keys(server.url, refresh))


def test_keys_are_fetched_for_names_that_are_unknown_and_not_too_often(server):
    checked = at(server, 60)
    for _ in range(3):
        assert enter(checked, signed()).name == "alice"
        assert cause(checked, signed("other")) == "jwt-key"
    assert server.asked == 1
    server.body = key_set("rsa", "other")  # the issuer has a new key
    assert cause(checked, signed("other")) == "jwt-key" and server.asked == 1
    checked.keys.tried_at -= 60
    assert enter(checked, signed("other")).name == "alice" and server.asked == 2


def test_many_at_once_fetch_once(server):
    checked = at(server, 60)
    gate = Gate(TOKEN, issuer=checked)

    async def many():
        return await asyncio.gather(*(gate.enter(signed(sub=str(i)).encode(), "here") for i in range(8)))

    assert [g.name for g in asyncio.run(many())] == [str(i) for i in range(8)] and server.asked == 1


def test_who_has_guessed_too_often_fetches_nothing(server):
    gate = Gate(TOKEN, guesses=1, issuer=at(server, 0))
    for _ in range(3):
        with pytest.raises(Denied) as e:
            asyncio.run(gate.enter(signed("other").encode(), "here"))
    assert e.value.cause == "guesses" and server.asked == 1


def test_keys_are_fetched_again_when_they_are_old(server):
    checked = at(server, 60)
    enter(checked, signed())
    server.body = key_set("other")  # the first one is withdrawn
    assert enter(checked, signed()).name == "alice"
    checked.keys.tried_at = checked.keys.read_at = time.monotonic() - module.OLD_SECONDS
    assert cause(checked, signed()) == "jwt-key"


FAILURES = {"an error": (500, b""), "no JSON": (200, b"<html>"), "a redirection": (302, b""), "no keys": (200, b"{}")}


@pytest.mark.parametrize("case", FAILURES)
def test_a_server_that_does_not_answer(server, case):
    good, (server.status, server.body) = server.body, FAILURES[case]
    checked = at(server, 60)
    assert cause(checked, signed()) == "jwt-keys" and cause(checked, signed()) == "jwt-keys"
    assert server.asked == 1, "not even then"
    server.status, server.body = 200, good
    checked.keys.tried_at -= 60
    assert enter(checked, signed()).name == "alice" and checked.keys.failure is None
    server.status, server.body = FAILURES[case]  # keys that were read count for a while
    checked.keys.tried_at = checked.keys.read_at = time.monotonic() - module.OLD_SECONDS
    assert enter(checked, signed()).name == "alice" and checked.keys.failure is not None
    checked.keys.tried_at = checked.keys.read_at = time.monotonic() - module.PATIENCE
    assert cause(checked, signed()) == "jwt-keys"


def test_nobody_listens_at_the_url(server):
    checked = Issuer(ISSUER, [AUDIENCE], Keys("https://localhost:1/keys.json"))
    assert cause(checked, signed()) == "jwt-keys" and "localhost:1" in checked.keys.failure


def test_a_certificate_that_nobody_signed_is_not_believed(monkeypatch):
    with publishing(key_set("rsa")) as server:
        assert cause(at(server, 60), signed()) == "jwt-keys" and server.asked == 0


# hosts ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    folder = tmp_path_factory.mktemp("issued")
    (folder / "models").mkdir()
    made = export.export(weft.jit(lambda x: x + 1))(weft.ShapeDtypeStruct((), np.float32))
    (folder / "models" / "f.weft").write_bytes(made.serialize())
    (folder / "keys.json").write_bytes(key_set("rsa"))
    options = ["--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE, "--jwt-keys", str(folder / "keys.json")]
    options += ["--audit", str(folder / "audit.log"), "--jwt-leeway", "0", "--serve", str(folder / "models")]
    with operated(folder, *options, "--log", "json", "--log-level", "info", "--platform", "cpu") as (running, page):
        running.page, running.audit = page, folder / "audit.log"
        yield running


def refusals(host):
    return [e for e in entries(host.audit) if e["event"] == "refused"]


def test_a_session_and_its_quota(host):
    token = signed(sub="carol", weft={"sessions": 1})
    with weft.remote.connect(host.url, token=token, name="issued") as session:
        session.ping()
        with pytest.raises(LimitError, match="for 1 sessions at one time"):
            weft.remote.connect(host.url, token=signed(sub="carol", exp=now() + 900, weft={"sessions": 1}))
        weft.remote.connect(host.url, token=signed(sub="dave", weft={"sessions": 1})).close()
    (began,) = [e for e in entries(host.audit) if e["event"] == "session-begins" and e.get("client") == "issued"]
    assert began["token_name"] == "carol" and began["token"].startswith("jwt-")
    assert host.connect().close() is None, "the token of the command line counts too"


def test_a_session_ends_with_its_token(host):
    with weft.remote.connect(host.url, token=signed(exp=int(time.time()) + 3)) as session:
        session.ping()
        with pytest.raises(AuthenticationError, match="expired or was revoked"):
            until = time.monotonic() + 15
            while time.monotonic() < until:
                session.ping()
                time.sleep(0.1)


def test_requests_and_administrators(host):
    assert request(host, "f", signed(scope="weft:programs:f")) == (200, {"result": 2.0})
    assert request(host, "f", signed(scope="weft:programs:g"))[0] == 403
    assert request(host, "f", signed())[0] == 403
    assert host.page.ask("/api/host", token=signed(scope="weft:admin"))[0] == 200
    assert host.page.ask("/metrics", token=signed(scope="weft:metrics"))[0] == 200
    assert host.page.ask("/api/host", token=signed())[0] == 403
    assert host.page.ask("/api/host", token=signed("other"))[0] == 401


def test_a_host_tells_its_operator_why_and_nobody_else(host):
    tokens: dict[str, str] = {}
    for expected, make in REFUSED.values():
        tokens.setdefault(expected, make())
    for expected, token in tokens.items():
        with pytest.raises(AuthenticationError) as e:
            weft.remote.connect(host.url, token=token)
        assert str(e.value) == MESSAGE
        found = refusals(host)[-1]
        assert found["cause"] == expected and found["message"] == MESSAGE and found["reason"]
        status, answer = request(host, "f", token)
        assert status == 401 and answer["error"].startswith(MESSAGE) and found["reason"] not in answer["error"]
        assert refusals(host)[-1]["cause"] == expected and refusals(host)[-1]["reason"]
        assert host.page.metrics()[f'weft_host_refusals_total{{cause="{expected}"}}'] >= 2
    known = "size form algorithm key signature issuer audience expired early claims"
    assert set(tokens) == {f"jwt-{word}" for word in known.split()}


def test_no_signed_token_is_written(host):
    token = signed(sub="secretive")
    with weft.remote.connect(host.url, token=token, name=token):
        pass
    request(host, token, token)
    with pytest.raises(AuthenticationError):
        weft.remote.connect(host.url, token=token[:-1], name=token)
    ended = lambda: [
        e for e in entries(host.audit) if e["event"] == "session-ends" and e.get("token_name") == "secretive"
    ]
    assert becomes(ended)
    for text in (host.audit.read_text(), host.log.read_text()):
        assert token[-40:] not in text and token[:25] not in text and "[token]" in text


def test_settings_of_an_issuer(tmp_path):
    wrong = lambda **named: contradictions(Settings(**named))
    file = tmp_path / "keys.json"
    file.write_bytes(key_set("rsa"))
    whole = dict(jwt_issuer=ISSUER, jwt_audience=(AUDIENCE,), jwt_keys=str(file))
    assert wrong(**whole) == [] == wrong(**(whole | {"jwt_keys": "https://issuer.example/keys"}))
    for name in whole:
        (problem,) = wrong(**{k: v for k, v in whole.items() if k != name})
        assert problem.endswith(f"missing: --{name.replace('_', '-')}.")
    assert "Take a URL with https" in wrong(**(whole | {"jwt_keys": "http://issuer.example/keys"}))[0]
    assert "there is no such file" in wrong(**(whole | {"jwt_keys": str(tmp_path)}))[0]
    assert "--jwt-algorithms is empty" in wrong(**whole, jwt_algorithms=())[0]


@pytest.mark.parametrize("algorithm", ["none", "HS256", "RS1", "rs256"])
def test_algorithms_that_nobody_may_choose(algorithm):
    done = command("check", "--jwt-algorithms", algorithm)
    assert done.returncode == 2 and "RS256, RS384, RS512, PS256" in done.stderr and repr(algorithm) in done.stderr
    done = command("check", WEFT_HOST_JWT_ALGORITHMS=f"RS256 {algorithm}")
    assert done.returncode == 2 and "a list of RS256" in done.stderr


def test_the_command_checks_an_issuer(tmp_path, server):
    (tmp_path / "models").mkdir()
    (tmp_path / "host.toml").write_text(
        f'port = 0\nplatform = "reference"\njwt-issuer = "{ISSUER}"\njwt-audience = ["{AUDIENCE}"]\n'
        'jwt-keys = "keys.json"'
    )
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [public("rsa"), public("other", use="enc")]}))
    config = ("--config", str(tmp_path / "host.toml"))
    done = command("check", *config)
    assert done.returncode == 0, done.stdout
    assert "keys.json has 1 keys of https://issuer.example for RS256 or ES256; the key 'other' is not" in done.stdout
    assert f"let in who has one that {ISSUER} has signed for {AUDIENCE}" in done.stdout
    done = command("check", *config, "--jwt-algorithms", "ES384")
    assert done.returncode == 1 and "has 0 keys" in done.stdout
    done = command("check", *config, "--jwt-keys", server.url)
    assert done.returncode == 0 and f"{server.url} has 1 keys" in done.stdout
    server.status = 404
    done = command("check", *config, "--jwt-keys", server.url)
    assert done.returncode == 1 and "HTTP Error 404" in done.stdout
