"""The handles of arrays on a host, and how their bytes are asked for."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from weft.runtime.array import BufferArray

from . import protocol as p
from .session import Reply, Session

SIBLINGS, SIBLINGS_BYTES = 1000, 1 << 20  # arrays that are fetched beside another one, and their bytes in all


class Coming(NamedTuple):
    """Where the bytes of an array are, in a reply of several."""

    reply: Reply
    start: int
    size: int  # of the reply


class Siblings:
    """The small results that the calls of a program have given at one place. A loop's losses are often read one by one
    after it: with the second of them, all others are fetched that are still there.
    """

    __slots__ = ("arrays", "was_read")

    def __init__(self) -> None:
        self.arrays: deque[weakref.ref[BufferArray]] = deque(maxlen=SIBLINGS)
        self.was_read = False

    def fetch(self, handle: Handle) -> Coming:
        """Requests the bytes of one of them."""
        if not self.was_read:
            self.was_read = True
            return ask_for(handle)
        session, asked = handle.session, Coming(Reply(), 0, handle.nbytes)
        there = [x for x in [ref() for ref in self.arrays] if x is not None]
        self.arrays.clear()

        def choose() -> Iterator[tuple[Callable[[int], p.Fetch], Reply]]:
            size = 0
            for x in there:
                other = x.handle  # None if it was deleted
                if other is None or other is handle or other.fetched or other.coming is not None:
                    continue
                size += other.nbytes
                if size > SIBLINGS_BYTES:
                    break
                other.coming = Coming(Reply(), 0, other.nbytes)
                yield fetching(other), other.coming.reply
            yield fetching(handle), asked.reply  # once it is there, the others are

        session.request_each(choose)
        return asked


class Handle:
    """The handle of an array on a host."""

    __slots__ = ("session", "number", "nbytes", "ready", "coming", "fetched", "rescue", "siblings")

    def __init__(self, session: Session, number: int, nbytes: int):
        self.session, self.number, self.nbytes = session, number, nbytes
        self.ready: Reply | None = None
        self.coming: Coming | None = None  # the bytes, unasked
        self.siblings: Siblings | None = None
        self.fetched = False
        # gives the bytes if the host can't, for this reason
        self.rescue: Callable[[Exception], memoryview] | None = None


def fetch(handle: Handle) -> Coming:
    """Requests the bytes of an array, unless they come by themselves."""
    coming, handle.coming = handle.coming, None
    if coming is None or coming.reply.error is not None:  # nobody awaited it when a program was stopped
        return ask_for(handle) if handle.siblings is None else handle.siblings.fetch(handle)
    return coming


def ask_for(handle: Handle) -> Coming:
    return Coming(handle.session.request(fetching(handle)), 0, handle.nbytes)


def fetching(handle: Handle) -> Callable[[int], p.Fetch]:
    return lambda op: p.Fetch(op, handle.number)
