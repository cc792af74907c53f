"""What a request gets that can't be answered."""

from __future__ import annotations

from weft.base.errors import WeftError


class RequestError(WeftError):
    """A request that is not what its program takes, or that can't be answered now. The message says where and why.

    Args:
        status: int, of HTTP.
        message: str.
    """

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status
        self.retry_after: int | None = None  # seconds
