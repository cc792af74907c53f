"""The command `weft-host`."""

from __future__ import annotations

import argparse
import asyncio
import ipaddress
import logging
import os
import secrets
import signal
import sys

from weft.base import source_info
from weft.base.config import config
from weft.base.errors import BackendError
from weft.runtime.backend import Device
from weft.runtime.device import get_backend

from . import limits
from .messages import LogFormatter
from .server import Host


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "weft-host",
        description="Runs weft programs of remote clients on this machine's devices.",
        epilog="Clients connect with weft.remote.connect('ws://host:port', token='…').",
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
    made.add_argument("--platform", default=None, help="cpu, cuda, tpu or reference (default: the best there is)")
    made.add_argument(
        "--allow-remote",
        action="store_true",
        help="listen on an interface that other machines reach; put TLS in front of it",
    )
    made.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="let pages of this origin connect, such as https://example.org; pages on loopback always may",
    )
    made.add_argument("--log-level", default="warning", choices=("debug", "info", "warning", "error"))
    limits.add_arguments(made)
    return made


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def run(options: argparse.Namespace, devices: list[Device], token: str) -> None:
    """Serves until SIGINT or SIGTERM."""
    host = Host(devices, token, limits.from_arguments(options), tuple(options.allow_origin))
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server = await host.serve(options.host, options.port)
    watcher = asyncio.ensure_future(host.watch())
    address, port = server.sockets[0].getsockname()[:2]
    print(
        f"weft-host ws://{f'[{address}]' if ':' in address else address}:{port} ({devices[0].platform}: {len(devices)}"
        f" device{'s' if len(devices) > 1 else ''})",
        flush=True,
    )
    if options.token is None:
        print(f"token {token}", flush=True)
    await stop.wait()
    watcher.cancel()
    await host.stop(server)


def main(arguments: list[str] | None = None) -> int:
    """Entry point of `weft-host`."""
    options = parser().parse_args(arguments)
    handler = logging.StreamHandler()
    handler.setFormatter(LogFormatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    logging.basicConfig(level=options.log_level.upper(), handlers=[handler])
    logging.getLogger("websockets").setLevel(logging.ERROR)  # refused handshakes are logged here, with the reason
    if not _is_loopback(options.host) and not options.allow_remote:
        print(
            f"weft-host: {options.host} is not this machine alone. Anyone who learns the token could run programs here;"
            " add --allow-remote if that is what you want.",
            file=sys.stderr,
        )
        return 2
    if options.token == "":
        print("weft-host: the token is empty. Leave --token out to have one made.", file=sys.stderr)
        return 2
    if options.platform is not None:
        config.update("jax_platforms", options.platform)
    source_info.register_exclusion("")  # no line of this process is a user's
    try:
        backend, platform = get_backend(options.platform)
        devices = list(backend.devices(platform))
    except BackendError as e:
        print(f"weft-host: {e}", file=sys.stderr)
        return 1
    try:
        asyncio.run(run(options, devices, options.token or secrets.token_urlsafe(24)))
    except OSError as e:
        print(
            f"weft-host: can't listen on {options.host}:{options.port}: {e.strerror or e}. Choose another port with"
            " --port.",
            file=sys.stderr,
        )
        return 1
    logging.shutdown()
    # A computation that a client left behind can't be stopped, and would keep the process alive.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
