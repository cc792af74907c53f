"""A program as data: steps that are Python expressions over named values, with functions inside. It is printed as
Python source, and that is what runs.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import weft
import weft.numpy as jnp
from weft import lax

from .types import Type


@dataclass(frozen=True, eq=False)
class Value:
    """A named array. bound: no number in it is larger, as far as floats go."""

    name: str
    type: Type
    bound: float = float("inf")


@dataclass(frozen=True, eq=False)
class Block:
    """A function of a program. takes and gives: sizes of the tuples that parameters and results are grouped into (-1:
    one without a tuple); None: one by one.
    """

    name: str
    params: tuple[Value, ...]
    steps: tuple[Step, ...]
    results: tuple[Value, ...]
    takes: tuple[int, ...] | None = None
    gives: tuple[int, ...] | None = None

    def lines(self) -> Iterator[str]:
        if self.takes is None:
            yield f"def {self.name}({', '.join(p.name for p in self.params)}):"
        else:
            yield f"def {self.name}({', '.join(f'p{k}' for k in range(len(self.takes)))}):"
            for k, (size, group) in enumerate(zip(self.takes, groups(self.params, self.takes))):
                if size < 0:
                    yield f"    {group[0].name} = p{k}"
                elif group:
                    yield f"    {', '.join(p.name for p in group)}, = p{k}"
        for step in self.steps:
            for line in step.lines():
                yield "    " + line
        if self.gives is None:
            yield f"    return {', '.join(r.name for r in self.results)}"
        else:
            yield f"    return {', '.join(joined(group) for group in groups(self.results, self.gives))}"


@dataclass(frozen=True, eq=False)
class Step:
    """results = text, where {0}, {1}, … stand for the operands and {f0}, {f1}, … for the functions."""

    results: tuple[Value, ...]
    text: str
    operands: tuple[Value, ...] = ()
    blocks: tuple[Block, ...] = ()
    control: str = ""  # which kind of control flow it is
    many: bool = False  # whether the expression gives a tuple

    def lines(self) -> Iterator[str]:
        for block in self.blocks:
            yield from block.lines()
        names = {f"f{k}": b.name for k, b in enumerate(self.blocks)}
        targets = ", ".join(r.name for r in self.results) + "," * (self.many and len(self.results) == 1)
        yield f"{targets} = {self.text.format(*[v.name for v in self.operands], **names)}"


@dataclass(frozen=True)
class Argument:
    """How the numbers of an argument are drawn, and how they lie in the host's memory."""

    type: Type
    numbers: str = "normal"  # or "whole", "special"
    layout: str = "plain"  # or "strided", "reversed", "broadcast"
    same_as: int | None = None  # the argument that is passed here once more


