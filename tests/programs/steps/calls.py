"""Functions that are called by primitives of their own: composites, rules of batching, exports, linear functions;
and what only orders or checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..types import Type
from .control import CARRIED, bounds, operands, results, row, types
from .family import Family

if TYPE_CHECKING:
    from ..maker import Maker


def composite(m: Maker) -> None:
    """Or a function whose partition is its author's: both have neither derivatives nor a batched form of their own."""
    v = m.still(m.within(m.value("f"), 4.0))
    inner = m.rng.choice(
        ("lax.composite(lambda x: lax.sin(x) + 1.0, 'my.wave')", "divided(lambda x: lax.sin(x) + 1.0)")
    )
    m.emit(f"weft.custom_batching.sequential_vmap({inner})({{0}})", v, type=v.type, bound=2.0)


def custom_vmap(m: Maker) -> None:
    """A function with a rule for its batched form, which runs another one."""
    values, out = operands(m, m.rng.randint(1, 2)), results(m)
    if "reverse" in m.taken or "linearize" in m.path:  # the rule says nothing of what is linear
        values = [m.still(v) for v in values]
    body = m.block(types(values), out, gives=(len(out),), outer=(), plain=True, most=1)
    text = f"with_batching({{f0}})({', '.join(f'{{{k}}}' for k in range(len(values)))})"
    m.emit_all(text, *values, types=out, bounds=bounds(out), blocks=[body])


def exported(m: Maker) -> None:
    """A program that is written into bytes and read again."""
    values = [m.still(v) for v in operands(m, m.rng.randint(1, 2), "fffiub")]
    out, m.control = [values[0].type], "export"
    body = m.block(types(values), out, gives=(1,), outer=(), plain=True, most=1)
    m.emit_all(f"exported({{f0}}, {row(0, len(values))})", *values, types=out, bounds=[CARRIED], blocks=[body])
    m.control = ""


def linear_call(m: Maker) -> None:
    v = m.within(m.value("f"), 4.0)
    p = m.like(v, v.type.of("bool"))
    half = "lambda p, x: lax.select(p, x * 2.0, x * 0.5)"
    m.emit(f"weft.custom_derivatives.linear_call({half}, {half}, {{0}}, {{1}})", p, v, type=v.type, bound=2 * v.bound)


def sunk(m: Maker) -> None:
    """What must not be left out, is checked, or comes after something else."""
    v = m.value("fiub")
    way = m.rng.choice(
        ["(lax.dce_sink({0}), {0})[1]", "(lax.after_all(lax.create_token({0})), {0})[1]", "checked({0})", "worded({0})"]
    )
    m.emit(way, v, type=v.type, bound=v.bound)


def dense(m: Maker) -> None:
    v = m.within(m.value("f"), 4.0)
    m.emit("todense({0} * 2.0)", v, type=v.type, bound=2 * v.bound)


def solution_with_pivots(m: Maker) -> None:
    """Steps of LAPACK's that libraries call by themselves."""
    dtype = m.palette.float if m.palette.float in ("float32", "float64") else "float32"
    rows, columns = m.rng.choice(((4, 3), (3, 3), (2, 4), (1, 1), (5, 2)))
    v = m.still(m.within(m.as_type(m.value("f"), Type(dtype, (2, rows, columns))), 2.0))
    text = (
        f"({{0}} + jnp.eye({rows}, {columns}, dtype={dtype!r}) * jnp.asarray({[8.0 + 8 * k for k in range(columns)]},"
        f" {dtype!r}))"
    )
    if m.chance(0.5):
        m.emit(f"householder{text}[1]", v, type=Type(dtype, (2, min(rows, columns))), bound=4.0)
    else:
        m.emit(f"householder({text}, swap=True)[2]", v, type=Type("int32", (2, columns)))


FAMILIES = {
    "composite": Family(composite, 0.15, portable=False),
    "custom_vmap": Family(custom_vmap, 0.4),
    "exported": Family(exported, 0.15),
    "linear_call": Family(linear_call, 0.2),
    "sunk": Family(sunk, 0.3, portable=False),
    "dense": Family(dense, 0.15, portable=False),
    "solution_with_pivots": Family(solution_with_pivots, 0.1, finite=True),
}
