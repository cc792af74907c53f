"""How arrays are divided among several devices: meshes of devices with named axes, and which of these cut which axes of
an array.

Example:
    >>> import weft
    >>> mesh = weft.make_mesh((1,), ("x",))
    >>> weft.NamedSharding(mesh, weft.P("x")).shard_shape((4, 2))
    (4, 2)
"""

from __future__ import annotations

import enum
import functools
import itertools
import math
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn, Sequence

from .annotations import override
from .config import config
from .devices import addressable, flatten_devices, local_grid
from .host import np, require_numpy
from .spec import P as P, PartitionSpec as PartitionSpec, axes_of as axes_of, named_axes

_context_mesh = config.define("context_mesh", None, traced=True, doc="The mesh that weft.set_mesh has set.")
_option = _context_mesh.option
placing = config.define(
    "placing_mesh", None, traced=True, doc="The mesh on whose devices programs run, as weft.set_mesh has said."
).option


class AxisType(enum.Enum):
    """What decides how values are laid out along an axis of a mesh: the compiler (`Auto`), the values' types
    (`Explicit`) or the program (`Manual`, inside `shard_map`).

    Example:
        >>> import weft
        >>> weft.make_mesh((1,), ("x",), axis_types=(weft.sharding.AxisType.Auto,)).axis_types
        (Auto,)
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    @override
    def __repr__(self):
        return self.name


# meshes --------------------------------------------------------------------------------------------------------------


def _types(axis_types, n: int) -> tuple:
    if axis_types is None:
        return (AxisType.Auto,) * n
    types = tuple(axis_types) if isinstance(axis_types, (tuple, list)) else (axis_types,) * n
    if len(types) != n:
        raise ValueError(f"axis_types must name a type for each of the {n} axes, got {axis_types}.")
    for t in types:
        if not isinstance(t, AxisType):
            raise TypeError(f"axis_types must hold members of weft.sharding.AxisType, got {t!r}.")
    return types


class _MeshAxes:
    """The part that meshes with and without devices share: named axes, their sizes and types."""

    axis_names: tuple
    axis_sizes: tuple
    axis_types: tuple

    shape = property(lambda self: OrderedDict(zip(self.axis_names, self.axis_sizes)))
    shape_tuple = property(lambda self: tuple(zip(self.axis_names, self.axis_sizes)))
    size = property(lambda self: math.prod(self.axis_sizes))
    empty = property(lambda self: not self.axis_names)

    def _of_type(self, kind: AxisType) -> tuple:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types) if t is kind)

    auto_axes = property(lambda self: self._of_type(AxisType.Auto))
    explicit_axes = property(lambda self: self._of_type(AxisType.Explicit))
    manual_axes = property(lambda self: self._of_type(AxisType.Manual))
    are_all_axes_auto = property(lambda self: len(self.auto_axes) == len(self.axis_names))
    are_all_axes_explicit = property(lambda self: len(self.explicit_axes) == len(self.axis_names))
    are_all_axes_manual = property(lambda self: len(self.manual_axes) == len(self.axis_names))

    @property
    def typed_axes(self) -> tuple:
        """The axes of which types speak: those that are explicit. One device has all of an array."""
        return self.explicit_axes if self.size > 1 else ()

    def _init_axes(self, sizes, names, types):
        self.axis_sizes, self.axis_names = tuple(sizes), tuple(names) if isinstance(names, (tuple, list)) else (names,)
        if len(self.axis_sizes) != len(self.axis_names):
            raise ValueError(
                f"a mesh needs one name for each axis: the sizes are {self.axis_sizes}, the names {self.axis_names}."
            )
        if len(set(self.axis_names)) != len(self.axis_names):
            raise ValueError(f"the axes of a mesh must have different names, got {self.axis_names}.")
        self.axis_types = _types(types, len(self.axis_names))

    @override
    def __str__(self):
        inner = ", ".join(f"{n!r}: {s}" for n, s in self.shape_tuple)
        types = f"({', '.join(map(repr, self.axis_types))}{',' if len(self.axis_types) == 1 else ''})"
        return (
            f"{type(self).__name__}({inner}{', ' if inner else ''}axis_types={types})"
            if self.axis_names
            else f"{type(self).__name__}()"
        )


@dataclass(frozen=True)
class AbstractDevice:
    """The kind of a device that need not be there.

    Args:
        device_kind: str, as `Device.device_kind`.
        num_cores: int, how many cores it has; None if that says nothing of it.
        platform: str, as "cpu" or "tpu".

    Example:
        >>> import weft
        >>> weft.sharding.Mesh(weft.devices("cpu")[:1], ("x",)).abstract_mesh.abstract_device
        AbstractDevice(device_kind=cpu, num_cores=None, platform=cpu)
    """

    device_kind: str
    num_cores: int | None
    platform: str

    @override
    def __repr__(self):
        return f"AbstractDevice({self._told()})"

    def _told(self) -> str:
        return f"device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform}"


class AbstractMesh(_MeshAxes):
    """Axes without devices: enough to trace a program that will run on a mesh of this shape.

    Args:
        axis_sizes: sequence of ints.
        axis_names: sequence of names, one for each axis.
        axis_types: sequence of `AxisType`, or one for all axes; None for `Auto`.
        abstract_device: `AbstractDevice`, the kind of the devices; None for any.

    Example:
        >>> import weft
        >>> weft.sharding.AbstractMesh((2, 4), ("x", "y")).size
        8
    """

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: Sequence,
        axis_types=None,
        *,
        abstract_device: AbstractDevice | None = None,
    ):
        self._init_axes(axis_sizes, axis_names, axis_types)
        self.abstract_device = abstract_device
        self._key = (self.axis_sizes, self.axis_names, self.axis_types, abstract_device)
        self._hash = hash(self._key)

    abstract_mesh = property(lambda self: self)

    def same_axes(self, other: AbstractMesh) -> bool:
        """Whether a mesh of the other's axes may be one of these, on the same kind of devices."""
        kinds = {self.abstract_device, other.abstract_device} - {None}
        return self._key[:3] == other._key[:3] and len(kinds) < 2

    @property
    def devices(self) -> NoReturn:
        """Raises ValueError: this mesh has no devices."""
        raise ValueError(
            f"{self} has no devices, and no mesh with these axes is set. Make one of weft.make_mesh, and set it with"
            " weft.set_mesh or give it in the place of this one."
        )

    @property
    def flat_devices(self) -> tuple[Any, ...]:
        """Raises ValueError: this mesh has no devices."""
        return self.devices

    def update(
        self,
        axis_sizes: Sequence[int] | None = None,
        axis_names: Any = None,
        axis_types: Any = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ) -> AbstractMesh:
        """A copy with other sizes, names or types, or for other devices."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            abstract_device=self.abstract_device if abstract_device is None else abstract_device,
        )

    def update_axis_types(self, name_to_type: dict) -> "AbstractMesh":
        """A copy in which the named axes have other types."""
        return self.update(axis_types=tuple(name_to_type.get(n, t) for n, t in zip(self.axis_names, self.axis_types)))

    @override
    def __eq__(self, other):
        return type(other) is AbstractMesh and self._key == other._key

    @override
    def __hash__(self):
        return self._hash

    @override
    def __str__(self):
        shown = super().__str__()
        return shown if self.abstract_device is None else f"{shown[:-1]}, {self.abstract_device._told()})"

    __repr__ = __str__


class Mesh(_MeshAxes):
    """A grid of devices whose axes have names.

    A mesh is also a context manager: in its block, specs without a mesh, such as
    `weft.lax.with_sharding_constraint(x, P("x"))`, refer to it.

    Args:
        devices: NumPy array or nested sequence of devices, with one axis for each name.
        axis_names: sequence of names.
        axis_types: sequence of `AxisType`, or one for all axes; None for `Auto`.

    Raises:
        ValueError: for ragged sequences, repeated devices or names, and another number of names than axes.

    Example:
        >>> import weft
        >>> weft.sharding.Mesh(weft.devices()[:1], ("x",)).shape["x"]
        1
    """

    def __init__(self, devices, axis_names: Any, axis_types=None):
        flat, shape = flatten_devices(devices)
        self._init_axes(shape, axis_names, axis_types)
        if len(set(map(id, flat))) != len(flat):
            raise ValueError("a device may stand in a mesh only once.")
        self.flat_devices = tuple(flat)
        self._key = (self.axis_sizes, self.axis_names, self.axis_types, self.flat_devices)
        self._hash = hash(self._key)
        self._tokens: list = []

    @property
    def devices(self):
        """NumPy array of the devices, of the mesh's shape."""
        require_numpy("Mesh.devices")
        grid = np.empty(len(self.flat_devices), dtype=object)
        grid[:] = self.flat_devices
        return grid.reshape(self.axis_sizes)

    @property
    def device_ids(self):
        """NumPy array of the devices' ids, of the mesh's shape."""
        require_numpy("Mesh.device_ids")
        return np.array([d.id for d in self.flat_devices]).reshape(self.axis_sizes)

    @functools.cached_property
    def abstract_mesh(self) -> AbstractMesh:
        """The same axes, and the kind of the devices if they are of one."""
        # jaxlib's devices say how many cores they have only where it matters, on TPUs
        kinds = {(d.device_kind, getattr(d, "num_cores", None), d.platform) for d in self.flat_devices}
        device = AbstractDevice(*kinds.pop()) if len(kinds) == 1 else None
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=device)

    local_mesh = property(lambda self: self.update(local_grid(self.flat_devices, self.axis_sizes)))
    local_devices = property(lambda self: list(addressable(self.flat_devices)))
    is_multi_process = property(lambda self: len({d.process_index for d in self.flat_devices}) > 1)
    is_scalar = property(lambda self: self.axis_sizes == () and len(self.flat_devices) == 1)

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """A copy with other devices, names or types."""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __enter__(self):
        self._tokens.append(_option.set_here(self))
        config._notify("context_mesh")
        return self

    def __exit__(self, *exc):
        _option.restore(self._tokens.pop())
        config._notify("context_mesh")

    @override
    def __eq__(self, other):
        return self is other or type(other) is Mesh and self._hash == other._hash and self._key == other._key

    @override
    def __hash__(self):
        return self._hash

    @override
    def __reduce__(self):
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def __deepcopy__(self, memo):
        return self

    @override
    def __repr__(self):
        types = f"({', '.join(map(repr, self.axis_types))}{',' if len(self.axis_types) == 1 else ''})"
        return f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, axis_types={types})"


