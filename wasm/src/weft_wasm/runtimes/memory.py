"""Addresses in a linear memory, and the error of a full one."""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from weft_wasm.ir.addresses import LIMIT, WIDER
from weft_wasm.ir.nodes import ALIGNMENT, padded

_Self = TypeVar("_Self", bound="Locked")
_P = ParamSpec("_P")
_T = TypeVar("_T")


class Turns:
    """The lock of a device: only its holder may use the device. Its holder may take it again, since a program may call
    functions of the host that run programs.

    Garbage may be collected in any thread, also in one that the holder waits for, such as a driver's. So finalisers
    take no lock: they queue their work by `later`, and the next holder does it first.
    """

    def __init__(self) -> None:
        lock = threading.RLock()
        self.acquire, self.release = lock.acquire, lock.release
        self.left: deque[Callable[[], object]] = deque()
        self.catching_up = False

    def later(self, action: Callable[[_T], object], of: _T) -> None:
        """Lets the next holder call `action(of)`. Never waits."""
        self.left.append(functools.partial(action, of))

    def catch_up(self) -> None:
        """Does the queued work; for the holder. The work may take the lock again, which leaves the rest of the queue to
        this call.
        """
        if not self.catching_up:
            self.catching_up = True
            try:
                while self.left:
                    self.left.popleft()()
            finally:
                self.catching_up = False


class Locked(Protocol):
    @property
    def lock(self) -> Turns: ...


def exclusive(method: Callable[Concatenate[_Self, _P], _T]) -> Callable[Concatenate[_Self, _P], _T]:
    """A method of an object with a `lock`, for one thread at a time: data that Python's threads share is consistent
    before and after a call, not during one.
    """

    @functools.wraps(method)
    def call(self: _Self, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        lock = self.lock
        lock.acquire()
        try:
            if lock.left:
                lock.catch_up()
            return method(self, *args, **kwargs)
        finally:
            lock.release()

    return call


FIRST = 1 << 16  # nothing is allocated below: address 0 is never a buffer


class DeviceMemoryError(MemoryError):
    """The device memory (at most 4 GiB, the range of 32-bit WebAssembly, or 16 GiB with 64-bit addresses) is full.
    Delete arrays, donate arguments, or use a device with more memory.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> with weft.default_device(weft.devices("wasm")[0]):  # doctest: +SKIP
        ...     kept = [jnp.full(1 << 27, float(k)) for k in range(9)]  # half a GiB each
        Traceback (most recent call last):
        weft_wasm.runtimes.memory.DeviceMemoryError: no room for 536870912 bytes: 3758097920 bytes are in use of …
        >>> step = weft.jit(lambda x: x + 1, donate_argnums=0)  # the result takes the memory of x
        >>> x = step(jnp.zeros(1_000_000))
        >>> x.delete()
    """


class Allocator:
    """Addresses of a linear memory by size classes: free lists per class, fresh blocks from the top, `grow(bytes)` when
    needed.

    Classes are multiples of 64 bytes up to 1 KiB, then 8 steps per power of two: at most 1/8 is wasted. The topmost
    block returns to the top when it is freed; a full memory splits larger free blocks.
    """

    def __init__(self, grow: Callable[[int], None], first: int = FIRST, limit: int = LIMIT):
        self.grow, self.top, self.limit = grow, first, limit
        self.free_lists: dict[int, list[int]] = {}
        self.sizes: dict[int, int] = {}
        self.allocated = self.peak = 0

    @staticmethod
    def size_class(nbytes: int) -> int:
        need = padded(nbytes)
        if need <= 1024:
            return need
        step = 1 << ((need - 1).bit_length() - 4)
        return -(-need // step) * step

    def alloc(self, nbytes: int) -> int:
        size = self.size_class(nbytes)
        free = self.free_lists.get(size)
        if free:
            address = free.pop()
        else:
            address = self.take(size, nbytes)
        self.sizes[address] = size
        self.allocated += size
        self.peak = max(self.peak, self.allocated)
        return address

    def take(self, size: int, nbytes: int) -> int:
        """A new block from the top; a larger free one if the top is at the limit."""
        if self.top + size <= self.limit:
            self.grow(self.top + size)
            address, self.top = self.top, self.top + size
            return address
        for larger in sorted(k for k, blocks in self.free_lists.items() if k >= size and blocks):
            address = self.free_lists[larger].pop()
            if larger - size >= ALIGNMENT:
                self.free_lists.setdefault(larger - size, []).append(address + size)
            return address
        raise DeviceMemoryError(
            f"no room for {nbytes} bytes: {self.allocated} bytes are in use of the {self.limit} that WebAssembly can"
            " address. Delete arrays that are no longer needed, donate arguments to"
            f" jit{', or ' + WIDER if self.limit <= LIMIT else ''}."
        )

    def free(self, address: int) -> None:
        size = self.sizes.pop(address, None)
        if size is None:
            raise ValueError(f"address {address} is not allocated (freed twice?)")
        self.allocated -= size
        if address + size == self.top:
            self.top = address
        else:
            self.free_lists.setdefault(size, []).append(address)
