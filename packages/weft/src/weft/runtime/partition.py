"""Programs over several devices: which devices they are, and how arguments and results are sharded over them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ContextManager, NamedTuple, Sequence, TypeAlias

from ..base.avals import ShapeDtypeStruct, array_aval

from ..core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from ..core.memo import inner_jaxprs, memoized
from ..core.shardings import placed_of
from ..core.trace import is_array
from ..base.errors import BackendError, at_user_line
from ..base.layout import Format, Layout
from ..base.mesh import (
    AbstractMesh,
    Mesh,
    NamedSharding,
    P,
    Sharding,
    SingleDeviceSharding,
    canonical_sharding,
    get_mesh,
    placing,
    set_mesh,
)
from ..base.tree import broadcast_prefix
from ..primitives.placement import to_memory_p
from ..transforms.constraints import mesh_in_types

if TYPE_CHECKING:
    from ..base.avals import AbstractValue
    from ..base.devices import Device


class Partition(NamedTuple):
    """The placement of a program that runs on several devices, used where other programs have a device."""

    devices: tuple[Any, ...]
    ins: tuple[Any, ...]  # a Sharding for each argument
    outs: tuple[Any, ...]  # a Sharding for each result, or None: the compiler chooses
    mesh: Mesh  # the mesh in which the compiler's choices are expressed
    # for each argument and each result a Layout, Layout.AUTO or None: row by row; empty where all are None
    in_layouts: tuple[Any, ...] = ()
    out_layouts: tuple[Any, ...] = ()

    @property
    def backend(self) -> Any:
        return self.devices[0].backend

    @property
    def platform(self) -> str:
        return self.devices[0].platform

    def with_constants(self, shardings: Sequence[Any]) -> "Partition":
        """The same for a program with more leading arguments."""
        layouts = (*[None] * len(shardings), *self.in_layouts) if self.in_layouts else ()
        return self._replace(ins=(*shardings, *self.ins), in_layouts=layouts)


# Where something is: on a device, on the several of an array or of a program.
Where: TypeAlias = "Device | Sharding | Partition"


def spread_of(x: Any) -> Sharding | None:
    """The sharding of an array on several devices; None for every other value."""
    where = x.device if is_array(x) else canonical_sharding(x.sharding) if isinstance(x, ShapeDtypeStruct) else None
    return where if isinstance(where, Sharding) and where.num_devices > 1 else None


def mesh_in_force() -> Mesh | None:
    """The mesh of several devices on which programs run, whatever their arguments say; None if none is set."""
    mesh = placing.get()
    return mesh if isinstance(mesh, Mesh) and mesh.size > 1 else None


def place_in_force(committed: Device | None = None) -> NamedSharding | None:
    """All devices of the mesh that is set; None if none is set. Raises ValueError if an argument is committed to
    another place.
    """
    mesh = mesh_in_force()
    if mesh is None:
        return None
    if committed is not None:
        raise incompatible(f"the mesh that is set is {mesh}", f"an argument is committed to {committed}")
    return NamedSharding(mesh, P())


def off_mesh() -> ContextManager[object]:
    """A block in which programs run where their arguments are, whichever mesh is set."""
    return nullcontext() if mesh_in_force() is None else set_mesh(None)


def _sharding_of(x: Any) -> Sharding:
    return x.device if isinstance(x.device, Sharding) else SingleDeviceSharding(x.device)


@memoized
def meshes(jaxpr: Jaxpr) -> tuple[Any, ...]:
    """The meshes that a program names, in order."""
    seen: dict[Any, Any] = {}
    for eqn in jaxpr.eqns:
        for mesh in (eqn.params.get("mesh"), getattr(eqn.params.get("sharding"), "mesh", None)):
            if isinstance(mesh, Mesh):
                seen[mesh] = None
    for inner in inner_jaxprs(jaxpr):
        seen.update(dict.fromkeys(meshes(inner)))
    return tuple(seen)


@memoized
def wished(jaxpr: Jaxpr) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The shardings that a program itself requires: (of arguments, of results), None for those without a
    requirement.
    """
    ins: dict[Any, Any] = {}
    outs: dict[Any, Any] = {}
    takes: Sequence[Any]
    gives: Sequence[Any]
    for eqn in jaxpr.eqns:
        primitive, operands = eqn.primitive, eqn.invars
        called = None if primitive.carries is None else primitive.carries.call(eqn.params, operands)
        if called is not None:
            operands = called[1]
            takes, gives = wished(called[0].jaxpr)
        elif primitive.asks_shardings is not None:
            takes, gives = primitive.asks_shardings(eqn.params)
        else:
            continue
        for atom, sharding in zip(operands, takes):
            if sharding is not None and type(atom) is not Literal:
                ins.setdefault(atom, sharding)
        outs.update({v: s for v, s in zip(eqn.outvars, gives) if s is not None})
    return (
        tuple([ins.get(v) for v in jaxpr.invars]),
        tuple([None if type(a) is Literal else outs.get(a) for a in jaxpr.outvars]),
    )


