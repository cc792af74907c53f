"""weft on a remote host: `connect` gives the platform "remote", whose arrays live on the host."""
from .backend import connect as connect, connect_async as connect_async, prefetch as prefetch, prefetch_async as prefetch_async
from .session import Session as Session

__version__ = "0.1.0"
__all__ = ["connect", "connect_async", "prefetch", "prefetch_async", "Session"]
