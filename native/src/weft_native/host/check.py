"""Whether a host could start with given settings: what they say of each other, and what the machine says of them."""

from __future__ import annotations

import asyncio
import os
import pathlib
import resource
import socket
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

from weft.base.errors import BackendError

from .access import AccessError, TokenFile
from .executables import unsafe
from .ids import HOST_NAME
from .inference.repository import Repository
from .issuer import Issuer, Keys, KeysError, is_url
from .proxies import Proxies
from .settings import Loaded, Settings, is_loopback, place
from .tls import context
from .workers import Launcher, Pool

OWN_FILES, SESSION_FILES = 100, 6  # descriptors of a host, and of each session: with TLS and a channel to its process


def contradictions(settings: Settings) -> list[str]:
    """What is wrong with settings whatever the machine is like, and files that they name and are not there."""
    wrong = []
    if not is_loopback(settings.host) and not settings.allow_remote:
        wrong.append(
            f"{settings.host} is not this machine alone. Anyone who learns the token could run programs here; add"
            " --allow-remote if that is what you want."
        )
    if settings.admin is not None:
        try:
            if not is_loopback(place(settings.admin)[0]):
                wrong += _remote_admin(settings)
        except ValueError as e:
            wrong.append(f"--admin: {e}.")
    if settings.name is not None and not HOST_NAME.fullmatch(settings.name):
        wrong.append(f"--name {settings.name}: a name has 1 to 63 letters, digits and hyphens, such as host-1.")
    try:
        Proxies(settings.trusted_proxy)
    except ValueError as e:
        wrong.append(f"--trusted-proxy: {e}. Give an address, or a network such as 10.0.0.0/8.")
    if (settings.tls_cert is None) != (settings.tls_key is None):
        wrong.append("--tls-cert and --tls-key belong together.")
    if settings.token == "":
        wrong.append("the token is empty. Leave --token out to have one made.")
    if settings.tokens is not None and not os.path.isfile(settings.tokens):
        wrong.append(
            f"--tokens {settings.tokens}: there is no such file. Make a token with `weft-host token new NAME --file"
            f" {settings.tokens}`."
        )
    wrong += _jwt(settings)
    wrong += _joined(settings)
    if settings.serve is not None and not os.path.isdir(settings.serve):
        wrong.append(f"--serve {settings.serve}: there is no such folder.")
    return wrong


def _joined(settings: Settings) -> list[str]:
    if settings.coordinator is None:
        return [] if settings.processes == 1 else ["--processes: hosts join each other at --coordinator; name it too."]
    wrong = []
    try:
        if not is_loopback(place(settings.coordinator)[0]) and not settings.allow_remote:
            wrong.append(
                f"--coordinator {settings.coordinator}: other machines reach the ports by which hosts join each other,"
                " and no token is asked for there. Add --allow-remote if the network is one that you trust."
            )
    except ValueError as e:
        wrong.append(f"--coordinator: {e}.")
    if settings.processes < 2 or settings.process >= settings.processes:
        wrong.append(
            f"--coordinator: hosts that join each other have --processes, 2 or more, and --process from 0; here are"
            f" {settings.processes} and {settings.process}."
        )
    if settings.workers != "device":
        wrong.append("--coordinator: one process has the devices of a host that joins others; add --workers device.")
    if settings.limits.sessions != 1:
        wrong.append(
            "--coordinator: programs of two sessions could wait for each other on two machines; add --sessions 1."
        )
    for name, value in (("serve", settings.serve), ("jobs", settings.jobs), ("executables", settings.executables)):
        if value is not None:
            wrong.append(f"--{name} is not for hosts that have joined others. Start another host for it.")
    return wrong


def _jwt(settings: Settings) -> list[str]:
    wrong = []
    needed = {"--jwt-issuer": settings.jwt_issuer, "--jwt-audience": settings.jwt_audience}
    needed["--jwt-keys"] = source = settings.jwt_keys
    missing = [name for name, value in needed.items() if not value]
    if 0 < len(missing) < len(needed):
        wrong.append(f"{', '.join(needed)} belong together; missing: {', '.join(missing)}.")
    if source is not None and "://" in source:
        if not is_url(source):
            wrong.append(f"--jwt-keys {source}: whoever is on the way could give other keys. Take a URL with https.")
    elif source is not None and not os.path.isfile(source):
        wrong.append(f"--jwt-keys {source}: there is no such file. The issuer publishes its keys (`jwks_uri`).")
    if not settings.jwt_algorithms:
        wrong.append("--jwt-algorithms is empty. Leave it out for those that most issuers use.")
    return wrong


