"""Functions of the host: pure ones, and ones that see what a program does, whose calls are compared too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .family import Family

if TYPE_CHECKING:
    from ..maker import Maker

# Control flow that keeps the order of calls: what is batched has none.
ORDERED = frozenset(("scan", "while", "fori", "cond", "switch", "jit"))
# Which may be batched without calls that no element makes.
EACH = frozenset(("scan", "map", "vmap", "jit"))


def callback(m: Maker) -> None:
    v = m.still(m.value("ffiubc"))
    if v.type.dtype == "bfloat16":
        return
    text = m.rng.choice(
        [
            "np.flip(x, -1) if x.ndim else x",
            "np.copy(x)",
            "np.where(x != 0, x, x[..., :1] if x.ndim and x.shape[-1] else x)",
        ]
    )
    method = m.rng.choice(["sequential", "broadcast_all", "expand_dims"])
    m.emit(
        f"weft.pure_callback(lambda x: (lambda x: {text})(np.asarray(x)).astype({v.type.dtype!r}), "
        f"weft.ShapeDtypeStruct({v.type.shape}, {v.type.dtype!r}), {{0}}, vmap_method={method!r})",
        v,
        type=v.type,
        bound=v.bound,
    )


def ordered(m: Maker) -> bool:
    return not m.world.form and ORDERED.issuperset(m.path)


def asks(m: Maker) -> bool:
    """Whether it is clear how often the host is asked: not where a function runs again, or in all branches at once."""
    return ordered(m) or EACH.issuperset(m.path)


def seen(m: Maker) -> None:
    """The host is told of a value."""
    v = m.value("fiub")
    more = ", ordered=True" if ordered(m) and m.chance(0.6) else ""
    m.emit(f"(weft.debug.callback(seen, {{0}}{more}), {{0}})[1]", v, type=v.type, bound=v.bound)


def asked(m: Maker) -> None:
    """The host is asked for a value; in order where it counts the questions."""
    v = m.still(m.value("fiu"))
    if v.type.dtype == "bfloat16" or not asks(m):
        return
    fun, more, bound = ("counted", ", ordered=True", v.bound + 4) if ordered(m) else ("noted", "", v.bound)
    m.emit(
        f"asked({fun}, weft.ShapeDtypeStruct({v.type.shape}, {v.type.dtype!r}), {{0}}{more})",
        v,
        type=v.type,
        bound=bound,
    )


FAMILIES = {
    "callback": Family(callback, 0.5, portable=False),
    "seen": Family(seen, 0.4, portable=False),
    "asked": Family(asked, 0.3, portable=False),
}
