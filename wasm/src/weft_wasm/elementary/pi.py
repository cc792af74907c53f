"""Digits of π."""

from __future__ import annotations

from functools import cache


def pi_parts(f32: bool) -> tuple[float, ...]:
    """π/2 in parts of so few bits that k times a part is exact for the k that occur."""
    bits = (11, 11, 11, 24) if f32 else (33, 33, 53)
    value = pi_bits(256)  # π · 2^256
    parts, scale = [], 2**257  # value / scale = π/2
    for n in bits:
        shift = max(value.bit_length() - n, 0)
        head = value >> shift << shift
        parts.append(head / scale)
        value -= head
    return tuple(parts)


@cache
def pi_bits(bits: int) -> int:
    """floor(π · 2^bits), by Machin's formula."""
    guard = 32
    one = 1 << (bits + guard)

    def arctan_inverse(n: int) -> int:
        total = term = one // n
        k, sign = 3, -1
        while term:
            term //= n * n
            total += sign * (term // k)
            k, sign = k + 2, -sign
        return total

    return 4 * (4 * arctan_inverse(5) - arctan_inverse(239)) >> guard


@cache
def two_over_pi(width: int) -> tuple[int, ...]:
    """A zero word, then the binary digits of 2/π in words of `width` bits, enough for every exponent."""
    count = 8 if width == 32 else 21
    digits = count * width
    value = (1 << (2 * digits + 1)) // pi_bits(digits)
    return (0, *((value >> (digits - width * (k + 1))) & ((1 << width) - 1) for k in range(count)))
