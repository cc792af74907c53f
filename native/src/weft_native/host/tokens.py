"""The command `weft-host token`."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time

from . import settings
from .access import AccessError, TokenFile
from .audit import Audit
from .grants import ADMIN, METRICS, PROGRAMS, SESSIONS, Grant
from .logs import hiding, moment
from .settings import SettingsError


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        "weft-host token",
        description="Keeps tokens for `weft-host --tokens FILE`. A running host follows the file.",
    )
    file = argparse.ArgumentParser(add_help=False)
    file.add_argument("--file", default=None, help="where the tokens are (default: the setting `tokens` of the host)")
    file.add_argument("--config", default=None, metavar="FILE", help="the host's settings (default: WEFT_HOST_CONFIG)")
    file.add_argument(
        "--audit", default=None, metavar="FILE", help="the host's audit log (default: the setting `audit` of the host)"
    )
    commands = made.add_subparsers(dest="command", required=True)
    new = commands.add_parser("new", parents=[file], help="make a token, and print it, once")
    new.add_argument("name", help="whose it is; shows in logs")
    new.add_argument("--days", type=float, default=None, help="how long it is good (default: until it is revoked)")
    new.add_argument("--sessions", type=int, default=None, help="sessions that it may have at one time")
    new.add_argument(
        "--nice",
        type=int,
        default=0,
        metavar="N",
        help="how far its sessions yield the processors to others, from 0 (default) to 19, as `nice` has it",
    )
    new.add_argument(
        "--rate", type=int, metavar="N", help="requests for programs that it may send in a second, as `token-rate`"
    )
    new.add_argument(
        "--connections", type=int, metavar="N", help="connections that it may open in a minute, as `token-connections`"
    )
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
    limit += "" if grant.rate is None else f", {grant.rate} requests/s"
    limit += "" if grant.connections is None else f", {grant.connections} connections/min"
    limit += f", nice {grant.nice}" * (grant.nice != 0)
    return f"{grant.id}  {day(grant.created)}  {until:<28}  {' '.join(grant.scopes)}{limit}  {grant.name}"


def main(arguments: list[str]) -> int:
    made = parser()
    options = made.parse_args(arguments)
    place, audit = options.file, options.audit
    if place is None or audit is None:
        try:
            found = settings.load(argparse.Namespace(config=options.config), os.environ).settings
            place, audit = place or found.tokens, audit or found.audit
        except SettingsError as e:
            if place is None:
                print(f"weft-host token: {e}", file=sys.stderr)
                return 2
            print(f"weft-host token: not in the audit log, since the host's settings are wrong: {e}", file=sys.stderr)
    if place is None:
        made.error("--file is missing: the host's settings name no file of tokens either")
    file = TokenFile(pathlib.Path(place))
    try:
        if options.command == "list":
            for grant in sorted(file.grants().values(), key=lambda g: g.created):
                print(_row(grant))
            return 0
        if options.command == "new":
            scopes = tuple(options.scope or (SESSIONS, PROGRAMS))
            quotas = options.sessions, options.nice, options.rate, options.connections
            text = file.add(options.name, scopes, options.days, *quotas)
            print(text)
            grant = file.grants()[text.split("_")[1]]
        else:
            grant = file.revoke(options.id)
            print(f"revoked {grant.id} {grant.name}")
    except (AccessError, OSError) as e:
        print(f"weft-host token: {e}", file=sys.stderr)
        return 1
    if audit is not None:
        until = None if grant.expires is None else moment(grant.expires)
        Audit(audit, hiding([])).write(
            "token-new" if options.command == "new" else "token-revoked",
            token=grant.id,
            token_name=grant.name,
            scopes=" ".join(grant.scopes),
            until=until,
            user=os.getuid(),
        )
    return 0