def grid_mesh(devices: Sequence, sizes: Sequence[int], names: Sequence, types=None) -> Mesh:
    """A mesh over devices given in row-major order."""
    nested: Any = list(devices)
    for n in reversed(tuple(sizes)[1:]):
        nested = [nested[i : i + n] for i in range(0, len(nested), n)]
    return Mesh(nested, names, types)


def retyped(mesh: Mesh | AbstractMesh, types: dict) -> Mesh | AbstractMesh:
    """The mesh with other types of the named axes."""
    if isinstance(mesh, AbstractMesh):
        return mesh.update_axis_types(types)
    kinds = mesh.abstract_mesh.update_axis_types(types).axis_types
    return grid_mesh(mesh.flat_devices, mesh.axis_sizes, mesh.axis_names, kinds)


class set_mesh:
    """Sets the mesh to which specs without a mesh refer and on whose devices programs run: permanently if it is called,
    for a block if it is used in a `with` statement.

    What is computed then lies on all devices of the mesh, whole on each unless its program or an argument says
    otherwise. Arrays that were put on other devices raise a ValueError. A mesh of one device moves nothing.

    Example:
        >>> import weft
        >>> with weft.set_mesh(weft.make_mesh((1,), ("x",))):
        ...     weft.sharding.get_mesh().axis_names
        ('x',)
    """

    _options: tuple[Any, ...] = (_option, placing)

    def __init__(self, mesh: Mesh | AbstractMesh | None):
        if mesh is not None and not isinstance(mesh, (Mesh, AbstractMesh)):
            raise ValueError(f"set_mesh takes a weft.sharding.Mesh, got {mesh!r}.")
        self._before = [option.set_here(mesh) for option in self._options]
        config._notify("context_mesh")

    def __enter__(self):
        return config.context_mesh

    def __exit__(self, *exc):
        for option, before in zip(self._options, self._before):
            option.restore(before)
        config._notify("context_mesh")


