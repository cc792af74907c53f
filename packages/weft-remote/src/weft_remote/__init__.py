"""weft on a remote host: `connect` gives the platform "remote", whose arrays live on the host."""

import os as _os

from weft.base import source_info as _source_info

from .backend import connect as connect
from .backend import connect_all as connect_all
from .backend import connect_async as connect_async
from .backend import prefetch as prefetch
from .backend import prefetch_async as prefetch_async
from .joined import Joined as Joined
from .keep import keep as keep
from .keep import resume as resume
from .keep import resume_async as resume_async
from .offloading import offload as offload
from .session import Session as Session

__version__ = "0.1.0"
__all__ = [
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
]

# Frames of this package are hidden: errors name the user's line.
_source_info.register_exclusion(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)
