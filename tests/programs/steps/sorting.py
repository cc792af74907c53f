"""Sorting, also of several operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..types import Type
from .family import Family

if TYPE_CHECKING:
    from ..maker import Maker


def sort(m: Maker) -> None:
    v = m.value("ffiub", least=1)
    axis = m.rng.randrange(v.type.rank)
    m.emit(f"lax.sort({{0}}, dimension={axis})", v, type=v.type, bound=v.bound)


def sort_several(m: Maker) -> None:
    """Stable, or with keys that leave nothing open."""
    v = m.value("ffiu", least=1)
    others = [
        m.like(v, v.type.of(m.rng.choice(m.palette.of_kinds("fiubc" if k else "fiu"))))
        for k in range(m.rng.randint(1, 3))
    ]
    operands = [v, *others]
    keys = m.rng.randint(1, sum(1 for _ in operands))
    while any(o.type.kind == "c" for o in operands[:keys]):
        keys -= 1
    axis = m.rng.randrange(v.type.rank)
    m.emit_all(
        f"lax.sort(({', '.join(f'{{{k}}}' for k in range(len(operands)))}), dimension={axis}, num_keys={keys})",
        *operands,
        types=[o.type for o in operands],
        bounds=[o.bound for o in operands],
    )


def order(m: Maker) -> None:
    v = m.value("fiu", least=1)
    axis = m.rng.randrange(v.type.rank)
    m.emit(f"jnp.argsort({{0}}, {axis}, descending={m.chance(0.3)}).astype('int32')", v, type=v.type.of("int32"))


def largest(m: Maker) -> None:
    v = m.value("fi", least=1)
    n = v.type.shape[-1]
    k = m.rng.randint(0 if m.chance(0.1) else min(1, n), n)
    if k > 8:
        k = 3
    shape = (*v.type.shape[:-1], k)
    m.emit_all(
        f"lax.top_k({{0}}, {k})", v, types=[v.type.shaped(*shape), Type("int32", shape)], bounds=[v.bound, float("inf")]
    )


FAMILIES = {
    "sort": Family(sort, 1),
    "sort_several": Family(sort_several, 1.2),
    "order": Family(order, 0.7),
    "largest": Family(largest, 0.7),
}
