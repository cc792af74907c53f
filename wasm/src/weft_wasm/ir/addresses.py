"""How much memory a program can address, and the word in it that stops programs."""

from __future__ import annotations

from collections.abc import Container

LIMIT, LIMIT_64 = 1 << 32, 1 << 34  # bytes, by the size of addresses
STOP = 8  # the address of the word that a host makes other than 0 to end the program that runs; below all buffers
WIDER = (
    "start with 64-bit addresses (WEFT_WASM_MEMORY64=1, or ?memory64=1 in the address of a page), with which programs"
    " run slower"
)


def most_bytes(features: Container[str]) -> int:
    """Bytes that a device of these features can have at most."""
    return LIMIT_64 if "memory64" in features else LIMIT
