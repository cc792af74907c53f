"""Makes random programs, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from . import types
from .steps import CONTROL, FAMILIES
from .tree import Argument, Block, Program, Step, Value
from .types import DIFFERENTIABLE, KINDS, Palette, Type, real_of

NESTS = (
    "scan",
    "while",
    "fori",
    "cond",
    "switch",
    "map",
    "associative_scan",
    "custom_jvp",
    "custom_vjp",
    "remat",
    "jit",
    "vmap",
)
DERIVATIVES = ("grad", "jvp", "linearize")  # control flow of a kind: functions of functions inside of programs
OTHERS = ("counted", "layers")
FORMS: tuple[tuple[str, ...], ...] = (
    (),
    ("jvp",),
    ("vjp",),
    ("vmap",),
    *[(a, b) for a in ("jvp", "vjp", "vmap") for b in ("jvp", "vjp", "vmap")],
)
CARRIED = 4.0  # no number is larger that enters a loop
DEEPEST = 3
# Programs of seeds from here on have no nest: most of their steps are of one family, and little of what these compute
# is unread. So they meet what is rare among all the steps there are.
THEMED = 1_000_000


@dataclass(frozen=True)
class Settings:
    """What the programs for a platform may hold."""

    dtypes: frozenset[str] = frozenset(KINDS)
    left_out: frozenset[str] = frozenset()  # families of steps
    steps: int = 6  # of the outermost function, at most


@dataclass
class World:
    """What all functions of one program share."""

    rng: random.Random
    settings: Settings
    palette: Palette
    form: tuple[str, ...]
    special: bool = False  # some numbers are infinite or none
    theme: str = ""  # the family that most steps are of
    names: int = 0
    used: set[str] = field(default_factory=set)
    families: set[str] = field(default_factory=set)

    @property
    def of_rules(self) -> frozenset[str]:
        """Derivatives that may be taken of what stands in a rule: it runs as it is when the derivative that it is
        for is another's.
        """
        return frozenset({"forward"} if "jvp" in self.form else ())

    @property
    def x64(self) -> bool:
        """Whether some values have 64 bits."""
        return any(d in types.WIDE for d in self.palette.dtypes)


Result = Type | Callable[["Maker"], Value]


class Maker:
    """Makes one function: adds steps whose operands are what is in its scope."""

    def __init__(
        self,
        world: World,
        outer: Sequence[Value] = (),
        path: tuple[str, ...] = (),
        nest: tuple[str, ...] = (),
        taken: frozenset[str] = frozenset(),
    ):
        self.world, self.rng, self.palette = world, world.rng, world.palette
        self.outer, self.own, self.steps = list(outer), list[Value](), list[Step]()
        self.path, self.nest = path, nest  # the kinds of control flow around it, and those to be put inside
        self.taken = (
            taken  # derivatives that may be taken of what is made: "reverse", and "forward" where that may be the first
        )
        self.control = ""  # the kind of control flow that is being made

    # values -----------------------------------------------------------------------------------------------------------

    def fresh(self, type: Type, bound: float = float("inf")) -> Value:
        self.world.names += 1
        return Value(f"v{self.world.names}", type, bound)

    def emit(
        self, text: str, *operands: Value, type: Type, bound: float = float("inf"), blocks: Sequence[Block] = ()
    ) -> Value:
        return self.add(text, operands, [self.fresh(type, bound)], blocks, many=False)[0]

    def emit_all(
        self,
        text: str,
        *operands: Value,
        types: Sequence[Type],
        bounds: Sequence[float] = (),
        blocks: Sequence[Block] = (),
    ) -> list[Value]:
        """A step whose expression is a tuple."""
        return self.add(
            text,
            operands,
            [self.fresh(t, b) for t, b in zip(types, bounds or [float("inf")] * len(types), strict=True)],
            blocks,
            many=True,
        )

    def add(
        self, text: str, operands: tuple[Value, ...], results: list[Value], blocks: Sequence[Block], many: bool
    ) -> list[Value]:
        self.world.used.update(v.name for v in operands)
        self.steps.append(Step(tuple(results), text, operands, tuple(blocks), self.control if blocks else "", many))
        self.own += results
        return results

    @property
    def scope(self) -> list[Value]:
        return [*self.outer, *self.own]

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def maybe(self, kinds: str = "f", where: Callable[[Type], bool] = lambda t: True) -> Value | None:
        """A value of one of these kinds that is there, rather one of the last."""
        found = [v for v in self.scope if v.type.kind in kinds and where(v.type)]
        if not found:
            return None
        return self.rng.choice(found[-4:] if self.chance(0.6) else found)

    def value(self, kinds: str = "f", least: int = 0, most: int = types.MOST) -> Value:
        """A value of one of these kinds with a rank of at least `least` and no more elements than `most`; made of
        others where there is none.
        """
        fits = lambda t: t.rank >= least and t.size <= most
        found = self.maybe(kinds, fits)
        if found is not None and self.chance(0.9):
            return found
        dtype = self.rng.choice(self.palette.of_kinds(kinds) or [self.of_kind(kinds)])
        shapes = [s for s in self.palette.shapes if fits(Type(dtype, s))]
        shape = self.rng.choice(shapes) if shapes else (self.rng.randint(1, 3),) * least
        return self.as_type(self.rng.choice(self.scope), Type(dtype, shape))

    def of_kind(self, kinds: str) -> str:
        """A dtype of one of these kinds, where the palette has none."""
        usual = {
            "f": "float32",
            "i": "int32",
            "u": "uint8",
            "b": "bool",
            "c": "complex64",
            "q": "int4",
            "s": "float8_e5m2",
        }
        return usual[self.rng.choice([k for k in kinds if usual[k] in self.world.settings.dtypes])]

    def like(self, v: Value, type: Type | None = None) -> Value:
        """A value of the type of another one, rather not the same."""
        type = type or v.type
        found = [w for w in self.scope if w.type == type and w is not v]
        if found and self.chance(0.8):
            return self.rng.choice(found[-4:])
        return self.as_type(self.rng.choice([w for w in self.scope if w.type.kind != "k"]), type)

    def index(self, shape: tuple[int, ...] = ()) -> Value:
        """Integers for indices, counts and branches, of any integer type and size."""
        found = self.maybe("iu", lambda t: t.shape == shape)
        if found is not None and self.chance(0.8):
            return found
        ints = self.palette.of_kinds("iu")
        return self.as_type(self.rng.choice(self.scope), Type(self.rng.choice(ints), shape))

    def flag(self) -> Value:
        """One bool."""
        found = self.maybe("b", lambda t: t.shape == ())
        if found is not None and self.chance(0.7):
            return found
        v = self.value("fiu", most=40)
        if v.type.shape == ():
            return self.emit(
                self.rng.choice(["{0} > 0", "lax.ge({0}, {0} * {0})", "{0} != 1"]), v, type=Type("bool", ())
            )
        return self.emit(
            self.rng.choice(["jnp.any({0} > 1)", "jnp.all({0} < 3)", "jnp.sum({0}) > 0"]), v, type=Type("bool", ())
        )

    # conversions ------------------------------------------------------------------------------------------------------

    def as_type(self, v: Value, type: Type) -> Value:
        """Of another type, by whatever is nearest."""
        if v.type == type:
            return v
        if type.kind == "k":
            number = self.as_type(v, Type("int32", ()))
            return self.emit("weft.random.fold_in(weft.random.key(7), {0})", number, type=type)
        if v.type.kind == "k":
            v = self.emit("weft.random.bits({0}, (), 'uint32')", v, type=Type("uint32", ()))
        return self.as_shape(self.as_dtype(v, type.dtype), type.shape)

    def as_shape(self, v: Value, shape: tuple[int, ...]) -> Value:
        if v.type.shape == shape:
            return v
        type = Type(v.type.dtype, shape)
        if v.type.size == type.size:
            return self.emit(f"lax.reshape({{0}}, {shape})", v, type=type, bound=v.bound)
        if v.type.rank == 0:
            return self.emit(f"jnp.broadcast_to({{0}}, {shape})", v, type=type, bound=v.bound)
        if v.type.kind not in "sq" and self.chance(0.5):  # at the end, or before the beginning, zeros or nothing
            low, rest = (0, type.size - v.type.size) if self.chance(0.6) else (type.size - v.type.size, 0)
            zero = "False" if v.type.kind == "b" else "0"
            return self.emit(
                f"lax.reshape(lax.pad(jnp.ravel({{0}}), jnp.asarray({zero}, {v.type.dtype!r}), [({low}, {rest}, 0)]),"
                f" {shape})",
                v,
                type=type,
                bound=v.bound,
            )
        if v.type.size == 0:
            return self.emit(f"jnp.zeros({shape}, {v.type.dtype!r})", type=type, bound=0.0)
        return self.emit(f"jnp.resize({{0}}, {shape})", v, type=type, bound=v.bound)

    def as_dtype(self, v: Value, dtype: str) -> Value:
        old, new = v.type.kind, KINDS[dtype]
        if v.type.dtype == dtype:
            return v
        to = v.type.of(dtype)
        if old == "c" and new != "c":
            return self.as_dtype(
                self.emit(
                    self.rng.choice(["lax.real({0})", "lax.imag({0})"]),
                    v,
                    type=v.type.of(real_of(v.type.dtype)),
                    bound=v.bound,
                ),
                dtype,
            )
        if new == "b":
            return self.emit(
                (
                    "{0} > 0"
                    if old in "fiu"
                    else (
                        "{0} != 0"
                        if old == "c"
                        else "{0}.astype('int32') > 1"
                        if old == "q"
                        else "{0}.astype('float32') > 0"
                    )
                ),
                v,
                type=to,
            )
        if old in "iu" and new not in "iuq":  # what all types hold
            mask = 3 if new == "s" else 7
            return self.emit(f"lax.convert_element_type({{0}} & {mask}, {dtype!r})", v, type=to, bound=mask)
        if old == "b" or old in "iuq" and new in "iuq" or old == "q":
            return self.emit(f"lax.convert_element_type({{0}}, {dtype!r})", v, type=to, bound=8.0)
        v = self.within(v, 3.0 if new in "qs" else 100.0)  # from floats
        if new in "fcs":
            return self.emit(f"lax.convert_element_type({{0}}, {dtype!r})", v, type=to, bound=v.bound * 1.1)
        times = " * 4" if self.chance(0.5) and new not in "q" and v.bound <= 25 and old == "f" else ""
        text = "lax.convert_element_type(lax.abs({0})" if dtype.startswith("u") else "lax.convert_element_type({0}"
        return self.emit(f"{text}{times}, {dtype!r})", v, type=to)

    def within(self, v: Value, limit: float) -> Value:
        """Floats that are no larger than a limit: scaled by a power of two, which rounds nothing, or put into
        bounds.
        """
        if v.type.kind not in "fcs" or v.bound <= limit:
            return v
        if v.bound == float("inf") or v.bound > 2.0**12 or v.type.kind == "s":
            if v.type.kind == "c":  # within a circle
                return self.emit(f"{{0}} / (1.0 + jnp.abs({{0}})) * {limit}", v, type=v.type, bound=limit)
            if v.type.kind == "s":
                return self.emit(
                    f"jnp.clip({{0}}.astype('float32'), {-limit}, {limit}).astype({v.type.dtype!r})",
                    v,
                    type=v.type,
                    bound=limit,
                )
            text = (
                self.rng.choice([f"jnp.tanh({{0}}) * {limit}", f"jnp.clip({{0}}, {-limit}, {limit})"])
                if limit < 2.0**12
                else f"jnp.clip({{0}}, {-limit}, {limit})"
            )
            return self.emit(text, v, type=v.type, bound=limit)
        factor = 1.0
        while v.bound * factor > limit:
            factor /= 2
        return self.emit(f"{{0}} * {factor}", v, type=v.type, bound=v.bound * factor)

    def above(self, v: Value) -> Value:
        """Numbers from 1/2 to 4.5."""
        v = self.within(v, 2.0)
        return self.emit("{0} * {0} + 0.5", v, type=v.type, bound=4.5)

    def still(self, v: Value) -> Value:
        """What derivatives do not follow."""
        return (
            self.emit("lax.stop_gradient({0})", v, type=v.type, bound=v.bound)
            if v.type.kind in DIFFERENTIABLE and self.taken
            else v
        )

    # functions --------------------------------------------------------------------------------------------------------

    def block(
        self,
        params: Sequence[Type],
        results: Sequence[Result],
        *,
        takes: tuple[int, ...] | None = None,
        gives: tuple[int, ...] | None = None,
        outer: Sequence[Value] | None = None,
        plain: bool = False,
        taken: frozenset[str] | None = None,
        most: int = 2,
    ) -> Block:
        """A function. outer: what it sees besides its parameters, everything if None. plain: nothing of the nest
        goes into it.
        """
        nest = () if plain else self.nest
        if not plain:
            self.nest = ()
        child = Maker(
            self.world,
            self.scope if outer is None else outer,
            (*self.path, self.control or "call"),
            nest,
            self.taken if taken is None else taken,
        )
        inputs = [child.fresh(t, CARRIED if t.kind in "fcs" else float("inf")) for t in params]
        child.own = list(inputs)
        if not child.scope:
            child.emit("jnp.arange(3.0, dtype='float32')", type=Type("float32", (3,)), bound=2.0)
        child.fill(self.rng.randint(1 if nest or most else 0, most))
        outs = [child.finish(r) if isinstance(r, Type) else r(child) for r in results]
        self.world.names += 1
        self.world.used.update(v.name for v in outs)
        return Block(f"f{self.world.names}", tuple(inputs), tuple(child.steps), tuple(outs), takes, gives)

    def finish(self, type: Type) -> Value:
        """What becomes a result of this type: a value that nothing uses yet, a parameter that changes its place, or
        one made of another.
        """
        unused = [v for v in self.own if v.name not in self.world.used]
        exact, others = [v for v in unused if v.type == type], [v for v in self.own if v.type == type]
        if exact and self.chance(0.8):
            v = self.rng.choice(exact)
        elif others and (not unused or self.chance(0.3)):
            v = self.rng.choice(others)
        else:
            v = self.as_type(self.rng.choice(unused or self.own or self.scope), type)
        self.world.used.add(v.name)
        return self.within(v, CARRIED)

    # steps ------------------------------------------------------------------------------------------------------------

    def fill(self, count: int) -> None:
        """Some random steps, and the nest of control flow among them."""
        place = self.rng.randint(0, count) if self.nest else -1
        for k in range(count + 1):
            if k == place:
                kind, self.nest = self.nest[0], self.nest[1:]
                self.nested(kind)
            if k < count:
                self.step()

    def step(self) -> None:
        if len(self.path) < DEEPEST and self.chance(0.05):
            kept, self.nest = self.nest, ()
            self.nested(self.rng.choice((*NESTS, *DERIVATIVES, *OTHERS)))
            self.nest = kept
            return
        left_out = self.world.settings.left_out
        stays = "export" not in self.path
        names = [
            n
            for n, f in FAMILIES.items()
            if n not in left_out and not (f.finite and self.world.special) and (stays or f.portable)
        ]
        name = self.world.theme
        if name not in names or self.path or self.chance(0.4):
            name = self.rng.choices(names, [FAMILIES[n].weight for n in names])[0]
        self.world.families.add(name)
        FAMILIES[name].make(self)

    def nested(self, kind: str) -> None:
        """One step of control flow, which puts the rest of the nest into one of its functions."""
        self.control = "custom_jvp" if kind == "custom_vjp" and "forward" in self.taken else kind
        CONTROL[self.control](self)
        self.control, self.nest = "", ()


def make(seed: int, settings: Settings = Settings()) -> Program:
    """The program of a seed. As many seeds in a row as there are triples of control flow nest these in all ways; those
    from THEMED on take turns with the families of steps.
    """
    rng = random.Random(seed)
    if seed >= THEMED:
        return of_nest(rng, seed, settings, (), tuple(FAMILIES)[seed % len(FAMILIES)])
    which = seed * 1009 % len(NESTS) ** 3  # so that neighbours differ in all three
    return of_nest(rng, seed, settings, tuple(NESTS[which // len(NESTS) ** k % len(NESTS)] for k in range(3)))


def of_nest(rng: random.Random, seed: int, settings: Settings, nest: tuple[str, ...], theme: str = "") -> Program:
    """A program with this nest of control flow in it, most of whose steps are of one family if one is named."""
    forms = [
        f
        for f in FORMS[1:]
        if "custom_vjp" not in nest or derivatives_of(f)[:1] != ["jvp"] and ("jvp" not in f or not within_custom(nest))
    ]
    form = rng.choice(forms) if rng.random() < 0.7 else ()
    derivatives = derivatives_of(form)
    taken = frozenset(["reverse"] * ("vjp" in form) + ["forward"] * (derivatives[:1] == ["jvp"]))
    world = World(rng, settings, types.palette(rng, settings.dtypes), form, theme=theme)
    maker = Maker(world, nest=nest, taken=taken)
    args = arguments(rng, world.palette, plain=bool(derivatives))
    world.special = any(a.numbers == "special" and a.type.kind == "f" for a in args)
    maker.own = [maker.fresh(a.type, float("inf") if a.numbers == "special" else CARRIED) for a in args]
    params = tuple(maker.own)
    maker.fill(rng.randint(settings.steps, 2 * settings.steps) if theme else rng.randint(2, settings.steps))
    unused = [v for v in maker.own if v.name not in world.used and v not in params]
    unused = [maker.as_type(v, Type("uint32", ())) if v.type.kind == "k" else v for v in unused]
    results = tuple(unused[-6:] or maker.own[-1:])
    if derivatives and not any(v.type.kind in types.DIFFERENTIABLE for v in results):
        results = (*results, maker.finish(Type(world.palette.float, (3,))))
    block = Block("program", params, tuple(maker.steps), results, gives=(len(results),))
    donated = (
        tuple(
            k
            for k, a in enumerate(args)
            if a.same_as is None and not any(b.same_as == k for b in args) and rng.random() < 0.15
        )
        if not form
        else ()
    )
    return Program(seed, args, block, form, donated, world.x64, frozenset(world.families))


def within_custom(nest: tuple[str, ...]) -> bool:
    """Whether a custom_vjp stands inside another function with a derivative of its own."""
    return any(a.startswith("custom") and "custom_vjp" in nest[k + 1 :] for k, a in enumerate(nest))


def derivatives_of(form: tuple[str, ...]) -> list[str]:
    return [f for f in form if f != "vmap"]


def arguments(rng: random.Random, palette: Palette, plain: bool) -> tuple[Argument, ...]:
    """One of the main float dtype, and others. plain: with numbers that have derivatives."""
    args: list[Argument] = []
    for k in range(rng.randint(2, 4)):
        dtype = palette.float if k == 0 else rng.choice(palette.dtypes)
        numbers = rng.choices(("normal", "whole", "special"), (3, 3, 0 if plain or palette.of_kinds("c") else 0.4))[0]
        layout = rng.choices(("plain", "strided", "reversed", "transposed", "broadcast"), (6, 1, 1, 1, 1))[0]
        args.append(Argument(Type(dtype, rng.choice(palette.shapes)), numbers, layout))
    if rng.random() < 0.1:
        args.append(replace(args[0], same_as=0))
    return tuple(args)
