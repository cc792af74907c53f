"""The command `weft-host token`."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time

from .access import ADMIN, METRICS, PROGRAMS, SESSIONS, AccessError, Grant, TokenFile


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "weft-host token",
        description="Keeps tokens for `weft-host --tokens FILE`. A running host follows the file.",
    )
    default = os.environ.get("WEFT_HOST_TOKENS")
    file = argparse.ArgumentParser(add_help=False)
    file.add_argument(
        "--file",
        default=default,
        required=default is None,
        help="where the tokens are (default: the environment variable WEFT_HOST_TOKENS)",
    )
    commands = made.add_subparsers(dest="command", required=True)
    new = commands.add_parser("new", parents=[file], help="make a token, and print it, once")
    new.add_argument("name", help="whose it is; shows in logs")
    new.add_argument("--days", type=float, default=None, help="how long it is good (default: until it is revoked)")
    new.add_argument("--sessions", type=int, default=None, help="sessions that it may have at one time")
    new.add_argument(
        "--scope",
        action="append",
        default=None,
        help=f"what it is for: {SESSIONS} (programs of the client's own), {PROGRAMS} (those that the host publishes),"
        f" {PROGRAMS}:NAME (one of them), {ADMIN} (what administrators do) or {METRICS} (to read counts); may be given"
        f" again (default: {SESSIONS} and {PROGRAMS})",
    )
    commands.add_parser("list", parents=[file], help="show whose tokens there are")
    revoke = commands.add_parser("revoke", parents=[file], help="end a token, and the sessions that it opened")
    revoke.add_argument("id", help="its id, or its name")
    return made


def _row(grant: Grant) -> str:
    day = lambda t: time.strftime("%Y-%m-%d", time.gmtime(t))
    until = "until revoked" if grant.expires is None else f"until {day(grant.expires)}{' (expired)' * grant.expired}"
    limit = "" if grant.sessions is None else f", {grant.sessions} sessions"
    return f"{grant.id}  {day(grant.created)}  {until:<28}  {' '.join(grant.scopes)}{limit}  {grant.name}"


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    file = TokenFile(pathlib.Path(options.file))
    try:
        if options.command == "new":
            scopes = tuple(options.scope or (SESSIONS, PROGRAMS))
            print(file.add(options.name, scopes, options.days, options.sessions))
        elif options.command == "list":
            for grant in sorted(file.grants().values(), key=lambda g: g.created):
                print(_row(grant))
        else:
            grant = file.revoke(options.id)
            print(f"revoked {grant.id} {grant.name}")
    except (AccessError, OSError) as e:
        print(f"weft-host token: {e}", file=sys.stderr)
        return 1
    return 0