@memoized
def memories(jaxpr: Jaxpr) -> tuple[str | None, ...]:
    """For each result the kind of memory to which the program itself moves it last, or None."""
    kinds: dict[Any, str | None] = {}
    for eqn in jaxpr.eqns:
        called = None if eqn.primitive.carries is None else eqn.primitive.carries.call(eqn.params, eqn.invars)
        if called is not None:
            kinds.update(zip(eqn.outvars, memories(called[0].jaxpr)))
        elif eqn.primitive is to_memory_p:
            kinds[eqn.outvars[0]] = eqn.params["memory"]
    return tuple([None if type(a) is Literal else kinds.get(a) for a in jaxpr.outvars])


def partition_for(
    closed: ClosedJaxpr, args: Sequence[Any], ins: Sequence[Any] | None = None, outs: Sequence[Any] | None = None
) -> Partition | None:
    """How a program is distributed over devices; None for one that runs on a single device.

    `ins` and `outs` are the shardings that a user requested. Otherwise arguments stay on their devices, host values and
    uncommitted arrays are put where the program first needs them, and results are placed by the program or the
    compiler.
    """
    jaxpr = closed.jaxpr
    placed = [spread_of(x) for x in args]
    constant = [spread_of(c) for c in closed.consts]
    named = [s for s in (*(ins or ()), *(outs or ())) if s is not None]
    found = [s for s in (*placed, *constant) if s is not None]
    typed, in_force = mesh_in_types(jaxpr), mesh_in_force()
    if not (named or found or meshes(jaxpr) or typed or in_force):
        return None
    if typed is not None and not (named or found or meshes(jaxpr) or in_force):
        named = [NamedSharding(_context_mesh_like(typed), P())]
    if in_force is not None:
        _check_types(closed.in_avals, in_force)
    devices: tuple[Any, ...] = ()
    source = ""
    claims = (
        [(s._devices(), f"an argument on {s}") for s in found]
        + [(s._devices(), f"a sharding {s} of the call") for s in named]
        + ([(in_force.flat_devices, f"the mesh that is set, {in_force}")] if in_force else [])
        + [(m.flat_devices, f"the program's {m}") for m in sorted(meshes(jaxpr), key=lambda m: -m.size)]
    )
    for where, what in claims:
        if not source:
            devices, source = where, what
        elif set(devices) > set(where) and what.startswith("the program's"):
            continue  # a pmap over fewer devices
        elif set(devices) != set(where):
            raise incompatible(source, what)
        elif devices != where:
            raise ValueError(
                f"Received incompatible devices for jitted computation: {source} and {what} have the same devices in"
                " another order. Make both from one mesh."
            )
    for x, wanted in zip(args, ins or ()):
        if (
            wanted is not None
            and is_array(x)
            and x.committed
            and not _sharding_of(x).is_equivalent_to(wanted, len(x.shape))
        ):
            raise ValueError(
                "Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding:"
                f" {wanted},\narg sharding: {_sharding_of(x)} for arg type: {x.aval.str_short(short_dtypes=False)}."
                " Move it with weft.device_put."
            )
    for x in args:
        if is_array(x) and x.committed and spread_of(x) is None and devices != _sharding_of(x)._devices():
            raise incompatible(source, f"an argument committed to {x.device}")
    mesh = next(
        (
            m
            for m in [*[getattr(s, "mesh", None) for s in (*named, *found)], in_force, *meshes(jaxpr)]
            if m is not None and m.flat_devices == devices
        ),
        None,
    )
    mesh = Mesh(list(devices), ("d",)) if mesh is None else mesh
    wanted_ins, wanted_outs = (
        [s if s is not None and s._devices() == devices else None for s in side] for side in wished(jaxpr)
    )
    anywhere = NamedSharding(mesh, P())
    typed_ins = [_on_mesh(a, mesh) for a in closed.in_avals]
    typed_outs = [(typed or in_force) and _on_mesh(a, mesh, True) for a in closed.out_avals]
    choose = lambda i: (ins and ins[i]) or placed[i] or wanted_ins[i] or typed_ins[i] or anywhere
    chosen_outs = tuple([(outs and outs[i]) or typed_outs[i] or wanted_outs[i] for i in range(len(jaxpr.outvars))])
    return Partition(tuple(devices), tuple([_on(mesh, choose(i)) for i in range(len(args))]), chosen_outs, mesh)


def _check_types(avals: Sequence[AbstractValue], mesh: Mesh) -> None:
    """Raises ValueError for an argument that is divided along another mesh than the one that is set."""
    for aval in avals:
        placed = placed_of(aval)
        if placed is not None and placed.mesh.shape_tuple != mesh.shape_tuple:
            raise incompatible(f"the mesh that is set is {mesh}", f"an argument {aval.str_short()} is on {placed.mesh}")


def _on_mesh(aval: AbstractValue, mesh: Mesh, always: bool = False) -> NamedSharding | None:
    """Where a value lies by its type, on a mesh; None if the type leaves that open: it does not say anything (`always`:
    that the value is whole), or the compiler chooses along other axes.
    """
    placed = placed_of(aval)
    if placed is None and not always or not mesh.are_all_axes_explicit:
        return None
    return NamedSharding(mesh, P(*[None] * len(array_aval(aval).shape)) if placed is None else placed.spec)


