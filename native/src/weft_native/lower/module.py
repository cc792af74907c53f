"""Lowering a whole program: functions, equations, constants, locations, donation."""

from __future__ import annotations

import io
import math
import re
from typing import Any, Callable, Mapping, NamedTuple, Sequence

import numpy as np
from jaxlib.mlir import ir
from weft.base import dtypes
from weft.base.config import config
from weft.core.effects import any_ordered
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, TypedScalar
from weft.core.primitive import exact
from weft.base.errors import BackendError
from weft.base.layout import Layout
from weft.base.memory import DEVICE
from weft.base.mesh import Mesh, NamedSharding, P, SingleDeviceSharding
from weft.runtime.partition import memories
from weft.transforms.dce import live
from weft.transforms.stage import decomposition

# Their rules enter the registry.
from . import (  # noqa: F401
    barriers,
    callback,
    collective,
    control,
    dot,
    elementwise,
    fft,
    foreign,
    inspection,
    index,
    linalg,
    partitioning,
    random,
    reduce,
    shape,
    sort,
)
from . import aliasing
from .attributes import frontend_attributes
from .builder import Builder, Dialects, dialects
from .registry import broadcasting, rules


class Lowered(NamedTuple):
    """A module, and the information that a caller needs to run it."""

    module: Any  # ir.Module
    home: Dialects  # the MLIR context it lives in
    kept: tuple  # for each argument, whether the program takes it
    unusable: tuple  # avals of donated arguments that no result can reuse
    # the host functions that it calls, by the index in the call: function(device, *values) -> tuple
    callbacks: tuple = ()
    memories: tuple = ()  # for each result its kind of memory; None: the device's own


