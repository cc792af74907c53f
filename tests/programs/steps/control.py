"""Control flow: steps with functions of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..tree import Value
from ..types import DIFFERENTIABLE, KEY, Type

if TYPE_CHECKING:
    from ..maker import Maker, Result

CARRIED = 4.0


def carried(m: Maker, v: Value) -> Value:
    return m.within(v, CARRIED)


def operands(m: Maker, count: int, kinds: str = "fffiubc", most: int = 60) -> list[Value]:
    return [carried(m, m.value(kinds, most=most)) for _ in range(count)]


def types(values: list[Value]) -> list[Type]:
    return [v.type for v in values]


def bounds(values: list[Type]) -> list[float]:
    return [CARRIED if t.kind in "fcs" else float("inf") for t in values]


def row(first: int, count: int) -> str:
    """'({1}, {2}, )'"""
    return "(" + "".join(f"{{{k}}}, " for k in range(first, first + count)) + ")"


def carry(m: Maker) -> list[Value]:
    """What a loop carries: often two of a type, which may change places."""
    values = operands(m, m.rng.randint(1, 2))
    if m.chance(0.4):
        values.append(carried(m, m.like(values[0])))
    if m.chance(0.3):
        values.append(m.index())
    if m.chance(0.2):
        values.append(m.flag())
    if m.chance(0.1):
        values.append(m.as_type(m.maybe("k") or m.index(), KEY))
    m.rng.shuffle(values)
    return values


def frozen(m: Maker, values: list[Value]) -> tuple[list[Value], list[Value] | None]:
    """What a loop without a reverse derivative may take and see: nothing that one would be taken of."""
    if "reverse" not in m.taken:
        return values, None
    return [m.still(v) for v in values], [v for v in m.scope if v.type.kind not in DIFFERENTIABLE]


def count(m: Maker) -> Value:
    """A trip count of up to three, which may change in loops outside."""
    n = m.index()
    return m.emit("{0} & 3", n, type=n.type)


def scan(m: Maker) -> None:
    values, length = carry(m), m.rng.choice((0, 1, 2, 3, 3, 4, 5))
    rows: list[Value] = []
    for _ in range(m.rng.choice((0, 1, 1, 2))):
        found = m.maybe("fffiubc", lambda t: t.rank >= 1 and t.shape[0] == length)
        if found is None or m.chance(0.3):
            inner = m.value("fffiubc", most=30)
            found = m.as_shape(inner, (length, *inner.type.shape)) if inner.type.rank < 6 else inner
        if found.type.rank and found.type.shape[0] == length:
            rows.append(carried(m, found))
    given = [
        Type(m.rng.choice(m.palette.dtypes[:3]), m.rng.choice(m.palette.shapes))
        for _ in range(m.rng.choice((0, 1, 1, 2)))
    ]
    inside = [r.type.shaped(*r.type.shape[1:]) for r in rows]
    body = m.block(
        [*types(values), *inside],
        [*types(values), *given],
        takes=(len(values), len(rows)),
        gives=(len(values), len(given)),
    )
    n = len(values)
    more = f", length={length}, reverse={m.chance(0.3)}" + (
        f", unroll={m.rng.choice((2, 3))}" if m.chance(0.15) else ""
    )
    text = f"weft.tree.leaves(lax.scan({{f0}}, {row(0, n)}, {row(n, len(rows))}{more}))"
    out = [*types(values), *[t.shaped(length, *t.shape) for t in given]]
    m.emit_all(text, *values, *rows, types=out, bounds=bounds(out), blocks=[body])


def counted(m: Maker) -> None:
    """A scan that counts up and down beside what it does, from numbers that the program knows."""
    v, length = carried(m, m.value("fffiu", most=60)), m.rng.choice((0, 1, 3, 4))
    number = Type("int64" if m.world.x64 else "int32", ())
    body = m.block([v.type], [v.type])
    up, down = m.rng.choice(("2 + s[1]", "s[1] + 1")), m.rng.choice(("s[2] - 1", "s[2] + 3"))
    start = f"({{0}}, {m.rng.randint(0, 5)}, {m.rng.randint(4, 9)})"
    text = f"lax.scan(lambda s, _: (({{f0}}(s[0]), {up}, {down}), s[1] * s[2]), {start}, None, length={length})"
    out = [v.type, number, number, number.shaped(length)]
    m.emit_all(f"weft.tree.leaves({text})", v, types=out, bounds=bounds(out), blocks=[body])


def while_(m: Maker) -> None:
    """Ends by a counter, by a flag that its own body computes, or by a function of what it carries; the number that
    it counts to may change outside.
    """
    values, outer = frozen(m, carry(m))
    counter = Type(m.palette.int if m.chance(0.7) else m.rng.choice(m.palette.of_kinds("iu")), ())
    limit = m.as_dtype(count(m), counter.dtype) if m.chance(0.6) else None
    if limit is not None and outer is not None:
        outer.append(limit)
    bound = limit.name if limit is not None else str(m.rng.randint(0, 4))
    start = m.emit(f"jnp.asarray(0, {counter.dtype!r})", type=counter)
    way = m.rng.choice(("count", "flag", "function"))
    flag = [m.emit("jnp.asarray(True)", type=Type("bool", ())) if m.chance(0.7) else m.flag()] if way == "flag" else []
    n = len(values)
    inside = [counter, *types(flag), *types(values)]
    after: list[Value] = []

    def one_more(child: Maker) -> Value:
        after[:] = [child.emit("{0} + 1", child.own[0], type=counter)]
        return after[0]

    def more(child: Maker) -> Value:
        """Whether the body is to run again."""
        again = child.emit(f"{{0}} < {bound}", after[0], type=Type("bool", ()))
        if not child.chance(0.4):
            return again
        return child.emit("{0} & {1}", again, child.flag(), type=again.type)

    def wanted(child: Maker) -> Value:
        again = child.emit(f"{{0}} < {bound}", child.own[0], type=Type("bool", ()))
        return child.emit("{0} & {1}", again, child.flag(), type=again.type) if child.chance(0.6) else again

    results: list[Result] = [one_more, *([more] if flag else []), *types(values)]
    make_body = lambda: m.block(inside, results, takes=(len(inside),), gives=(len(inside),), outer=outer)
    make_condition = lambda: m.block(inside, [wanted], takes=(len(inside),), outer=outer, most=1)
    if way != "function":
        blocks = [make_body()]
        condition = "lambda s: s[1]" if flag else f"lambda s: s[0] < {bound}"
    else:
        blocks = [make_body(), make_condition()] if m.chance(0.7) else [make_condition(), make_body()][::-1]
        condition = "{f1}"
    out = [counter, *types(flag), *types(values)]
    m.emit_all(
        f"lax.while_loop({condition}, {{f0}}, {row(0, n + 1 + len(flag))})",
        start,
        *flag,
        *values,
        types=out,
        bounds=bounds(out),
        blocks=blocks,
    )
    if limit is not None:
        m.world.used.add(limit.name)


def fori(m: Maker) -> None:
    values, changing = carry(m), m.chance(0.5)
    outer = None
    if changing:
        values, outer = frozen(m, values)
        stop = count(m)
        low = m.emit(f"jnp.asarray({m.rng.choice((0, 0, 1))}, {stop.type.dtype!r})", type=stop.type)
        ends, counter = [low, stop], stop.type
    else:
        ends, counter = [], Type("int64" if m.world.x64 else "int32", ())
    n = len(values)
    body = m.block([counter, *types(values)], types(values), takes=(-1, n), gives=(n,), outer=outer)
    limits = "{0}, {1}" if changing else f"{m.rng.choice((0, 0, -1, 2))}, {m.rng.choice((0, 1, 3, 4))}"
    m.emit_all(
        f"lax.fori_loop({limits}, {{f0}}, {row(len(ends), n)})",
        *ends,
        *values,
        types=types(values),
        bounds=bounds(types(values)),
        blocks=[body],
    )


def layers(m: Maker) -> None:
    """A function applied several times in turn, and not by a loop: equal parts of one program."""
    values = carry(m)
    n = len(values)
    body = m.block(types(values), types(values), gives=(n,))
    m.emit_all(
        f"in_turn({{f0}}, {m.rng.choice((2, 3, 4))}, {row(0, n)})",
        *values,
        types=types(values),
        bounds=bounds(types(values)),
        blocks=[body],
    )


def cond(m: Maker) -> None:
    values, out = operands(m, m.rng.randint(0, 2)), results(m)
    blocks = [m.block(types(values), out, gives=(len(out),)) for _ in range(2)]
    if m.chance(0.5):
        blocks.reverse()
    n = len(values)
    m.emit_all(
        f"lax.cond({{0}}, {{f0}}, {{f1}}{''.join(f', {{{k + 1}}}' for k in range(n))})",
        m.flag(),
        *values,
        types=out,
        bounds=bounds(out),
        blocks=blocks,
    )


def results(m: Maker) -> list[Type]:
    return [m.value("fffiubc", most=60).type for _ in range(m.rng.randint(1, 2))]


def switch(m: Maker) -> None:
    values, out = operands(m, m.rng.randint(0, 2)), results(m)
    blocks = [m.block(types(values), out, gives=(len(out),), most=1) for _ in range(m.rng.randint(1, 3))]
    m.rng.shuffle(blocks)
    branches = ", ".join(f"{{f{k}}}" for k in range(len(blocks)))
    n = len(values)
    m.emit_all(
        f"lax.switch({{0}}, [{branches}]{''.join(f', {{{k + 1}}}' for k in range(n))})",
        (
            m.index()
            if m.chance(0.9)
            else m.emit(f"lax.stage(jnp.asarray({m.rng.randint(-1, 3)}, 'int32'))", type=Type("int32", ()))
        ),
        *values,
        types=out,
        bounds=bounds(out),
        blocks=blocks,
    )


def map_(m: Maker) -> None:
    v, out = carried(m, m.value("fffiubc", least=1)), results(m)
    n = v.type.shape[0]
    body = m.block([v.type.shaped(*v.type.shape[1:])], out, gives=(len(out),))
    more = ", batch_size=2" if m.chance(0.3) else ""
    stacked = [t.shaped(n, *t.shape) for t in out]
    m.emit_all(f"lax.map({{f0}}, {{0}}{more})", v, types=stacked, bounds=bounds(stacked), blocks=[body])


def associative_scan(m: Maker) -> None:
    """Over the rows of an array, with a function of two rows."""
    v = carried(m, m.value("fffiu", least=1, most=40))
    inner = v.type.shaped(*v.type.shape[1:])
    body = m.block([inner, inner], [inner])
    m.emit(
        f"lax.associative_scan(weft.vmap({{f0}}), {{0}}, reverse={m.chance(0.4)})",
        v,
        type=v.type,
        bound=CARRIED,
        blocks=[body],
    )


def jit(m: Maker) -> None:
    values, out = operands(m, m.rng.randint(0, 2)), results(m)
    body = m.block(types(values), out, gives=(len(out),))
    m.emit_all(
        f"weft.jit({{f0}})({', '.join(f'{{{k}}}' for k in range(len(values)))})",
        *values,
        types=out,
        bounds=bounds(out),
        blocks=[body],
    )


def remat(m: Maker) -> None:
    values, out = operands(m, m.rng.randint(0, 2)), results(m)
    body = m.block(types(values), out, gives=(len(out),))
    policy = m.rng.choice(
        [
            "",
            "",
            ", policy=weft.checkpoint_policies.everything_saveable",
            ", policy=weft.checkpoint_policies.dots_saveable",
        ]
    )
    m.emit_all(
        f"weft.checkpoint({{f0}}{policy})({', '.join(f'{{{k}}}' for k in range(len(values)))})",
        *values,
        types=out,
        bounds=bounds(out),
        blocks=[body],
    )


def vmap(m: Maker) -> None:
    """Over one axis of some operands, with results whose axis is anywhere."""
    size = m.rng.choice((0, 1, 2, 2, 3, 3, 4))
    values: list[Value] = []
    inside: list[Type] = []
    axes: list[int | None] = []
    for k, v in enumerate(operands(m, m.rng.randint(1, 2), most=24)):
        if k and m.chance(0.4) or v.type.rank > 5:
            values.append(v)
            inside.append(v.type)
            axes.append(None)
            continue
        axis = m.rng.randint(0, v.type.rank)
        values.append(m.as_shape(v, (*v.type.shape[:axis], size, *v.type.shape[axis:])))
        inside.append(v.type)
        axes.append(axis)
    if all(a is None for a in axes):
        values, inside, axes = (
            [m.as_shape(values[0], (size, *inside[0].shape[1:]))],
            [inside[0].shaped(*inside[0].shape[1:])],
            [0],
        )
    out = results(m)
    body = m.block(inside, out, gives=(len(out),))
    places = [m.rng.randint(0, t.rank) for t in out]
    stacked = [t.shaped(*t.shape[:a], size, *t.shape[a:]) for t, a in zip(out, places)]
    m.emit_all(
        f"weft.vmap({{f0}}, in_axes={tuple(axes)},"
        f" out_axes={tuple(places)})({', '.join(f'{{{k}}}' for k in range(len(values)))})",
        *values,
        types=stacked,
        bounds=bounds(stacked),
        blocks=[body],
    )


def same_type(m: Maker) -> list[Value]:
    v = carried(m, m.value("ffffc" if m.palette.of_kinds("c") else "f", most=60))
    return [v, *([carried(m, m.like(v))] if m.chance(0.6) else [])]


def custom_jvp(m: Maker) -> None:
    """A function with a forward derivative of its own, whose factors are functions too."""
    values = same_type(m)
    n, type, taken = len(values), values[0].type, m.taken | m.world.of_rules
    blocks = [
        m.block(types(values), [type], outer=(), taken=taken),
        m.block(types(values), [type], outer=(), taken=taken, plain=m.chance(0.5), most=1),
    ]
    rule = "lambda p, t: ({f0}(*p), t[0] * {f1}(*p)" + (" - t[1] * 0.5)" if n == 2 else ")")
    m.emit(
        f"with_jvp({{f0}}, {rule})({', '.join(f'{{{k}}}' for k in range(n))})",
        *values,
        type=type,
        bound=CARRIED,
        blocks=blocks,
    )


def custom_vjp(m: Maker) -> None:
    """A function with a reverse derivative of its own, which keeps something for it."""
    values = same_type(m)
    n, type, taken = len(values), values[0].type, m.taken | m.world.of_rules
    kept = [type, *([Type(m.palette.int, ())] if m.chance(0.4) else [])]
    makers: dict[str, Callable] = {
        "f0": lambda: m.block(types(values), [type], outer=(), taken=taken),
        "f1": lambda: m.block(types(values), kept, gives=(len(kept),), outer=(), taken=taken, most=1),
        "f2": lambda: m.block([*kept, type], [type] * n, gives=(n,), outer=(), taken=taken, most=1),
    }
    made = {}
    # the first takes the rest of the nest
    for name in m.rng.sample(("f0", "f1", "f2"), 3) if m.chance(0.5) else ("f0", "f1", "f2"):
        made[name] = makers[name]()
    more = ", optimize_remat=True" if m.chance(0.2) else ""
    text = f"with_vjp({{f0}}, lambda *x: ({{f0}}(*x), {{f1}}(*x)), lambda kept, ct: {{f2}}(*kept, ct){more})"
    m.emit(
        f"{text}({', '.join(f'{{{k}}}' for k in range(n))})",
        *values,
        type=type,
        bound=CARRIED,
        blocks=[made["f0"], made["f1"], made["f2"]],
    )


def grad(m: Maker) -> None:
    v = carried(m, m.value("f", most=60))
    # a forward derivative goes through the reverse one, but not through a function that has only that of what is seen
    # besides
    seen = [w for w in m.scope if w.type.kind not in DIFFERENTIABLE] if "forward" in m.taken else None
    body = m.block([v.type], [v.type], outer=seen, taken=(m.taken - {"forward"}) | {"reverse"})
    m.emit("weft.grad(lambda x: jnp.sum({f0}(x)).astype({0}.dtype))({0})", v, type=v.type, blocks=[body])


def jvp(m: Maker) -> None:
    v = carried(m, m.value("ffc" if m.palette.of_kinds("c") else "f", most=60))
    w, out = carried(m, m.like(v)), v.type
    body = m.block([v.type], [out], taken=m.taken | {"forward"})
    m.emit_all("weft.jvp({f0}, ({0},), ({1},))", v, w, types=[out, out], bounds=[CARRIED, float("inf")], blocks=[body])


def linearize(m: Maker) -> None:
    v = carried(m, m.value("f", most=60))
    body = m.block([v.type], [v.type], taken=m.taken | {"forward"})
    m.emit("weft.linearize({f0}, {0})[1]({1})", v, carried(m, m.like(v)), type=v.type, blocks=[body])


KINDS: dict[str, Callable[[Maker], None]] = {
    "scan": scan,
    "counted": counted,
    "while": while_,
    "fori": fori,
    "layers": layers,
    "cond": cond,
    "switch": switch,
    "map": map_,
    "associative_scan": associative_scan,
    "custom_jvp": custom_jvp,
    "custom_vjp": custom_vjp,
    "remat": remat,
    "jit": jit,
    "vmap": vmap,
    "grad": grad,
    "jvp": jvp,
    "linearize": linearize,
}