def _context_mesh_like(mesh: AbstractMesh) -> Mesh:
    """The mesh that is set, on whose devices a program runs whose types speak of the mesh `mesh`."""
    found = get_mesh()
    if found.shape_tuple != mesh.shape_tuple:
        raise ValueError(
            at_user_line(
                f"the types of this program divide values along {mesh}, and no argument says on which devices these"
                f" are. Set the mesh, with weft.set_mesh(mesh), or put an argument there with weft.device_put."
            )
        )
    return found


def _on(mesh: Mesh, sharding: Sharding) -> Sharding:
    """A sharding of a single device as a sharding over a mesh of that device."""
    return NamedSharding(mesh, P()) if isinstance(sharding, SingleDeviceSharding) else sharding


def incompatible(one: str, other: str) -> ValueError:
    return ValueError(
        f"Received incompatible devices for jitted computation: {one}, but {other}. Move one of them with"
        " weft.device_put."
    )


def place_of(closed: ClosedJaxpr, args: Sequence[Any], device: Where | None, ins: Any = None, outs: Any = None) -> Any:
    """Where a program runs: `device`, or a Partition where the program, an argument or the caller asks for several."""
    jaxpr = closed.jaxpr
    named = ins is not None or outs is not None or isinstance(device, Sharding)  # as that of the mesh that is set
    if not (named or meshes(jaxpr) or mesh_in_types(jaxpr) is not None):
        return device
    if any(isinstance(s, Format) for s in (*(ins or ()), *(outs or ()))):
        return _laid_out(closed, args, device, ins, outs)
    place = partition_for(closed, args, ins, outs)
    if place is None or place.backend.capabilities.spread is not None:
        return place or device
    return only_device(place.devices, "this program")


def _laid_out(closed: ClosedJaxpr, args: Sequence[Any], device: Where | None, ins: Any, outs: Any) -> Any:
    """The place of a program whose caller has asked for layouts."""
    places, layouts = [], []
    for side, count in ((ins, len(args)), (outs, len(closed.out_avals))):
        formats = [s if isinstance(s, Format) else Format(None, s) for s in side or [None] * count]
        places.append([f.sharding for f in formats])
        layouts.append(tuple([f.layout for f in formats]))
    for layout, aval in zip((*layouts[0], *layouts[1]), (*closed.in_avals, *closed.out_avals)):
        if isinstance(layout, Layout):
            layout.check_compatible_aval(aval.shape)
    place = place_of(closed, args, device, *places)
    backend = place.backend
    if backend.capabilities.relaid is None:  # AUTO is what such a backend has
        wished = [x for side in layouts for x in side if isinstance(x, Layout) and not x.is_row_major]
        if wished:
            raise BackendError(
                at_user_line(
                    f"the {backend.name} backend keeps arrays row by row, and {wished[0]} is another order. Leave the"
                    " layouts out, or run on 'cpu'."
                )
            )
        return place
    if type(place) is not Partition:
        mesh = Mesh([place], ("d",))
        here = NamedSharding(mesh, P())
        place = Partition((place,), (here,) * len(args), (here,) * len(closed.out_avals), mesh)
    return place._replace(in_layouts=layouts[0], out_layouts=layouts[1])


def own_place(where: Where) -> Any:
    """A device or a sharding in the form that its backend supports: the only device of the sharding, for a backend
    whose arrays are on one device each.
    """
    if not isinstance(where, Sharding):
        return where
    found: Sharding = canonical_sharding(where)
    return found if found.backend.capabilities.spread is not None else only_device(found._devices(), "this sharding")


def only_device(devices: Sequence[Any], what: str) -> Any:
    """The device of a program or an array of a backend that supports one device for each. Raises BackendError for
    several.
    """
    if len(devices) > 1:
        raise BackendError(
            at_user_line(
                f"the {devices[0].backend.name} backend has arrays and programs on one device each, and {what} asks for"
                f" {len(devices)} ({', '.join(map(str, devices[:3]))}{', …' if len(devices) > 3 else ''}). Use a mesh"
                " of one device, or weft.vmap."
            )
        )
    return devices[0]


def flat_shardings(what: str, prefix: Any, values: Any) -> list[Any] | None:
    """The sharding of each leaf of `values`, from a pytree prefix of shardings, specs and None."""
    if prefix is None:
        return None
    try:
        flat = broadcast_prefix(prefix, values)
    except ValueError as e:
        raise ValueError(
            f"{what} must be a sharding, or a pytree prefix of the"
            f" {'arguments' if what == 'in_shardings' else 'results'}: {e}."
        ) from e
    made = [canonical_sharding(s) for s in flat]
    for s in made:
        if s is not None and not isinstance(s, (Sharding, Format)):
            raise TypeError(
                f"{what} takes shardings and specs (weft.NamedSharding, weft.P), or None for no wish; got {s!r}."
            )
    return made
