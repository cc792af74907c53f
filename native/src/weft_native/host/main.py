"""The command `weft-host`."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import logging
import os
import pathlib
import secrets
import signal
import sys

from weft.base import source_info
from weft.base.config import config
from weft.base.errors import BackendError
from weft.runtime.device import get_backend

from . import check, logs, settings, tokens
from .access import Gate
from .admin import Admin
from .audit import Audit
from .drain import Drain
from .executables import Executables
from .front import Front
from .health import Health
from .inference.device import OwnDevice
from .inference.routes import Inference
from .jobs import Jobs
from .journal import Journal
from .keeper import Keeper
from .notify import Manager
from .options import Options
from .rates import Rates
from .proxies import Proxies
from .settings import Settings, SettingsError
from .tls import context
from .workers import ForkLauncher, Launcher, ThreadLauncher

log = logging.getLogger("weft.host")


def parser(command: str = "weft-host") -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        command,
        description="Runs weft programs of remote clients on this machine's devices."
        if command == "weft-host"
        else "Tries whether a host could start with these settings, and says what it would do. Exit codes: 0, it could;"
        " 1, something that they name is not as it must be; 2, the settings themselves are wrong.",
        epilog="Clients connect with weft.remote.connect('ws://host:port', token='…'). `weft-host token --help` tells"
        " how to keep several tokens, `weft-host check` tries settings. Each option may stand in the file of --config,"
        " by its name, and in the environment, as WEFT_HOST_PORT is for --port.",
    )
    settings.add_to(made)
    return made


def launcher(options: Settings) -> Launcher:
    if options.workers == "thread":
        if options.platform is not None:
            config.update("jax_platforms", options.platform)
        source_info.register_exclusion("")  # no line of this process is a user's
        backend, platform = get_backend(options.platform)
        return ThreadLauncher(list(backend.devices(platform)), options.limits, options.executables is not None)
    keeps = options.executables is not None
    joins = (options.coordinator, options.processes, options.process)
    return ForkLauncher(Options(options.platform, options.limits, options.sandbox, options.log_level, keeps, *joins))


async def run(options: Settings, token: str, audit: Audit | None = None) -> int:
    """Serves until SIGINT or SIGTERM; the exit code."""
    manager = Manager()
    code = 0
    if options.jobs is None:  # there is no place to keep a session
        options = dataclasses.replace(options, limits=dataclasses.replace(options.limits, job_seconds=0.0))

    def broken() -> None:
        nonlocal code
        code = 1
        drain.stop()

    journal = Journal(audit=audit)
    file = None if options.tokens is None else pathlib.Path(options.tokens)
    rates = Rates(options.token_connections, options.token_rate)
    gate = Gate(token, file, options.guesses, check.issuer(options), rates)
    jobs = None if options.jobs is None else Jobs(pathlib.Path(options.jobs), options.job_bytes)
    front = Front(gate, launcher(options), options.workers, options.limits, options.allow_origin, broken, journal, jobs)
    front.name = options.name
    front.compression = options.compression == "deflate"
    if options.executables is not None:
        executables = Executables(pathlib.Path(options.executables), options.executable_bytes)
        front.keeper = Keeper(front.pool, executables, options.limits, journal.metrics, front.charge)
    front.parts.append(Proxies(options.trusted_proxy).add_to)
    health = Health(front)
    front.parts.append(health.add_to)
    inference: Inference | None = None
    own = OwnDevice(gate.inner)
    if options.serve is not None:
        inference = Inference(pathlib.Path(options.serve), gate, own, front.is_allowed, options.batch, journal=journal)
        front.parts.append(inference.add_to)
        inference.closing = lambda: front.draining
    drain = Drain(front, inference, options.drain)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, drain.ask)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, drain.stop)  # by somebody who waits for it
    admin = Admin(front, gate, health, drain, inference)
    secure = None if options.tls_cert is None else context(options.tls_cert, options.tls_key)
    address, port = await front.start(options.host, options.port, secure)
    if inference is not None:
        own.listen(*(await front.listen_here()))
    platform, count = front.pool.devices[0], len(front.pool.devices) // 2
    scheme, place = "ws" if secure is None else "wss", f"[{address}]" if ":" in address else address
    print(
        f"weft-host {scheme}://{place}:{port} ({platform}: {count} device{'s' if count > 1 else ''})",
        flush=True,
    )
    if options.token is None and options.tokens is None and options.jwt_issuer is None:
        print(f"token {token}", flush=True)
    if inference is not None:
        print(f"serving {', '.join(sorted(inference.repository.programs)) or 'no programs yet'}", flush=True)
    if options.admin is not None:
        try:
            print(f"admin {await admin.start(*settings.place(options.admin), secure)}", flush=True)
        except OSError as e:
            await front.stop()
            raise BackendError(f"can't listen on {options.admin}: {e.strerror or e}. Choose another --admin.") from None
    manager.tell(f"READY=1\nSTATUS=serving on {address}:{port}")
    journal.note("host-starts", address=f"{address}:{port}", user=os.getuid())
    await drain.asked.wait()
    manager.tell("STOPPING=1\nSTATUS=about to stop")
    await drain.run()
    await asyncio.to_thread(own.close)
    await front.stop()
    await admin.stop()
    journal.note("host-stops", code=code)
    if code:
        print("weft-host: the process that starts workers has ended. Start the host again.", file=sys.stderr)
    return code


def main(arguments: list[str] | None = None) -> int:
    """Entry point of `weft-host`."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["token"]:
        return tokens.main(arguments[1:])
    checking = arguments[:1] == ["check"]
    given = parser("weft-host check").parse_args(arguments[1:]) if checking else parser().parse_args(arguments)
    try:
        loaded = settings.load(given, os.environ)
        options = loaded.settings
        wrong = check.contradictions(options)
        if wrong:
            raise SettingsError(wrong)
    except SettingsError as e:
        for problem in e.problems:
            print(f"weft-host: {problem}", file=sys.stderr)
        return 2
    token = options.token or secrets.token_urlsafe(24)
    hide = logs.hiding([token])
    logs.begin(options, hide)
    for name in loaded.unknown:
        log.warning("the environment variable %s is no setting of weft-host", name)
    if checking:
        return check.report(loaded, lambda: launcher(options))
    try:
        code = asyncio.run(run(options, token, None if options.audit is None else Audit(options.audit, hide)))
    except BackendError as e:
        print(f"weft-host: {e}", file=sys.stderr)
        return 1
    except OSError as e:
        print(
            f"weft-host: can't listen on {options.host}:{options.port}: {e.strerror or e}. Choose another port with"
            " --port.",
            file=sys.stderr,
        )
        return 1
    logging.shutdown()
    # A computation in a thread of this process can't be stopped, and would keep it alive.
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