class Lowering(Builder):
    """The state of one module's lowering."""

    def __init__(self, home: Dialects, name: str, platform: str):
        super().__init__(home)
        self.module = ir.Module.create(self.loc)
        self.name, self.platform = name, platform
        self.module.operation.attributes["sym_name"] = ir.StringAttr.get(name)
        self.module.operation.attributes["mhlo.num_partitions"] = self.int_attr(1, 32)
        self.module.operation.attributes["mhlo.num_replicas"] = self.int_attr(1, 32)
        # (id(jaxpr), members) -> (symbol, the closed jaxpr, which is kept alive)
        self.functions: dict[tuple, tuple[str, Any]] = {}
        self.symbols: set[str] = {"main"}
        self.views: dict[tuple[str, int], int | None] = {}  # the argument of which a function's result is a view
        self.decomposed: dict = {}
        self.callbacks: list = []
        self.place: Any = None  # the sharding of all arrays of a program on one device
        # the devices that run this part of the program, if it is one device's part (collective.Members)
        self.members: Any = None
        self.partitions: Any = None  # the Partition of a program over several devices
        self.meshes: dict = {}
        self.channels = 0
        self.groups = 0  # of values with one sharding
        self.token: Any = None  # the token for the next ordered callback

    # functions ------------------------------------------------------------------------------------------------------

    def function(
        self,
        symbol: str,
        jaxpr: Jaxpr,
        in_types: Sequence,
        out_types: Sequence,
        body,
        public: bool = False,
        arg_attrs: Sequence | None = None,
        result_attrs: Sequence | None = None,
    ) -> None:
        """A function whose block `body` fills: it gets the arguments and returns the results."""
        kind = ir.FunctionType.get(inputs=in_types, results=out_types)
        attributes = {
            "sym_name": ir.StringAttr.get(symbol),
            "function_type": ir.TypeAttr.get(kind),
            "sym_visibility": ir.StringAttr.get("public" if public else "private"),
        }
        if arg_attrs is not None and any(arg_attrs):
            attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in arg_attrs])
        if result_attrs is not None and any(result_attrs):
            attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in result_attrs])
        outer = self.loc
        made = ir.Operation.create(
            "func.func", attributes=attributes, regions=1, loc=self.loc, ip=ir.InsertionPoint(self.module.body)
        )
        block = made.regions[0].blocks.append(*in_types, arg_locs=[self.loc] * len(in_types))
        self.fill(block, lambda: body(list(block.arguments)), "func.return")
        self.loc = outer

    def call(self, closed: ClosedJaxpr, args: Sequence, name: str) -> list:
        """Calls a jaxpr as a function, which all calls of the same jaxpr share."""
        if any_ordered(closed.effects):  # its callbacks take and return the token stored here
            return self.inline(closed, args)
        types = [self.type(a) for a in closed.out_avals]
        if self.members is not None and self.members.indices:  # values from outside represent positions
            return self.inline(closed, args)
        if aliasing.updates_a_view(self, closed.jaxpr, args):
            return self.inline(closed, args)
        return self.ops("func.call", args, types, {"callee": ir.FlatSymbolRefAttr.get(self.symbol_of(closed, name))})

    def symbol_of(self, closed: ClosedJaxpr, name: str) -> str:
        """The function that a jaxpr is in this module, by its symbol."""
        key = (id(closed.jaxpr), self.members and self.members.key)
        known = self.functions.get(key)
        if known is not None and (known[1].consts is closed.consts or not closed.consts):
            return known[0]
        symbol = self.fresh(name)
        self.functions[key] = (symbol, closed)
        self.function(
            symbol,
            closed.jaxpr,
            [self.type(a) for a in closed.in_avals],
            [self.type(a) for a in closed.out_avals],
            lambda block: self.inline(closed, block),
        )
        return symbol

    def fresh(self, name: str) -> str:
        base = re.sub(r"[^\w.]", "_", name) or "f"
        symbol, n = base, 0
        while symbol in self.symbols:
            n += 1
            symbol = f"{base}_{n}"
        self.symbols.add(symbol)
        return symbol

    @staticmethod
    def part(closed: ClosedJaxpr, name: str, platform: str, mesh: Mesh) -> bytes:
        """A program that is one device's part on a mesh, as bytecode."""
        lowered = lower(closed.jaxpr, name, (), True, platform, consts=closed.consts, part_of=mesh)
        code = io.BytesIO()
        with lowered.home.lock:
            lowered.module.operation.write_bytecode(code)
        return code.getvalue()

    # equations ------------------------------------------------------------------------------------------------------

    def call_python(self, name: str, ins, outs, args, function: Callable, ordered: bool, effect: bool) -> list:
        """A call of the host's `function(device, *values) -> tuple`; `name` is for errors."""
        return callback.emit(self, name, ins, outs, args, function, ordered, effect)

    def inline(self, closed: ClosedJaxpr, args: Sequence) -> list:
        """The equations of a closed jaxpr, right here."""
        return self.equations(closed.jaxpr, [self.embed(c) for c in closed.consts], args)

    def equations(self, jaxpr: Jaxpr, consts: Sequence, args: Sequence, located: bool = True) -> list:
        """Lowers the equations of a jaxpr for given values of its variables. The equations of a decomposition are not
        `located`: they keep the location of the equation that is decomposed.
        """
        env = dict(zip(jaxpr.constvars, consts))
        env.update(zip(jaxpr.invars, args))
        outer = self.loc
        for eqn in live(jaxpr).eqns:
            if located:
                self.loc = self.location(eqn)
            outs = self.equation(eqn, env)
            env.update(zip(eqn.outvars, outs))
        self.loc = outer
        return [self.read(a, env) for a in jaxpr.outvars]

    def read(self, atom, env):
        return self.splat(atom.val, atom.aval.dtype, atom.aval.shape) if type(atom) is Literal else env[atom]

    def equation(self, eqn: JaxprEqn, env) -> list:
        name = eqn.primitive.name
        ins, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
        own = eqn.primitive.lowerings
        rule = own and (own.get(self.platform) or own.get(None)) or (None if eqn.primitive.foreign else rules.get(name))
        called = None if rule or eqn.primitive.carries is None else eqn.primitive.carries.call(eqn.params, eqn.invars)
        if called is not None:
            closed, atoms = called
            return self.inline(closed, [self.read(a, env) for a in atoms])
        if rule is None:
            if eqn.primitive.decompose is None and eqn.primitive.foreign:
                raise NotImplementedError(
                    f"MLIR translation rule for primitive {name!r} not found for platform {self.platform}: give one"
                    f" with jax.interpreters.mlir.register_lowering.\n  at {eqn.source_info}"
                )
            if eqn.primitive.decompose is None:
                raise BackendError(
                    f"XLA has no lowering for the primitive {name!r}, and the primitive no decomposition.\n  at"
                    f" {eqn.source_info}"
                )
            simpler = self.decomposition(eqn.primitive, tuple(ins), eqn.params)
            return self.equations(
                simpler.jaxpr,
                [self.embed(c) for c in simpler.consts],
                [self.read(a, env) for a in eqn.invars],
                located=False,
            )
        if name in broadcasting and not own and not eqn.primitive.foreign:
            shape = outs[0].shape
            operands = [
                self.splat(a.val, a.aval.dtype, shape) if type(a) is Literal else self.fit(env[a], a.aval, shape)
                for a in eqn.invars
            ]
        elif name == "broadcast_in_dim" and type(eqn.invars[0]) is Literal:
            return [self.splat(eqn.invars[0].val, outs[0].dtype, outs[0].shape)]
        else:
            operands = [self.read(a, env) for a in eqn.invars]
        made = rule(self, ins, outs, *operands, **eqn.params)
        made = made if eqn.primitive.multiple_results else [made]
        if eqn.source_info.names:
            words = frontend_attributes(eqn.source_info.names)
            if words:
                self.annotate(made, words)
        return made

    def annotate(self, values: Sequence, words: Mapping[str, str]) -> None:
        """Adds frontend attributes to the operations behind values."""
        for value in values:
            if isinstance(value.owner, ir.Block):  # of an argument that is passed through
                continue
            kept = value.owner.attributes
            old = kept["mhlo.frontend_attributes"] if "mhlo.frontend_attributes" in kept else ()
            new = {n.name: n.attr for n in old} | {k: ir.StringAttr.get(v) for k, v in words.items()}
            kept["mhlo.frontend_attributes"] = ir.DictAttr.get(new)

    def decomposition(self, primitive, avals: tuple, params: dict) -> ClosedJaxpr:
        """A primitive's decomposition, as a jaxpr."""
        try:
            key = (primitive, avals, *exact(params))
            hash(key)
        except TypeError:
            key = None
        if key is None or key not in self.decomposed:
            made = decomposition(primitive, primitive.decompose, avals, params)
            if key is None:
                return made
            self.decomposed[key] = made
        return self.decomposed[key]

    # constants and locations ----------------------------------------------------------------------------------------

    def embed(self, value):
        """A constant of the program from a value that was known when it was traced."""
        if type(value) is TypedScalar:
            return self.splat(value.val, value.aval.dtype)
        if dtypes.is_python_scalar(value):
            return self.splat(value, dtypes.python_scalar_dtype(value))
        host = np.asarray(value)
        return self.constant(host.astype(dtypes.canonicalize(host.dtype)))

    def location(self, eqn: JaxprEqn):
        """The user's line and the operation's name, for profiles and error messages of XLA."""
        info, known = eqn.source_info, self.home.locations
        key = (info.code, info.lasti, info.names, eqn.primitive.name)
        try:
            return known[key]
        except KeyError:
            name = "/".join((self.name, *info.names, eqn.primitive.name))
            line = (
                ir.Location.file(_shown_file(info.file), info.line, 0, context=self.home.context)
                if info.code is not None
                else None
            )
            made = known[key] = ir.Location.name(name, line, context=self.home.context)
            return made


