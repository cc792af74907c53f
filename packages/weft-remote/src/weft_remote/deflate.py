"""Compression of messages (the websocket extension permessage-deflate), of those that it makes shorter."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from websockets.exceptions import InvalidHandshake
from websockets.extensions import Extension
from websockets.extensions.permessage_deflate import (
    ClientPerMessageDeflateFactory,
    PerMessageDeflate,
    ServerPerMessageDeflateFactory,
)
from websockets.frames import DATA_OPCODES, Frame
from websockets.headers import build_extension, parse_extension
from websockets.typing import ExtensionParameter

from weft.base.annotations import override

LEVEL = {"level": 1}  # higher ones take several times as long for some percent
SHORT = 256  # bytes of a message that is sent as it is
SAMPLE, GAIN = 4096, 0.8  # of a message, these bytes tell whether it gets so much shorter
LONGEST = 64 << 20  # bytes of a message whose compressed form is taken, or sent

Terms = tuple[int, ...]  # what both sides have agreed on, as the arguments of `Deflate`


class Deflate(PerMessageDeflate):
    """One side of a connection: whether each of both keeps no context between messages, and the sizes of the windows,
    as powers of two; the other side's first.
    """

    def __init__(self, remote_fresh: int, fresh: int, remote_bits: int, bits: int):
        super().__init__(bool(remote_fresh), bool(fresh), remote_bits, bits, dict(LEVEL))

    @override
    def decode(self, frame: Frame, *, max_size: int | None = None) -> Frame:
        return super().decode(frame, max_size=LONGEST if max_size is None else min(max_size, LONGEST))

    @override
    def encode(self, frame: Frame) -> Frame:
        worth = frame.opcode in DATA_OPCODES and frame.fin and is_worth(frame.data)
        return super().encode(frame) if worth else frame


def is_worth(data: Any) -> bool:
    """Whether a message gets shorter by enough: most arrays of floats do not."""
    size = len(data)
    if not SHORT <= size <= LONGEST:
        return False
    at = max(0, size // 2 - SAMPLE // 2)
    sample = bytes(memoryview(data)[at : at + SAMPLE])
    return len(zlib.compress(sample, 1)) <= GAIN * len(sample)


class Offer(ClientPerMessageDeflateFactory):
    """What a client offers."""

    @override
    def process_response_params(
        self, params: Sequence[ExtensionParameter], accepted_extensions: Sequence[Extension]
    ) -> PerMessageDeflate:
        return Deflate(*_terms(super().process_response_params(params, accepted_extensions)))


def answer(headers: Iterable[str]) -> tuple[str, Terms] | None:
    """What a host answers to the extensions that a client offers, and the terms; None if compression is not among
    them.
    """
    # Each message stands for itself: those that wait are read by one process, the others by another.
    factory = ServerPerMessageDeflateFactory(server_no_context_takeover=True, client_no_context_takeover=True)
    try:
        offers = [offer for header in headers for offer in parse_extension(header)]
    except InvalidHandshake:
        return None
    for name, params in offers:
        if name == factory.name:
            try:
                agreed, made = factory.process_request_params(params, [])
            except InvalidHandshake:
                continue
            return build_extension([(name, agreed)]), _terms(made)
    return None


def _terms(made: PerMessageDeflate) -> Terms:
    return (
        int(made.remote_no_context_takeover),
        int(made.local_no_context_takeover),
        made.remote_max_window_bits,
        made.local_max_window_bits,
    )