class use_mesh(set_mesh):
    """Context manager; the same as `set_mesh` in a `with` statement.

    Example:
        >>> import weft
        >>> with weft.sharding.use_mesh(weft.make_mesh((1,), ("x",))):
        ...     weft.sharding.get_mesh().axis_names
        ('x',)
    """


class use_abstract_mesh(set_mesh):
    """Context manager: in its block, `get_abstract_mesh()` returns this mesh, for tracing without devices.

    Example:
        >>> import weft
        >>> with weft.sharding.use_abstract_mesh(weft.sharding.AbstractMesh((2,), ("x",))):
        ...     weft.sharding.get_abstract_mesh().size
        2
    """

    _options = (_option,)


def get_mesh() -> Mesh:
    """The mesh that is set.

    Returns:
        `Mesh`; one without axes if none is set.

    Example:
        >>> import weft
        >>> weft.sharding.get_mesh().empty
        True
    """
    found = config.context_mesh
    return found if isinstance(found, Mesh) else _EMPTY


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the mesh that is set.

    Returns:
        `AbstractMesh`; one without axes if no mesh is set.

    Example:
        >>> import weft
        >>> weft.sharding.get_abstract_mesh()
        AbstractMesh()
    """
    found = config.context_mesh
    return _EMPTY_AXES if found is None else found.abstract_mesh


class _EmptyMesh(Mesh):
    """No device, no axis."""

    def __init__(self):
        self._init_axes((), (), None)
        self.flat_devices, self._tokens = (), []
        self._key = ((), (), (), ())
        self._hash = hash(self._key)

    size = property(lambda self: 0)
    local_mesh = property(lambda self: self)


_EMPTY, _EMPTY_AXES = _EmptyMesh(), AbstractMesh((), ())


# shardings -----------------------------------------------------------------------------------------------------------


class Sharding:
    """How an array is divided among devices. Each device holds one part of the array, or a copy of one.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> isinstance(jnp.ones(3).sharding, weft.sharding.Sharding)
        True
    """

    _memory_kind: str | None = None

    def _devices(self) -> tuple:
        """The devices, in the order of the program's partitions."""
        raise NotImplementedError

    def _tiles(self, ndim: int) -> tuple[tuple, list]:
        """(into how many parts each axis is cut, for each device the position of its part along each axis)."""
        raise NotImplementedError

    backend = property(lambda self: self._devices()[0].backend)
    platform = property(lambda self: self._devices()[0].platform)
    device_set = property(lambda self: set(self._devices()))
    num_devices = property(lambda self: len(self._devices()))
    memory_kind = property(lambda self: self._memory_kind or "device")
    is_fully_addressable = property(lambda self: len(addressable(self._devices())) == self.num_devices)
    has_addressable_devices = property(lambda self: bool(addressable(self._devices())))
    addressable_devices = property(lambda self: set(addressable(self._devices())))
    # names that libraries use
    _device_assignment = property(lambda self: self._devices())
    _addressable_device_assignment = property(lambda self: tuple(addressable(self._devices())))

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        raise NotImplementedError

    def with_memory_kind(self, kind: str) -> Sharding:
        """The same sharding in another memory of the devices."""
        raise NotImplementedError

    def shard_shape(self, global_shape: Sequence[int]) -> tuple:
        """The shape of each device's part. Raises ValueError if an axis can't be cut evenly."""
        shape = tuple(global_shape)
        parts, _ = self._tiles(len(shape))
        for i, (n, k) in enumerate(zip(shape, parts)):
            if n % k:
                raise ValueError(
                    f"Sharding {self} implies that array axis {i} is partitioned {k} times, but the dimension size is"
                    f" {n} (full shape: {shape}). Pad the array to a multiple of {k}, or leave the axis whole."
                )
        return tuple(n // k for n, k in zip(shape, parts))

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict:
        """For each device the slices of the array that it holds."""
        shape = tuple(global_shape)
        local = self.shard_shape(shape)
        parts, places = self._tiles(len(shape))
        return {
            d: tuple(slice(None) if k == 1 else slice(c * n, (c + 1) * n) for c, n, k in zip(place, local, parts))
            for d, place in zip(self._devices(), places)
        }

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict:
        """The same for the devices of this process."""
        parts = self.devices_indices_map(global_shape)
        return {d: parts[d] for d in addressable(self._devices())}

    def is_equivalent_to(self, other: "Sharding", ndim: int) -> bool:
        """Whether both put the same parts of an array of `ndim` axes on the same devices."""
        return (
            self._devices() == other._devices()
            and self._tiles(ndim) == other._tiles(ndim)
            and self.memory_kind == other.memory_kind
        )


def _checked_memory(kind: str | None, device=None) -> str | None:
    """Returns a kind of memory if `device` has it; raises ValueError otherwise."""
    if kind is not None and device is not None:
        kinds = device.backend.capabilities.memory_kinds(device)
        if kind not in kinds:
            raise ValueError(
                f"the device {device} has no memory of kind {kind!r}; it has {', '.join(map(repr, kinds))}."
            )
    return kind


class SingleDeviceSharding(Sharding):
    """The whole array on one device, in the memory `memory_kind` (None: its default).

    Example:
        >>> import weft
        >>> weft.sharding.SingleDeviceSharding(weft.devices()[0]).is_fully_replicated
        True
    """

    def __init__(self, device, *, memory_kind: str | None = None):
        self._device, self._memory_kind = device, _checked_memory(memory_kind, device)

    is_fully_replicated = property(lambda self: True)

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Does nothing, because an array of any shape fits on one device."""

    @override
    def _devices(self) -> tuple:
        return (self._device,)

    @override
    def _tiles(self, ndim: int):
        return (1,) * ndim, [(0,) * ndim]

    @override
    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """The same device with another memory."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    @override
    def __eq__(self, other):
        return (
            isinstance(other, SingleDeviceSharding)
            and self._device == other._device
            and self.memory_kind == other.memory_kind
        )

    @override
    def __hash__(self):
        return hash((self._device, self.memory_kind))

    @override
    def __repr__(self):
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"


def make_single_device_sharding(device, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """The sharding of an array on one device.

    Args:
        device: device.
        memory_kind: name of one of the device's memories; None for its default.

    Returns:
        `SingleDeviceSharding`.

    Raises:
        ValueError: if the device has no such memory.

    Example:
        >>> import weft
        >>> weft.sharding.make_single_device_sharding(weft.devices()[0]).num_devices
        1
    """
    return SingleDeviceSharding(device, memory_kind=memory_kind)


class NamedSharding(Sharding):
    """An array cut along the axes of a mesh as a `PartitionSpec` says, and copied along the axes that the spec does not
    name.

    Args:
        mesh: `Mesh` or `AbstractMesh`.
        spec: `PartitionSpec`.
        memory_kind: name of one of the devices' memories; None for their default.

    Raises:
        TypeError: if `spec` is not a `PartitionSpec`.
        ValueError: if the spec names an axis that the mesh does not have, or the devices have no such memory.

    Example:
        >>> import weft
        >>> mesh = weft.make_mesh((1,), ("x",))
        >>> weft.NamedSharding(mesh, weft.P("x")).spec
        P('x',)
    """

    def __init__(
        self,
        mesh: Mesh | AbstractMesh,
        spec: PartitionSpec,
        *,
        memory_kind: str | None = None,
        _logical_device_ids: None = None,
    ):
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"NamedSharding takes a weft.P as its spec, got {spec!r}.")
        self.mesh, self.spec, self._memory_kind = (
            mesh,
            spec,
            _checked_memory(memory_kind, *mesh.flat_devices[:1] if isinstance(mesh, Mesh) else ()),
        )
        sizes = dict(mesh.shape_tuple)
        for axes in (named_axes(spec), spec.unreduced, spec.reduced):
            for name in axes:
                if name not in sizes:
                    raise ValueError(
                        f"the axis {name!r} of {spec} is not an axis of the mesh, whose axes are {mesh.axis_names}."
                    )
        self._hash: int | None = None
        self._known: dict = {}

    @override
    def _devices(self) -> tuple:
        return self.mesh.flat_devices

    @override
    def _tiles(self, ndim: int):
        found = self._known.get(ndim)
        if found is None:
            self._check_rank(ndim)
            sizes, names = self.mesh.axis_sizes, self.mesh.axis_names
            along = [[names.index(a) for a in axes_of(p)] for p in self.spec.partitions[:ndim]] + [[]] * (
                ndim - len(self.spec)
            )
            parts = tuple(math.prod([sizes[i] for i in axes]) for axes in along)
            places = []
            for coords in itertools.product(*map(range, sizes)):
                place = []
                for axes in along:
                    c = 0
                    for i in axes:
                        c = c * sizes[i] + coords[i]
                    place.append(c)
                places.append(tuple(place))
            found = self._known[ndim] = parts, places
        return found

    def _check_rank(self, ndim: int) -> None:
        if len(self.spec) > ndim:
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but was applied to a"
                f" value of rank {ndim}."
            )

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """Raises ValueError for a shape with fewer axes than the spec has entries."""
        self._check_rank(len(aval_shape))

    is_fully_replicated = property(lambda self: all(self.mesh.shape[a] == 1 for p in self.spec for a in axes_of(p)))
    replicated_axes = property(
        lambda self: frozenset(self.mesh.axis_names) - {a for p in self.spec for a in axes_of(p)}
    )

    @override
    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The same sharding in another memory of the devices."""
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def update(
        self,
        *,
        mesh: Mesh | AbstractMesh | None = None,
        spec: PartitionSpec | Sequence[Any] | None = None,
        memory_kind: str | None = None,
    ) -> NamedSharding:
        """A copy with another mesh, spec or memory."""
        spec = self.spec if spec is None else spec
        return NamedSharding(
            self.mesh if mesh is None else mesh,
            spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec),
            memory_kind=self._memory_kind if memory_kind is None else memory_kind,
        )

    @override
    def __eq__(self, other):
        return (
            self is other
            or isinstance(other, NamedSharding)
            and self.spec == other.spec
            and self.mesh == other.mesh
            and self.memory_kind == other.memory_kind
        )

    @override
    def __hash__(self):
        if self._hash is None:
            self._hash = hash((self.mesh, self.spec, self.memory_kind))
        return self._hash

    @override
    def __reduce__(self):
        return _named_sharding, (self.mesh, self.spec, self._memory_kind)

    @override
    def __repr__(self):
        kind = f", memory_kind={self.memory_kind}" if isinstance(self.mesh, Mesh) else ""
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{kind})"


def _named_sharding(mesh: Mesh | AbstractMesh, spec: PartitionSpec, memory_kind: str | None) -> NamedSharding:
    return NamedSharding(mesh, spec, memory_kind=memory_kind)


@lru_cache(4096)
def sharding_in_types(mesh: AbstractMesh, spec: PartitionSpec, ndim: int) -> NamedSharding | None:
    """The sharding that the type of an array of `ndim` axes has: what a spec says of the explicit axes of a mesh. None
    if these leave the array whole, as if there were no mesh.
    """
    explicit = frozenset(mesh.typed_axes)
    parts = []
    for part in spec.partitions[:ndim]:
        named = tuple([a for a in axes_of(part) if a in explicit])
        parts.append(named[0] if len(named) == 1 else named or None)
    unreduced, reduced = spec.unreduced & explicit, spec.reduced & explicit
    if not (unreduced or reduced or any([part is not None for part in parts])):
        return None
    parts += [None] * (ndim - len(parts))
    return NamedSharding(mesh, PartitionSpec(*parts, unreduced=unreduced, reduced=reduced))


def type_of_sharding(where: Any, ndim: int) -> NamedSharding | None:
    """The sharding in the type of an array of `ndim` axes that lies as `where` says."""
    if not isinstance(where, NamedSharding) or not where.mesh.typed_axes:
        return None
    return sharding_in_types(where.mesh.abstract_mesh, where.spec, ndim)


def canonical_sharding(where: Any) -> Any:
    """A Sharding from a user's argument: a Sharding, or a PartitionSpec that refers to the mesh that is set. A sharding
    over an AbstractMesh is over the mesh that is set, if that has the same axes.
    """
    if isinstance(where, PartitionSpec):
        mesh = config.context_mesh
        if not mesh:
            raise RuntimeError(
                f"{where} needs a mesh: set one with weft.set_mesh(mesh), or give a weft.NamedSharding(mesh, {where})."
            )
        return NamedSharding(mesh, where)
    return over_devices(where, config.context_mesh)


def over_devices(where: Any, mesh: Mesh | AbstractMesh | None) -> Any:
    """A sharding over an AbstractMesh as one over the devices of `mesh`, if that has the same axes."""
    if isinstance(where, NamedSharding) and type(where.mesh) is AbstractMesh and isinstance(mesh, Mesh):
        return where.update(mesh=mesh) if mesh.abstract_mesh.same_axes(where.mesh) else where
    return where


def has_several_devices(where) -> bool:
    """Whether an argument places a value on more than one device."""
    if isinstance(where, NamedSharding):
        return where.mesh.size > 1  # which may have no devices yet
    return isinstance(where, Sharding) and len(where._devices()) > 1