def issuer(settings: Settings) -> Issuer | None:
    """Who signs tokens for a host with these settings, which do not contradict each other."""
    if settings.jwt_issuer is None or settings.jwt_keys is None:
        return None
    return Issuer(
        settings.jwt_issuer,
        settings.jwt_audience,
        Keys(settings.jwt_keys, settings.jwt_refresh),
        settings.jwt_algorithms,
        settings.jwt_leeway,
        {"name": settings.jwt_name, "scope": settings.jwt_scope, "quotas": settings.jwt_quotas},
        settings.jwt_prefix,
    )


def _remote_admin(settings: Settings) -> list[str]:
    wrong = []
    if not settings.allow_remote:
        wrong.append(
            f"--admin {settings.admin} is not this machine alone; add --allow-remote if that is what you want."
        )
    if settings.tokens is None and settings.jwt_issuer is None:
        wrong.append(
            f"--admin {settings.admin}: administrators from elsewhere need a token of their own. Make one with"
            " `weft-host token new NAME --scope admin --file FILE`, and add --tokens FILE."
        )
    return wrong


class Finding(NamedTuple):
    """One thing that was tried."""

    good: bool
    text: str


def report(loaded: Loaded, launcher: Callable[[], Launcher]) -> int:
    """Prints where settings come from, what was found, and what the host would do; 0 if it could start, else 1."""
    settings, good = loaded.settings, True
    print(f"settings: {loaded.file or 'no file'}")
    for name, source in loaded.sources.items():
        value = "(not shown)" if name == "token" else _shown(settings, name)
        print(f"  {name} = {value}   from {source}")
    for name in loaded.unknown:
        print(f"  the environment variable {name} is no setting, and does nothing")
    for finding in findings(settings, launcher):
        good &= finding.good
        print(f"{'ok    ' if finding.good else 'WRONG '} {finding.text}", flush=True)
    if not good:
        print("The host could not start so.")
        return 1
    for line in plan(settings):
        print(line)
    return 0


def _shown(settings: Settings, name: str) -> object:
    field = name.replace("-", "_")
    found = vars(settings).get(field, vars(settings.limits).get(field))
    return " ".join(found) if isinstance(found, tuple) else found


def findings(settings: Settings, launcher: Callable[[], Launcher]) -> Iterator[Finding]:
    """What the machine says of settings, one by one; the last starts a worker."""
    if settings.tokens is not None:
        yield _tokens(pathlib.Path(settings.tokens))
    if (found := issuer(settings)) is not None:
        yield _issuer(found)
    if settings.tls_cert is not None and settings.tls_key is not None:
        try:
            context(settings.tls_cert, settings.tls_key)
            yield Finding(True, f"{settings.tls_cert} is a certificate, and {settings.tls_key} its key")
        except BackendError as e:
            yield Finding(False, str(e))
    if settings.serve is not None:
        yield _programs(pathlib.Path(settings.serve))
    if settings.jobs is not None:
        yield _folder(pathlib.Path(settings.jobs))
    if settings.executables is not None:
        yield _executables(pathlib.Path(settings.executables))
    if settings.audit is not None:
        yield _writable(pathlib.Path(settings.audit))
    yield _descriptors(settings)
    yield _port(settings.host, settings.port)
    if settings.admin is not None:
        yield _port(*place(settings.admin))
    yield _device(settings, launcher)


def _tokens(path: pathlib.Path) -> Finding:
    try:
        grants = TokenFile(path).grants()
        mode = stat.S_IMODE(path.stat().st_mode)
    except (AccessError, OSError) as e:
        return Finding(False, str(e))
    good = sum(not g.expired for g in grants.values())
    others = ", which others than its owner may read: `chmod 600` it" * bool(mode & 0o077)
    return Finding(True, f"{path} has {good} tokens that are good, and {len(grants) - good} that have expired{others}")


def _programs(folder: pathlib.Path) -> Finding:
    repository = Repository(folder)
    try:
        repository.scan()  # logs which files are no programs
    except OSError as e:
        return Finding(False, f"{folder} can't be read: {e.strerror or e}.")
    names = ", ".join(f"{p.name} {p.version}" for p in repository.all())
    return Finding(True, f"{folder} publishes {names or 'no program yet'}")


