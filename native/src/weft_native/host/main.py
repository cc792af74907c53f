"""The command `weft-host`."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
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

from . import limits, tokens
from .access import Gate
from .front import Front
from .inference.device import OwnDevice
from .inference.routes import Inference
from .messages import LogFormatter
from .options import Options
from .tls import context
from .workers import ForkLauncher, Launcher, ThreadLauncher


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "weft-host",
        description="Runs weft programs of remote clients on this machine's devices.",
        epilog="Clients connect with weft.remote.connect('ws://host:port', token='…'). `weft-host token --help` tells"
        " how to keep several tokens.",
    )
    made.add_argument(
        "--host", default="127.0.0.1", help="interface to listen on (default 127.0.0.1, this machine only)"
    )
    made.add_argument("--port", type=int, default=8765, help="port to listen on; 0 takes a free one (default 8765)")
    made.add_argument(
        "--token",
        default=os.environ.get("WEFT_HOST_TOKEN"),
        help="what clients must know (default: the environment variable WEFT_HOST_TOKEN, else one is made and printed)",
    )
    made.add_argument(
        "--tokens",
        default=os.environ.get("WEFT_HOST_TOKENS"),
        metavar="FILE",
        help="a file of tokens, as `weft-host token` keeps it (default: the environment variable WEFT_HOST_TOKENS)",
    )
    made.add_argument("--tls-cert", default=None, metavar="FILE", help="speak TLS with this certificate (PEM)")
    made.add_argument("--tls-key", default=None, metavar="FILE", help="the key of the certificate")
    made.add_argument(
        "--guesses",
        type=int,
        default=10,
        metavar="N",
        help="wrong tokens that one address may send in a minute (default 10); behind a proxy all clients have its"
        " address",
    )
    made.add_argument("--platform", default=None, help="cpu, cuda, tpu or reference (default: the best there is)")
    made.add_argument(
        "--allow-remote",
        action="store_true",
        help="listen on an interface that other machines reach; with TLS, here or in a proxy before it",
    )
    made.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let pages of this origin connect, such as https://example.org; pages on loopback always may",
    )
    made.add_argument(
        "--workers",
        default="" if sys.platform == "linux" else "thread",
        choices=("session", "device", "thread"),
        help="what computes: a process for each session (default on the CPU), one for all, where only one can have the"
        " device (default on a GPU or TPU), or a thread of the host (the only one outside Linux, and no isolation)",
    )
    made.add_argument(
        "--no-sandbox",
        action="store_true",
        help="let the processes of sessions read files and use the network; for systems without seccomp or Landlock",
    )
    made.add_argument(
        "--serve",
        default=None,
        metavar="FOLDER",
        help="answer HTTP requests for the exported programs of a folder, NAME.weft or NAME/VERSION.weft, by their"
        " names; /openapi.json describes them",
    )
    made.add_argument(
        "--batch", type=int, default=32, metavar="N", help="requests that one call answers at most (default 32)"
    )
    made.add_argument("--log-level", default="warning", choices=("debug", "info", "warning", "error"))
    limits.add_arguments(made)
    return made


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _launcher(options: argparse.Namespace, granted: limits.Limits) -> Launcher:
    if options.workers == "thread":
        if options.platform is not None:
            config.update("jax_platforms", options.platform)
        source_info.register_exclusion("")  # no line of this process is a user's
        backend, platform = get_backend(options.platform)
        return ThreadLauncher(list(backend.devices(platform)), granted)
    return ForkLauncher(Options(options.platform, granted, not options.no_sandbox, options.log_level))


async def run(options: argparse.Namespace, token: str) -> int:
    """Serves until SIGINT or SIGTERM; the exit code."""
    stop = asyncio.Event()
    code = 0

    def broken() -> None:
        nonlocal code
        code = 1
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    granted = limits.from_arguments(options)
    origins = tuple(options.allow_origin)
    gate = Gate(token, None if options.tokens is None else pathlib.Path(options.tokens), options.guesses)
    front = Front(gate, _launcher(options, granted), options.workers, granted, origins, broken)
    inference: Inference | None = None
    own = OwnDevice(token)
    if options.serve is not None:
        inference = Inference(pathlib.Path(options.serve), gate, own, front.is_allowed, options.batch)
        front.parts.append(inference.add_to)
    secure = None if options.tls_cert is None else context(options.tls_cert, options.tls_key)
    address, port = await front.start(options.host, options.port, secure)
    if inference is not None:
        own.listen(*(await front.listen_here() if secure is not None else (address, port)))
    platform, count = front.pool.devices[0], len(front.pool.devices) // 2
    scheme, place = "ws" if secure is None else "wss", f"[{address}]" if ":" in address else address
    print(
        f"weft-host {scheme}://{place}:{port} ({platform}: {count} device{'s' if count > 1 else ''})",
        flush=True,
    )
    if options.token is None and options.tokens is None:
        print(f"token {token}", flush=True)
    if inference is not None:
        print(f"serving {', '.join(sorted(inference.repository.programs)) or 'no programs yet'}", flush=True)
    await stop.wait()
    await asyncio.to_thread(own.close)
    await front.stop()
    if code:
        print("weft-host: the process that starts workers has ended. Start the host again.", file=sys.stderr)
    return code


def main(arguments: list[str] | None = None) -> int:
    """Entry point of `weft-host`."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["token"]:
        return tokens.main(arguments[1:])
    options = parser().parse_args(arguments)
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    logging.basicConfig(level=options.log_level.upper(), handlers=[handler])
    logging.getLogger("aiohttp").setLevel(logging.ERROR)  # refused handshakes are logged here, with the reason
    if not _is_loopback(options.host) and not options.allow_remote:
        print(
            f"weft-host: {options.host} is not this machine alone. Anyone who learns the token could run programs here;"
            " add --allow-remote if that is what you want.",
            file=sys.stderr,
        )
        return 2
    if options.tokens is not None and not os.path.isfile(options.tokens):
        print(
            f"weft-host: --tokens {options.tokens}: there is no such file. Make a token with `weft-host token new NAME"
            f" --file {options.tokens}`.",
            file=sys.stderr,
        )
        return 2
    if (options.tls_cert is None) != (options.tls_key is None):
        print("weft-host: --tls-cert and --tls-key belong together.", file=sys.stderr)
        return 2
    if options.serve is not None and not os.path.isdir(options.serve):
        print(f"weft-host: --serve {options.serve}: there is no such folder.", file=sys.stderr)
        return 2
    for name in ("batch", "guesses"):
        if getattr(options, name) < 1:
            print(f"weft-host: --{name} is a whole number from 1 on.", file=sys.stderr)
            return 2
    if options.token == "":
        print("weft-host: the token is empty. Leave --token out to have one made.", file=sys.stderr)
        return 2
    try:
        code = asyncio.run(run(options, options.token or secrets.token_urlsafe(24)))
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
