"""Programs over several devices: which devices they are, and how arguments and results are sharded over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Sequence, TypeAlias

from ..base.avals import ShapeDtypeStruct
from ..core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from ..core.memo import inner_jaxprs, memoized
from ..core.trace import is_array
from ..base.errors import BackendError, at_user_line
from ..base.mesh import Mesh, NamedSharding, P, Sharding, SingleDeviceSharding, canonical_sharding
from ..base.tree import broadcast_prefix

if TYPE_CHECKING:
    from ..base.devices import Device


class Partition(NamedTuple):
    """The placement of a program that runs on several devices, used where other programs have a device."""

    devices: tuple[Any, ...]
    ins: tuple[Any, ...]  # a Sharding for each argument
    outs: tuple[Any, ...]  # a Sharding for each result, or None: the compiler chooses
    mesh: Mesh  # the mesh in which the compiler's choices are expressed

    @property
    def backend(self) -> Any:
        return self.devices[0].backend

    @property
    def platform(self) -> str:
        return self.devices[0].platform

    def with_constants(self, shardings: Sequence[Any]) -> "Partition":
        """The same for a program with more leading arguments."""
        return self._replace(ins=(*shardings, *self.ins))


# Where something is: on a device, on the several of an array or of a program.
Where: TypeAlias = "Device | Sharding | Partition"


def spread_of(x: Any) -> Sharding | None:
    """The sharding of an array on several devices; None for every other value."""
    where = x.device if is_array(x) else x.sharding if isinstance(x, ShapeDtypeStruct) else None
    return where if isinstance(where, Sharding) and where.num_devices > 1 else None


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
    if not (named or found or meshes(jaxpr)):
        return None
    devices: tuple[Any, ...] = ()
    source = ""
    claims = (
        [(s._devices(), f"an argument on {s}") for s in found]
        + [(s._devices(), f"a sharding {s} of the call") for s in named]
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
            for m in [*[getattr(s, "mesh", None) for s in (*named, *found)], *meshes(jaxpr)]
            if m is not None and m.flat_devices == devices
        ),
        None,
    )
    mesh = Mesh(list(devices), ("d",)) if mesh is None else mesh
    wanted_ins, wanted_outs = (
        [s if s is not None and s._devices() == devices else None for s in side] for side in wished(jaxpr)
    )
    anywhere = NamedSharding(mesh, P())
    choose = lambda i: (ins and ins[i]) or placed[i] or wanted_ins[i] or anywhere
    chosen_outs = tuple([(outs and outs[i]) or wanted_outs[i] for i in range(len(jaxpr.outvars))])
    return Partition(tuple(devices), tuple([_on(mesh, choose(i)) for i in range(len(args))]), chosen_outs, mesh)


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
    if ins is None and outs is None and not isinstance(device, Sharding) and not meshes(closed.jaxpr):
        return device
    place = partition_for(closed, args, ins, outs)
    if place is None or place.backend.capabilities.spread is not None:
        return place or device
    return only_device(place.devices, "this program")


def own_place(where: Where) -> Any:
    """A device or a sharding in the form that its backend supports: the only device of the sharding, for a backend
    whose arrays are on one device each.
    """
    if not isinstance(where, Sharding) or where.backend.capabilities.spread is not None:
        return where
    return only_device(where._devices(), "this sharding")


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
        if s is not None and not isinstance(s, Sharding):
            raise TypeError(
                f"{what} takes shardings and specs (weft.NamedSharding, weft.P), or None for no wish; got {s!r}."
            )
    return made