@dataclass(frozen=True)
class Program:
    """A function with what it is called with. form: the transformations that it goes through, outermost last."""

    seed: int
    args: tuple[Argument, ...]
    block: Block
    form: tuple[str, ...] = ()
    donated: tuple[int, ...] = ()
    x64: bool = False
    families: frozenset[str] = field(default=frozenset(), compare=False)

    def source(self) -> str:
        """Python source that defines the function `program`."""
        body = "\n".join(self.block.lines())
        return "\n".join([*helpers(body), body])

    def function(self, log: list | None = None) -> Callable[..., Any]:
        """What the source defines. log: where functions of the host keep what they have seen."""
        space: dict[str, Any] = {
            "np": np,
            "ml_dtypes": ml_dtypes,
            "weft": weft,
            "jnp": jnp,
            "lax": lax,
            "LOG": [] if log is None else log,
        }
        exec(compile(self.source(), f"<program {self.seed}>", "exec"), space)
        return space[self.block.name]

    def nests(self) -> Iterator[tuple[str, ...]]:
        """The kinds of control flow around each step that is control flow, with its own."""

        def walk(block: Block, outer: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
            for step in block.steps:
                here = (*outer, step.control) if step.control else outer
                if step.control:
                    yield here
                for inner in step.blocks:
                    yield from walk(inner, here)

        return walk(self.block, ())


HELPERS = {
    "with_jvp": textwrap.dedent("""\
        def with_jvp(fun, rule):
            fun = weft.custom_jvp(fun)
            fun.defjvp(rule)
            return fun
        """),
    "with_ref": textwrap.dedent("""\
        def with_ref(x, count, change):
            ref = weft.new_ref(x)
            def body(k, carry):
                change(ref, k)
                return carry
            lax.fori_loop(0, count, body, 0)
            return ref[...]
        """),
    "in_turn": textwrap.dedent("""\
        def in_turn(fun, times, xs):
            for _ in range(times):
                xs = fun(*xs)
            return xs
        """),
    "with_vjp": textwrap.dedent("""\
        def with_vjp(fun, forward, backward, **more):
            fun = weft.custom_vjp(fun)
            fun.defvjp(forward, backward, **more)
            return fun
        """),
    "with_batching": textwrap.dedent("""\
        def with_batching(fun):
            def rule(size, batched, *xs):
                out = weft.vmap(fun, in_axes=tuple(0 if b else None for b in batched), axis_size=size)(*xs)
                return out, weft.tree.map(lambda _: True, out)
            wrapped = weft.custom_batching.custom_vmap(fun)
            wrapped.def_vmap(rule)
            return wrapped
        """),
    "exported": textwrap.dedent("""\
        def exported(fun, xs):
            from weft.export import DisabledSafetyCheck, deserialize, export
            make = export(weft.jit(fun), disabled_checks=[DisabledSafetyCheck.platform()])
            made = make(*[weft.ShapeDtypeStruct(x.shape, x.dtype) for x in xs])
            return deserialize(made.serialize()).call(*xs)
        """),
    "householder": textwrap.dedent("""\
        def householder(x, swap=False):
            from weft.lax import linalg
            from weft.primitives.linalg import geqp3_p, geqrf_p
            return geqp3_p.bind(x, use_magma=None) if swap else geqrf_p.bind(x)
        """),
    "threefry": textwrap.dedent("""\
        def threefry(x, y):
            from weft.primitives.random_bits import threefry2x32_p
            return threefry2x32_p.bind(x, y, y, x)
        """),
    "in_memory": textwrap.dedent("""\
        def in_memory(x):
            from weft.primitives.placement import to_memory_p
            return to_memory_p.bind(x, memory="device")
        """),
    "checked": textwrap.dedent("""\
        def checked(x):
            from weft.experimental.checkify import debug_check
            debug_check(jnp.all(x == x), "not a number")
            return x
        """),
    "todense": "from weft.experimental.sparse import todense\n",
    "added_at": textwrap.dedent("""\
        def added_at(x, k, y):
            ref = weft.new_ref(x)
            weft.ref.addupdate(ref, k, y)
            return weft.freeze(ref)
        """),
    "through_a_room": textwrap.dedent("""\
        def through_a_room(x):
            room = weft.empty_ref(weft.ShapeDtypeStruct(x.shape, x.dtype))
            room[...] = x
            y = room[...]
            weft.free_ref(room)
            return y
        """),
    "device": "from weft.runtime.device import default_device as device\n",
    "by_rows": textwrap.dedent("""\
        def by_rows():
            from weft.runtime.device import default_device
            from weft.sharding import Mesh, NamedSharding, P
            return NamedSharding(Mesh([default_device()], ("i",)), P("i"))
        """),
    "worded": textwrap.dedent("""\
        def worded(x):
            from weft.experimental.xla_metadata import set_xla_metadata
            return set_xla_metadata(x, part="encoder")
        """),
    "laid_out": textwrap.dedent("""\
        def laid_out(x, order):
            from weft.experimental.layout import Layout, with_layout_constraint
            return with_layout_constraint(x, Layout(order))
        """),
    "divided": textwrap.dedent("""\
        def divided(f):
            from weft.experimental.custom_partitioning import custom_partitioning
            made = custom_partitioning(f)
            made.def_partition(lambda *given: None)
            return made
        """),
    "alike": textwrap.dedent("""\
        def alike(x, y):
            from weft.experimental.shard_alike import shard_alike
            return shard_alike(x, y)[0]
        """),
    "resharded": textwrap.dedent("""\
        def resharded(x):
            from weft.runtime.device import default_device
            from weft.sharding import AxisType, Mesh, NamedSharding, P
            return weft.reshard(x, NamedSharding(Mesh([default_device()], ("i",), (AxisType.Explicit,)), P("i")))
        """),
    "over_grid": textwrap.dedent("""\
        def over_grid(way, fun, given, xs, outs, grid, ins, to, rooms, parallel=None, loose=False, **more):
            from weft.core.jaxpr import eval_jaxpr
            from weft.experimental import pallas as pl
            closed = weft.make_jaxpr(fun)(*[weft.ShapeDtypeStruct(*t) for t in given])
            own = [jnp.asarray(c) for c in closed.consts]
            n, m, k = len(xs), len(xs) + len(own), len(xs) + len(own) + len(outs)
            def kernel(*refs):
                clean = lambda x: numbers(x) if loose else x
                call = lambda *xs: eval_jaxpr(closed.jaxpr, [r[...] for r in refs[n:m]], *map(clean, xs))
                way(call, [pl.program_id(a) for a in range(len(grid))], refs[:n], refs[m:k], refs[k:])
            specs = [pl.BlockSpec(*s) for s in (*ins, *[()] * len(own), *to)]
            if parallel is not None:
                more["compiler_params"] = pl.CompilerParams(dimension_semantics=parallel)
            kept = [weft.ShapeDtypeStruct(*o) for o in outs]
            rooms = [pl.ANY(*r) for r in rooms]
            f = pl.pallas_call(
                kernel, kept, grid=grid, in_specs=specs[:m], out_specs=specs[m:], scratch_shapes=rooms, **more
            )
            return f(*xs, *own)
        """),
    "stored": textwrap.dedent("""\
        def stored(call, ids, xs, outs, rooms):
            for o, y in zip(outs, call(*[x[...] for x in xs], *ids)):
                o[...] = y
        """),
    "added_up": textwrap.dedent("""\
        def added_up(call, ids, xs, outs, rooms):
            from weft.experimental import pallas as pl
            @pl.when(ids[-1] == 0)
            def begin():
                for o in outs:
                    o[...] = jnp.zeros(o.shape, o.dtype)
            for o, y in zip(outs, call(*[x[...] for x in xs], *ids)):
                o[...] += y
        """),
    "added_apart": textwrap.dedent("""\
        def added_apart(call, ids, xs, outs, rooms):
            from weft.experimental import pallas as pl
            @pl.when(ids[-1] == 0)
            def begin():
                for r in rooms:
                    r[...] = jnp.zeros(r.shape, r.dtype)
            for r, y in zip(rooms, call(*[x[...] for x in xs], *ids)):
                r[...] += y
            @pl.when(ids[-1] == pl.num_programs(len(ids) - 1) - 1)
            def end():
                for o, r in zip(outs, rooms):
                    o[...] = r[...]
        """),
    "handed_on": textwrap.dedent("""\
        def handed_on(call, ids, xs, outs, rooms):
            found = call(*[x[...] for x in xs], *[numbers(r[...]) for r in rooms], *ids)
            for o, r, y in zip(outs, rooms, found):
                o[...] = r[...] = y
        """),
    "stored_if": textwrap.dedent("""\
        def stored_if(call, ids, xs, outs, rooms):
            from weft.experimental import pallas as pl
            *found, flag = call(*[x[...] for x in xs], *ids)
            @pl.when(flag)
            def store():
                for o, y in zip(outs, found):
                    o[...] = y
        """),
    "by_blocks_of_one": textwrap.dedent("""\
        def by_blocks_of_one(call, ids, xs, outs, rooms):
            n = outs[0].shape[0]
            def body(k, _):
                given = [x[k] if x.shape[:1] == (n,) else x[...] for x in xs]
                for o, y in zip(outs, call(*given, lax.convert_element_type(k, "int32"), *ids)):
                    o[k] = y
                return _
            lax.fori_loop(0, n, body, 0)
        """),
    "repeated": textwrap.dedent("""\
        def repeated(call, ids, xs, outs, rooms):
            def body(k):
                for o, y in zip(outs, call(*[x[...] for x in xs], *[numbers(o[...]) for o in outs], *ids)):
                    o[...] = y
                return k + 1
            lax.while_loop(lambda k: k < 1 + (sum(ids) & 1), body, 0)
        """),
    "numbers": textwrap.dedent("""\
        def numbers(x):
            return jnp.where(x == x, x, jnp.zeros_like(x)) if jnp.issubdtype(x.dtype, jnp.inexact) else x
        """),
    "element": textwrap.dedent("""\
        def element(size, *padding):
            from weft.experimental import pallas as pl
            return pl.Element(size, padding or (0, 0))
        """),
    "over_rows": textwrap.dedent("""\
        def over_rows(fun, whole=False):
            from weft.runtime.device import default_device
            from weft.sharding import Mesh, P
            mesh = Mesh([default_device()], ("i",))
            return weft.shard_map(fun, mesh=mesh, in_specs=P() if whole else P("i"), out_specs=P("i"))
        """),
    "seen": textwrap.dedent("""\
        def seen(x):
            LOG.append((False, np.array(x)))
        """),
    "asked": "from weft.experimental import io_callback as asked\n",
    "noted": textwrap.dedent("""\
        def noted(x):
            LOG.append((False, np.array(x)))
            return np.array(x)
        """),
    "counted": textwrap.dedent("""\
        def counted(x):
            LOG.append((True, np.array(x)))
            x = np.array(x)
            return (x + sum(ordered for ordered, _ in LOG) % 5).astype(x.dtype)
        """),
}


def helpers(source: str) -> list[str]:
    """The texts of the helpers that a source calls, and of those that they call."""
    used, texts = set[str](), [source]
    while texts:
        text = texts.pop()
        more = {name for name in HELPERS.keys() - used if re.search(rf"\b{name}[(,]", text)}
        texts += [HELPERS[name] for name in more]
        used |= more
    return [text for name, text in HELPERS.items() if name in used]


def groups(values: tuple[Value, ...], sizes: tuple[int, ...]) -> Iterator[tuple[Value, ...]]:
    rest = iter(values)
    for size in sizes:
        yield tuple(next(rest) for _ in range(abs(size)))


def joined(values: tuple[Value, ...]) -> str:
    return f"({', '.join(v.name for v in values)}{',' if len(values) == 1 else ''})"
