"""Random bits and what is made of them: the same on every backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tree import Value
from ..types import KEY, MOST, Type
from .family import Family

if TYPE_CHECKING:
    from ..maker import Maker


def key(m: Maker) -> tuple[str, tuple[Value, ...]]:
    """A key of a constant, or of a number that the program computes, on which it depends; or one that there is."""
    found = m.maybe("k")
    if found is not None and m.chance(0.7):
        return m.rng.choice(
            ["{0}", "weft.random.split({0})[1]", "weft.random.fold_in({0}, 3)", "weft.random.clone({0})"]
        ), (found,)
    algorithm = ", impl='rbg'" if m.chance(0.1) else ""
    seed = m.rng.randrange(1000)
    if m.chance(0.5):
        return f"weft.random.fold_in(weft.random.key({seed}{algorithm}), {{0}})", (m.as_dtype(m.index(), "int32"),)
    if m.chance(0.3):
        return f"weft.random.split(weft.random.key({seed}{algorithm}), 3)[{m.rng.randrange(3)}]", ()
    return f"weft.random.key({seed}{algorithm})", ()


def draw(m: Maker) -> None:
    text, operands = key(m)
    shape = m.rng.choice(m.palette.shapes)
    float_type = Type(m.palette.float, shape)
    kind = m.rng.choice(
        [
            "bits",
            "uniform",
            "normal",
            "randint",
            "bernoulli",
            "permutation",
            "exponential",
            "choice",
            "categorical",
            "gumbel",
        ]
    )
    floats = {"uniform": 1.0, "normal": 6.0, "exponential": 20.0, "gumbel": 20.0}
    if kind in floats:
        m.emit(
            f"weft.random.{kind}({text}, {shape}, {m.palette.float!r})", *operands, type=float_type, bound=floats[kind]
        )
    elif kind == "bits":
        dtype = m.rng.choice([d for d in ("uint8", "uint16", "uint32") if d in m.world.settings.dtypes])
        m.emit(f"weft.random.bits({text}, {shape}, {dtype!r})", *operands, type=Type(dtype, shape))
    elif kind == "randint":
        m.emit(f"weft.random.randint({text}, {shape}, -5, 9, {'int32'!r})", *operands, type=Type("int32", shape))
    elif kind == "bernoulli":
        m.emit(f"weft.random.bernoulli({text}, 0.4, {shape})", *operands, type=Type("bool", shape))
    elif kind == "permutation":
        n = m.rng.randint(1, 9)
        m.emit(f"weft.random.permutation({text}, {n}).astype('int32')", *operands, type=Type("int32", (n,)))
    elif kind == "choice":
        m.emit(
            f"weft.random.choice({text}, 7, ({m.rng.randint(1, 4)},)).astype('int32')[:1]",
            *operands,
            type=Type("int32", (1,)),
        )
    else:
        m.emit(
            f"weft.random.categorical({text}, jnp.arange(4.0), shape=(3,)).astype('int32')",
            *operands,
            type=Type("int32", (3,)),
        )


def keys(m: Maker) -> None:
    """Keys as values, which loops carry; and the numbers that they are made of."""
    way = m.rng.random()
    if way < 0.5:
        text, operands = key(m)
        m.emit(text.replace(", impl='rbg'", ""), *operands, type=KEY)  # what a loop carries has one type
    elif way < 0.75:
        raw = m.as_type(m.value("iu"), Type("uint32", (2,)))
        m.emit("weft.random.wrap_key_data({0})", raw, type=KEY)
    else:
        text, operands = key(m)
        m.emit(f"weft.random.key_data({text})[:2]", *operands, type=Type("uint32", (2,)))


def words(m: Maker) -> None:
    """What threefry makes of words, and numbers of which only the range is known."""
    if m.chance(0.6):
        v = m.as_dtype(m.value("iu", least=1), "uint32")
        w = m.like(v)
        m.emit("threefry({0}, {1})[0]", v, w, type=v.type)
    else:
        shape = m.rng.choice(m.palette.shapes)
        m.emit(f"(lax.rng_uniform(0.0, 1.0, {shape}) >= 0.0).astype('int32')", type=Type("int32", shape))


def generator(m: Maker) -> None:
    """XLA's own generators, with a state that the program computes."""
    state = m.as_type(m.value("iu"), Type("uint32", (4,)))
    shape = m.rng.choice([s for s in m.palette.shapes if 0 not in s] or [(3,)])
    name = m.rng.choice(["RNG_THREE_FRY", "RNG_PHILOX"])
    m.emit_all(
        f"lax.rng_bit_generator({{0}}, {shape}, 'uint32', lax.RandomAlgorithm.{name})",
        state,
        types=[state.type, Type("uint32", shape)],
    )


def gamma(m: Maker) -> None:
    """Draws that take as many steps as they need."""
    text, operands = key(m)
    v = m.within(m.as_dtype(m.value("f", most=min(MOST, 12)), "float32"), 2.0)
    at = len(operands)
    positive = m.still(m.above(v))
    name = m.rng.choice(["gamma", "loggamma", "beta", "poisson"])
    if name == "poisson":
        text = text.replace(", impl='rbg'", "")  # it is refused
        m.emit(
            f"weft.random.poisson({text}, {{{at}}}).astype('int32')",
            *operands,
            positive,
            type=positive.type.of("int32"),
        )
    elif name == "beta":
        m.emit(
            f"weft.random.beta({text}, {{{at}}}, 2.0, dtype='float32')",
            *operands,
            positive,
            type=positive.type,
            bound=1.0,
        )
    else:
        m.emit(
            f"jnp.clip(weft.random.{name}({text}, {{{at}}}, dtype='float32'), -20.0, 20.0)",
            *operands,
            positive,
            type=positive.type,
            bound=20.0,
        )


FAMILIES = {
    "draw": Family(draw, 1.2),
    "keys": Family(keys, 0.4),
    "words": Family(words, 0.2),
    "generator": Family(generator, 0.2),
    "gamma": Family(gamma, 0.15, finite=True),
}