def _writable(path: pathlib.Path) -> Finding:
    place = path if path.exists() else path.parent
    if (path.is_file() or not path.exists() and place.is_dir()) and os.access(place, os.W_OK):
        return Finding(True, f"{path} can be written")
    return Finding(False, f"{path} can't be written: its folder must be there, and writable")


def _folder(path: pathlib.Path) -> Finding:
    place = path if path.exists() else path.parent  # the host makes it
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return Finding(True, f"sessions can be kept in {path}")
    return Finding(False, f"{path} can't be written, nor made")


def _executables(path: pathlib.Path) -> Finding:
    place = path if path.exists() else path.parent
    if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
        return Finding(False, f"{path} can't be written, nor made")
    why = unsafe(path) if path.exists() else None
    return Finding(why is None, why or f"compiled programs can be kept in {path}")


def _descriptors(settings: Settings) -> Finding:
    """Whether the process may open as many files as its clients take."""
    limits = settings.limits
    needed = OWN_FILES + SESSION_FILES * limits.sessions + limits.queue
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    text = f"{limits.sessions} sessions and {limits.queue} clients that wait take {needed} open files at most"
    if allowed == resource.RLIM_INFINITY or needed <= allowed:
        return Finding(True, text)
    return Finding(
        False, f"{text}, and {allowed} are allowed: raise that (`ulimit -n`, `LimitNOFILE`), or lower `queue`"
    )


def _port(host: str, port: int) -> Finding:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the host does
            tried.bind(address)
    except OSError as e:
        return Finding(False, f"can't listen on {host}:{port}: {e.strerror or e}. Is a host running already?")
    return Finding(True, f"{host}:{port} is free" if port else f"{host} has free ports")


def _issuer(issuer: Issuer) -> Finding:
    """Reads the keys, as the host does for the first token."""
    keys = issuer.keys
    try:
        keys.read()
    except KeysError as e:
        return Finding(False, str(e))
    fit = sum(any(a in issuer.algorithms for a in key.algorithms) for key in keys.found)
    more = "".join(f"; {why}" for why in keys.useless)
    algorithms = " or ".join(issuer.algorithms)
    return Finding(fit > 0, f"{keys.source} has {fit} keys of {issuer.name} for {algorithms}{more}")


def _device(settings: Settings, launcher: Callable[[], Launcher]) -> Finding:
    """Starts a worker, enclosed as those of sessions are."""

    async def start() -> tuple[str, ...]:
        pool = Pool(launcher(), settings.workers, lambda *_: None, lambda *_: None, lambda: None)
        try:
            await pool.start()
            return pool.devices
        finally:
            await pool.stop()

    try:
        found = asyncio.run(start())
    except BackendError as e:
        return Finding(False, f"no worker can be started: {e}")
    count = len(found) // 2
    return Finding(
        True, f"a worker has started, with {count} device{'s' * (count != 1)}: {found[0]} {found[1]}".rstrip()
    )


def plan(settings: Settings) -> Iterator[str]:
    """What a host does with these settings, in sentences."""
    secure = settings.tls_cert is not None
    yield f"The host would listen on {'wss' if secure else 'ws'}://{settings.host}:{settings.port},"
    ways = [f"the tokens of {settings.tokens}"] if settings.tokens is not None else []
    if settings.jwt_issuer is not None:
        ways.append(f"one that {settings.jwt_issuer} has signed for {' or '.join(settings.jwt_audience)}")
    if settings.token is not None or not ways:
        ways.append("one token" if settings.token is not None else "a token that it makes and prints")
    origins = "".join(f", of {origin}" for origin in settings.allow_origin)
    yield f"  let in who has {' or '.join(ways)}, and pages on loopback{origins},"
    limits = settings.limits
    enclosed = "" if settings.sandbox and settings.workers != "thread" else ", not enclosed"
    waits = f"let {limits.queue} clients more wait" if limits.queue else "let nobody wait"
    yield f"  have {limits.sessions} sessions at most, each of {limits.session_bytes} bytes{enclosed}, and {waits}."
    if settings.admin is not None:
        yield "It would let administrators come to {}:{}.".format(*place(settings.admin))
    if settings.serve is not None:
        yield f"It would answer requests for the programs in {settings.serve}, {settings.batch} in one call at most."
