"""Programs over several devices of the host: the placement that a client names, and its arrays as their parts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from weft.base.avals import ShapedArray, array_type, shaped
from weft.base.devices import addressable
from weft.base.mesh import Mesh, NamedSharding, P, Sharding
from weft.core.jaxpr import Jaxpr
from weft.runtime.backend import Device
from weft.runtime.device import backend_of
from weft.runtime.partition import Partition
from weft_remote import protocol as p
from weft_remote.errors import ProtocolError

from ..sharding import from_xla
from .limits import MOST_DEVICES


def place(m: p.Compile | p.CompileSpread, jaxpr: Jaxpr, known: Sequence[Device]) -> Device | Partition:
    """Where a program runs: on a device, or on several. Raises ProtocolError for a placement that is none."""
    if isinstance(m, p.CompileSpread):
        return partition(m, jaxpr, known)
    return own_device(known, m.device)


def own_device(known: Sequence[Device], index: int) -> Device:
    """A device of this process. Raises ProtocolError for the number of another one."""
    if index >= len(known):
        raise ProtocolError(f"there is no device {index}; there are {len(known)}.")
    if not addressable((known[index],)):
        raise ProtocolError(f"device {index} is another host's; ask that one.")
    return known[index]


def partition(m: p.CompileSpread, jaxpr: Jaxpr, known: Sequence[Device]) -> Partition:
    """Where a program runs. Raises ProtocolError for a placement that is none."""
    if not 2 <= len(m.devices) <= MOST_DEVICES or len(set(m.devices)) != len(m.devices):
        raise ProtocolError("a program is spread over two devices or more, each named once.")
    if max(m.devices) >= len(known):
        raise ProtocolError(f"there is no device {max(m.devices)}; there are {len(known)}.")
    devices = [known[i] for i in m.devices]
    if not addressable(devices):
        raise ProtocolError("none of a program's devices is one of this host.")
    if backend_of(devices[0]).capabilities.spread is None:
        raise ProtocolError(f"the host's backend {backend_of(devices[0]).name} has programs on one device each.")
    meshes = list(_meshes(m.grids, devices))
    if not meshes:
        raise ProtocolError("a placement has one grid of devices at least.")
    avals = [array_type(a) for a in (*jaxpr.in_avals, *jaxpr.out_avals)]
    specs = list(_shardings(m.specs, avals, meshes))
    ins, outs = specs[: len(jaxpr.invars)], specs[len(jaxpr.invars) :]
    if None in ins:
        raise ProtocolError("the host chooses how results are divided, not arguments.")
    return Partition(tuple(devices), tuple(ins), tuple(outs), meshes[0])


class _Numbers:
    """A list of numbers that is read from its beginning."""

    def __init__(self, numbers: Sequence[int]):
        self.numbers, self.at = numbers, 0

    @property
    def left(self) -> int:
        return len(self.numbers) - self.at

    def take(self, count: int = 1) -> Sequence[int]:
        if count > self.left:
            raise ProtocolError("the placement of a program ends too early.")
        self.at += count
        return self.numbers[self.at - count : self.at]

    def one(self) -> int:
        return self.take()[0]


def _meshes(grids: Sequence[int], devices: Sequence[Device]) -> Iterator[Mesh]:
    numbers = _Numbers(grids)
    while numbers.left:
        sizes = list(numbers.take(numbers.one()))
        if prod(sizes) != len(devices):
            raise ProtocolError(f"{len(devices)} devices make no grid of the sizes {sizes}.")
        rest: list[Any] = list(devices)
        for size in reversed(sizes[1:]):
            rest = [rest[at : at + size] for at in range(0, len(rest), size)]
        yield Mesh(rest, tuple([f"axis{k}" for k in range(len(sizes))]))


def _shardings(
    specs: Sequence[int], avals: Sequence[ShapedArray], meshes: Sequence[Mesh]
) -> Iterator[NamedSharding | None]:
    numbers = _Numbers(specs)
    for aval in avals:
        grid = numbers.one()
        if grid == 0:
            yield None
            continue
        if grid > len(meshes):
            raise ProtocolError(f"there is no grid {grid - 1} of devices; there are {len(meshes)}.")
        mesh = meshes[grid - 1]
        entries = []
        for _ in range(min(numbers.one(), numbers.left)):
            axes = numbers.take(numbers.one())
            if any(a >= len(mesh.axis_names) for a in axes):
                raise ProtocolError(f"a grid of {len(mesh.axis_names)} axes has no axis {max(axes)}.")
            entries.append(tuple([mesh.axis_names[a] for a in axes]) or None)
        try:
            sharding = NamedSharding(mesh, P(*entries))
            sharding.check_compatible_aval(aval.shape)
            sharding.shard_shape(aval.shape)
        except ValueError as e:
            raise ProtocolError(f"an array of type {aval.str_short()} can't be divided so: {e}") from None
        yield sharding
    if numbers.left:
        raise ProtocolError("the placement of a program has more entries than the program has arguments and results.")


class Spread:
    """A compiled program over several devices as one of their parts: it takes the parts of its arguments, and gives
    those of its results.
    """

    def __init__(self, compiled: Any, jaxpr: Jaxpr, place: Partition):
        self.compiled, self.place = compiled, place
        self.devices = addressable(place.devices)  # other processes have the other parts
        self.join = place.backend.capabilities.spread
        self.in_avals = [array_type(a) for a in jaxpr.in_avals]
        self.out_avals = [array_type(a) for a in jaxpr.out_avals]
        self.outs: list[Sharding] = [from_xla(s) for s in compiled.out_shardings]

    def in_types(self) -> list[tuple[tuple[int, ...], Any]]:
        return [(a.shape, a.dtype) for a, s in zip(self.in_avals, self.place.ins) for a in [_part(a, s)] * self.count]

    def out_types(self) -> list[ShapedArray]:
        return [a for a, s in zip(self.out_avals, self.outs) for a in [_part(a, s)] * self.count]

    @property
    def count(self) -> int:
        return len(self.devices)

    def execute(self, args: Sequence[Any]) -> list[Any]:
        wholes = [
            self.join(aval, sharding, args[k * self.count : (k + 1) * self.count])
            for k, (aval, sharding) in enumerate(zip(self.in_avals, self.place.ins))
        ]
        return [shard.data for x in self.compiled.execute(wholes) for shard in x.addressable_shards]

    def as_text(self, stage: str | None = None) -> str:
        text: str = self.compiled.as_text(stage)
        return text

    def cost_analysis(self) -> dict[Any, Any]:
        return dict(self.compiled.cost_analysis())

    def memory_analysis(self) -> dict[Any, Any]:
        """Of all devices of this process together."""
        return {k: v * self.count for k, v in self.compiled.memory_analysis().items()}

    def shardings(self) -> str:
        """How the results are divided, as JSON: for each, the axes of the first grid that cut each of its axes."""
        names = self.place.mesh.axis_names
        found = []
        for sharding in self.outs:
            assert isinstance(sharding, NamedSharding) and sharding.mesh == self.place.mesh
            entries = [e if isinstance(e, tuple) else () if e is None else (e,) for e in sharding.spec]
            found.append([[names.index(a) for a in e] for e in entries])
        return json.dumps(found)


def _part(aval: ShapedArray, sharding: Sharding) -> ShapedArray:
    return shaped(sharding.shard_shape(aval.shape), aval.dtype, aval.weak_type)
