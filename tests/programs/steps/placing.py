"""Placement of values, and programs over the devices of a mesh, which has one device here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .family import Family

if TYPE_CHECKING:
    from ..maker import Maker


def placed(m: Maker) -> None:
    v = m.value("fiub")
    ways = ["weft.device_put({0}, device())", "in_memory({0})"]
    if v.type.rank:
        ways += ["weft.device_put({0}, by_rows())", "lax.with_sharding_constraint({0}, by_rows())", "resharded({0})"]
    ways += [f"laid_out({{0}}, {m.rng.sample(range(v.type.rank), v.type.rank)})", "alike({0}, {0})"]
    m.emit(m.rng.choice(ways), v, type=v.type, bound=v.bound)


def over_a_mesh(m: Maker) -> None:
    """Communication among the members of a mesh."""
    v = m.within(m.value("ffi", least=1), 4.0)
    n = v.type.shape[0]
    text = m.rng.choice(
        [
            "lax.psum(x, 'i') + x",
            "lax.all_gather(x, 'i', tiled=True) * 1",
            "lax.all_gather(x, 'i', tiled=True, to='invarying') + 0 * x",
            "lax.psum_scatter(x, 'i', tiled=True)",
            "lax.all_to_all(x, 'i', 0, 0, tiled=True)",
            "lax.ppermute(x, 'i', [(0, 0)])",
            "lax.pbroadcast(x, 'i', 0)",
            "x * lax.axis_index('i').astype(x.dtype)",
            "lax.pmax(x, 'i') - lax.pmin(x, 'i')",
        ]
    )
    if "pmax" in text:
        v = m.still(v)
    m.emit(f"over_rows(lambda x: {text})({{0}})", v, type=v.type, bound=v.bound * 2 + n)


def varying(m: Maker) -> None:
    v = m.within(m.value("ffi", least=1), 4.0)
    m.emit(
        "over_rows(lambda x: lax.pcast(x, ('i',), to='varying') * 2, whole=True)({0})",
        v,
        type=v.type,
        bound=2 * v.bound,
    )


def inspected(m: Maker) -> None:
    v = m.value("fiu", least=1)
    m.emit("(weft.debug.inspect_array_sharding({0}, callback=lambda s: None), {0})[1]", v, type=v.type, bound=v.bound)


FAMILIES = {
    "placed": Family(placed, 0.3, portable=False),
    "over_a_mesh": Family(over_a_mesh, 0.3, portable=False),
    "varying": Family(varying, 0.1, portable=False),
    "inspected": Family(inspected, 0.1, portable=False),
}
