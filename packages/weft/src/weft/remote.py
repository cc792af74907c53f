"""`weft.remote`: arrays and programs on an accelerator host. The package weft-remote brings it; it is loaded at the
first use.

Example:
    session = weft.remote.connect("ws://127.0.0.1:8765", token="…", default=True)
"""

from __future__ import annotations

from importlib.util import find_spec

_NAMES = (
    "connect",
    "connect_all",
    "connect_async",
    "keep",
    "offload",
    "prefetch",
    "prefetch_async",
    "resume",
    "resume_async",
    "Joined",
    "Session",
)


def __getattr__(name: str):
    if name not in _NAMES:
        raise AttributeError(f"module 'weft.remote' has no attribute {name!r}")
    if find_spec("weft_remote") is None:
        raise ImportError("weft.remote needs the package weft-remote, which is not installed: pip install weft-remote")
    import weft_remote

    return getattr(weft_remote, name)


def __dir__():
    return list(_NAMES)
