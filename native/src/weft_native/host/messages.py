"""The texts of errors for clients, which must not reveal where files are on the host; and of clients' words in
the log.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from weft.base.annotations import override
from weft.serialization.binary import printable

LONGEST = 10_000  # characters; a failure is kept as long as a client holds a handle to it

# An error of a callback or of XLA may hold the frames of Python, and their source.
_FRAMES = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*(?:\n|$))*")
_QUOTED = re.compile(r"""(?P<quote>["'])(?P<path>(?:/|[A-Za-z]:[\\/])[^"'\n]*)(?P=quote)""")
_BARE = re.compile(r"""(?<![\w./\\:-])(?P<path>(?:/|[A-Za-z]:[\\/])[^\s"'<>|()\[\]{},;:*?]+)""")


class LogFormatter(logging.Formatter):
    """Log entries that contain words of clients. No words can pass for another entry, since all lines but the first are
    indented, or for a command to a terminal.
    """

    @override
    def format(self, record: logging.LogRecord) -> str:
        return "\n    ".join([printable(line) for line in super().format(record).split("\n")])


def public_text(error: BaseException, said: Callable[[str], bool]) -> str:
    """An error's message for a client: without frames of Python, and of a path the last part only, unless the client
    has `said` it itself.
    """

    def shown(path: str) -> str:
        return path if said(path) else re.split(r"[/\\]", path.rstrip("/\\"))[-1]

    text = _FRAMES.sub("", str(error))
    text = _QUOTED.sub(lambda m: m["quote"] + shown(m["path"]) + m["quote"], text)
    text = _BARE.sub(lambda m: shown(m["path"]), text)
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"
