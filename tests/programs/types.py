"""Types of arrays, and which of them the values of one program have."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import NamedTuple

FEW_BITS = ("int4", "uint4", "int2", "uint2")
SMALL_FLOATS = (
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e3m4",
    "float8_e4m3fnuz",
    "float8_e4m3b11fnuz",
    "float8_e5m2fnuz",
    "float4_e2m1fn",
)
HALVES = ("bfloat16", "float16")
WIDE = ("float64", "int64", "uint64", "complex128")
KINDS = {
    "bool": "b",
    "key<fry>": "k",
    "complex64": "c",
    "complex128": "c",
    **dict.fromkeys(SMALL_FLOATS, "s"),
    **dict.fromkeys(FEW_BITS, "q"),
    **dict.fromkeys(("float32", "float64", *HALVES), "f"),
    **dict.fromkeys(("int8", "int16", "int32", "int64"), "i"),
    **dict.fromkeys(("uint8", "uint16", "uint32", "uint64"), "u"),
}
EPSILON = {
    "bfloat16": 2.0**-7,
    "float16": 2.0**-10,
    "float32": 2.0**-23,
    "complex64": 2.0**-23,
    "float64": 2.0**-52,
    "complex128": 2.0**-52,
    "float8_e4m3fn": 0.125,
    "float8_e5m2": 0.25,
    "float8_e3m4": 0.0625,
    "float8_e4m3fnuz": 0.125,
    "float8_e4m3b11fnuz": 0.125,
    "float8_e5m2fnuz": 0.25,
    "float4_e2m1fn": 0.5,
}
DIFFERENTIABLE = "fc"


class Type(NamedTuple):
    """The type of an array. Kinds are f, c(omplex), i, u, b(ool), q (integers of a few bits), s (floats of eight
    bits and fewer) and k (random keys).
    """

    dtype: str
    shape: tuple[int, ...]

    @property
    def kind(self) -> str:
        return KINDS[self.dtype]

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def of(self, dtype: str) -> Type:
        """The same shape of another dtype."""
        return Type(dtype, self.shape)

    def shaped(self, *shape: int) -> Type:
        """Another shape of the same dtype."""
        return Type(self.dtype, shape)

    def bits(self) -> int:
        """How many bits an integer has."""
        return int(self.dtype.lstrip("uint"))


KEY = Type("key<fry>", ())


def real_of(dtype: str) -> str:
    return {"complex64": "float32", "complex128": "float64"}[dtype]


def complex_of(dtype: str) -> str:
    return {"float32": "complex64", "float64": "complex128"}[dtype]


@dataclass(frozen=True)
class Palette:
    """What the values of a program are made of: a few dtypes and shapes, so that they meet."""

    dtypes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]

    def of_kinds(self, kinds: str) -> list[str]:
        return [d for d in self.dtypes if KINDS[d] in kinds]

    @property
    def float(self) -> str:
        return self.dtypes[0]

    @property
    def int(self) -> str:
        return self.dtypes[1]


SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 33)
SIZE_WEIGHTS = (1, 6, 8, 12, 8, 6, 4, 4, 2, 2, 1, 2, 1)
RANKS, RANK_WEIGHTS = (0, 1, 2, 3, 4, 5, 6), (8, 16, 16, 8, 3, 1, 1)
MOST = 120  # elements of an array of the palette


def palette(rng: random.Random, allowed: frozenset[str]) -> Palette:
    """The first dtype is the float that most values have, the second the integer of counters and indices."""
    pick = lambda names, weights: rng.choices(*zip(*[(n, w) for n, w in zip(names, weights) if n in allowed]))[0]
    main = pick(("float32", "float64", "bfloat16", "float16"), (12, 3, 2, 2))
    index = pick(("int32", "uint32", "int8", "uint8", "int16", "uint16", "int64", "uint64"), (12, 2, 1, 2, 1, 1, 2, 1))
    more = [
        d
        for d, chance in (
            (rng.choice(("int32", "uint8", "int8", "uint32", "int16", "uint16", "int64", "uint64")), 0.6),
            (rng.choice(("float32", "bfloat16", "float16")), 0.25),
            (rng.choice(("complex64", "complex64", "complex128")), 0.3),
            (rng.choice(FEW_BITS), 0.12),
            (rng.choice(SMALL_FLOATS), 0.12),
        )
        if rng.random() < chance
    ]
    dtypes = tuple(dict.fromkeys(d for d in (main, index, "bool", *more) if d in allowed))
    dims = rng.choices(SIZES, SIZE_WEIGHTS, k=rng.randint(2, 4))
    shapes: list[tuple[int, ...]] = []
    while len(shapes) < rng.randint(2, 5):
        shape = tuple(rng.choice(dims) if rng.random() < 0.8 else 1 for _ in range(rng.choices(RANKS, RANK_WEIGHTS)[0]))
        if math.prod(shape) <= MOST and (math.prod(shape) or rng.random() < 0.3):
            shapes.append(shape)
    return Palette(dtypes, tuple(shapes))
