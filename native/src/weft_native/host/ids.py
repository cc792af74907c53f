"""What sessions are called. Of several hosts behind one proxy, each begins its sessions' ids with its own name, so that
the proxy sees in the path of a connection which host has the session.
"""

from __future__ import annotations

import re
import secrets

HOST_NAME = re.compile(r"[A-Za-z0-9-]{1,63}")
ID = re.compile(rf"({HOST_NAME.pattern}_)?[0-9a-f]{{16}}")


def new_id(host: str | None) -> str:
    """An id that no session has had, of a host with this name."""
    return ("" if host is None else f"{host}_") + secrets.token_hex(8)