def _shown_file(name: str) -> str:
    pattern = config.hlo_source_file_canonicalization_regex
    return re.sub(pattern, "", name) if pattern else name


def kept_arguments(jaxpr: Jaxpr, keep_unused: bool) -> tuple:
    """For each argument, whether the program needs it."""
    if keep_unused:
        return (True,) * len(jaxpr.invars)
    used = {a for eqn in live(jaxpr).eqns for a in eqn.invars if type(a) is not Literal}
    used.update(a for a in jaxpr.outvars if type(a) is not Literal)
    return tuple([v in used for v in jaxpr.invars])


def assign_donations(in_avals: Sequence, out_avals: Sequence, donated: Sequence[bool]) -> tuple[dict, tuple]:
    """Which result reuses which donated argument ({argument: result}), and the avals of donated arguments that no
    result can reuse.
    """
    free: dict = {}
    for i, aval in enumerate(out_avals):
        free.setdefault((aval.shape, aval.dtype), []).append(i)
    alias, unusable = {}, []
    for i, (aval, given) in enumerate(zip(in_avals, donated)):
        if given:
            places = free.get((aval.shape, aval.dtype))
            if places:
                alias[i] = places.pop(0)
            else:
                unusable.append(aval)
    return alias, tuple(unusable)


def spread(state: Lowering, partition, invars, kept, out_avals, alias: dict) -> tuple[list, list]:
    """Turns the module into one over the devices of a partition: the attributes of its arguments and results."""
    state.partitions = partition
    state.module.operation.attributes["mhlo.num_partitions"] = state.int_attr(len(partition.devices), 32)
    ins = [s for s, k in zip(partition.ins, kept) if k]
    attrs: list = [{"sdy.sharding": collective.sharding_attr(state, s, len(v.aval.shape))} for s, v in zip(ins, invars)]
    for i, j in alias.items():
        if partition.outs[j] == ins[i]:
            attrs[i]["tf.aliasing_output"] = state.int_attr(j, 32)
        else:  # the compiler sees whether the result fits
            attrs[i]["jax.buffer_donor"] = state.bool_attr(True)
    return attrs, [
        {} if s is None else {"sdy.sharding": collective.sharding_attr(state, s, len(a.shape))}
        for s, a in zip(partition.outs, out_avals)
    ]


def _storage(attrs: list, memories: Sequence, layouts: Sequence) -> None:
    """Adds the kinds of memory and the layouts that are not the usual ones to attributes of arguments or results."""
    for attributes, memory in zip(attrs, memories):
        if memory is not None:
            attributes["mhlo.memory_kind"] = ir.StringAttr.get(memory)
    for attributes, layout in zip(attrs, layouts):
        if layout == Layout.AUTO:
            attributes["mhlo.layout_mode"] = ir.StringAttr.get("auto")
        elif layout is not None:
            order = ",".join(map(str, reversed(layout.major_to_minor)))
            attributes["mhlo.layout_mode"] = ir.StringAttr.get(f"{{{order}}}")


def _memory(sharding) -> str | None:
    """The kind of memory that a sharding asks for, if it is not the device's own."""
    kind = None if sharding is None else sharding._memory_kind
    return None if kind == DEVICE else kind


def memories_of(jaxpr: Jaxpr, partition) -> tuple[tuple, tuple]:
    """The kinds of memory of a program's arguments and results; None for the devices' own."""
    ins = tuple(map(_memory, partition.ins)) if partition is not None else (None,) * len(jaxpr.invars)
    asked = partition.outs if partition is not None else (None,) * len(jaxpr.outvars)
    outs = [_memory(s) or (None if kind == DEVICE else kind) for s, kind in zip(asked, memories(jaxpr))]
    return ins, tuple(outs)


def lower(
    jaxpr: Jaxpr,
    name: str = "main",
    donated: Sequence[bool] = (),
    keep_unused: bool = False,
    platform: str = "cpu",
    partition=None,
    axes: Sequence = (),
    symbol: str | None = None,
    consts: Sequence = (),
    device=None,
    part_of=None,
) -> Lowered:
    """A jaxpr as a StableHLO module whose `main` takes the arguments that the program uses.

    `partition` distributes it over devices; `axes` are the named axes of a program that is one replica's part. `consts`
    become part of the program. `part_of` is the mesh of which the program is one device's part.
    """
    kept = kept_arguments(jaxpr, keep_unused)
    donated = tuple(donated) or (False,) * len(jaxpr.invars)
    invars = [v for v, k in zip(jaxpr.invars, kept) if k]
    alias, unusable = assign_donations(
        [v.aval for v in invars], jaxpr.out_avals, [d for d, k in zip(donated, kept) if k]
    )
    with dialects() as home, home.context, ir.Location.unknown(home.context):
        state = Lowering(home, re.sub(r"[^\w.]", "_", symbol or f"jit_{name}"), platform)
        if partition is not None:
            state.place = NamedSharding(partition.mesh, P())
        elif device is not None:
            state.place = SingleDeviceSharding(device)
        attrs = [{"tf.aliasing_output": state.int_attr(alias[i], 32)} if i in alias else {} for i in range(len(invars))]
        result_attrs = None
        if partition is not None and len(partition.devices) > 1:  # a single device holds whole arrays
            attrs, result_attrs = spread(state, partition, invars, kept, jaxpr.out_avals, alias)
        stored_ins, stored_outs = memories_of(jaxpr, partition)
        stored_ins = tuple([m for m, k in zip(stored_ins, kept) if k])
        if (
            any(stored_ins)
            or any(stored_outs)
            or partition is not None
            and partition.in_layouts + partition.out_layouts
        ):
            result_attrs = [{} for _ in jaxpr.outvars] if result_attrs is None else result_attrs
            in_layouts, out_layouts = (partition.in_layouts, partition.out_layouts) if partition else ((), ())
            _storage(attrs, stored_ins, [s for s, k in zip(in_layouts, kept) if k])
            _storage(result_attrs, stored_outs, out_layouts)
        if axes:
            state.members = collective.replicas(axes)
            state.module.operation.attributes["mhlo.num_replicas"] = state.int_attr(math.prod(state.members.sizes), 32)

        if part_of is not None:
            state.members = collective.partitions(part_of)
            state.module.operation.attributes["mhlo.num_partitions"] = state.int_attr(part_of.size, 32)

        def body(args):
            moved = [x if m is None else control.to_memory(state, x, DEVICE) for x, m in zip(args, stored_ins)]
            env_args = iter(moved)
            callback.first_token(state, jaxpr.effects)
            outs = state.equations(
                jaxpr, [state.embed(c) for c in consts], [next(env_args) if k else None for k in kept]
            )
            return [x if m is None else control.to_memory(state, x, m) for x, m in zip(outs, stored_outs)]

        state.function(
            "main",
            jaxpr,
            [state.type(v.aval) for v in invars],
            [state.type(a) for a in jaxpr.out_avals],
            body,
            public=True,
            arg_attrs=attrs,
            result_attrs=result_attrs,
        )
        try:
            state.module.operation.verify()
        except ir.MLIRError as e:
            raise BackendError(
                f"the StableHLO of {name!r} is malformed, because its jaxpr is or because of an error in weft-native's"
                f" lowering: {e}\nCheck the jaxpr with weft.config.update('verify_jaxprs', True); if it passes, please"
                " report the program."
            ) from e
    return Lowered(state.module, home, kept, unusable, tuple(state.callbacks), stored_outs)
