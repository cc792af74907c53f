"""Global arrays from parts: from arrays on single devices, from a function that makes each part, and from the data of
each process. Loaded when one of these names is first used.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from ..base import dtypes
from ..base.annotations import PyTree
from ..base.avals import physical, shaped
from ..base.devices import addressable
from ..base.errors import at_user_line
from ..base.mesh import Sharding, SingleDeviceSharding
from ..base.tree import broadcast_prefix, tree_flatten, tree_unflatten
from ..core.trace import get_aval, is_array
from ..lax.common import canonical_shape
from ..runtime.array import KeyArray
from ..runtime.dispatch import move
from ..runtime.partition import own_place
from ..typing import Array, ArrayLike, DTypeLike, Shape


def make_array_from_single_device_arrays(
    shape: Shape, sharding: Sharding, arrays: Sequence[Array], *, dtype: DTypeLike | None = None
) -> Array:
    """An array from parts that are on the devices of a sharding already, one on each device of this process.

    Args:
        shape: int or sequence of ints, the shape of the whole.
        sharding: `weft.sharding.Sharding`: how the whole lies over devices.
        arrays: sequence of arrays of one dtype, one on each device of the sharding that this process has.
        dtype: dtype of the whole; None for that of the parts.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: if there is not one array of the right shape on each device.
        TypeError: for a value that is not an array on a device.
        BackendError: for a sharding over several devices of a backend whose arrays lie on one device (Wasm, WebGPU).

    Example:
        >>> import weft, weft.numpy as jnp
        >>> where = weft.NamedSharding(weft.make_mesh((1,), ("x",)), weft.P("x"))
        >>> weft.make_array_from_single_device_arrays((2,), where, [weft.device_put(jnp.ones(2), weft.devices()[0])])
        Array([1., 1.], dtype=float32)
    """
    shape, devices = canonical_shape(shape), addressable(sharding._devices())
    if not devices:
        raise ValueError(
            f"no device of {sharding} belongs to this process, so it can't make an array there. Let the processes make"
            " it that have the devices."
        )
    if len(arrays) != len(devices):
        raise ValueError(
            f"Expected {len(devices)} per-device arrays (this is how many devices are addressable by the sharding), but"
            f" got {len(arrays)}."
        )
    for x in arrays:
        if not is_array(x):
            raise TypeError(
                at_user_line(
                    "make_array_from_single_device_arrays takes arrays that lie on devices; one is a"
                    f" {type(x).__module__}.{type(x).__qualname__}. Put it on its device first: weft.device_put(x,"
                    " device)."
                )
            )
    part, dt = sharding.shard_shape(shape), arrays[0].dtype if dtype is None else dtypes.canonicalize(dtype)
    by_device = {where: x for x in arrays for where in x.devices()}
    if set(by_device) != set(devices):
        raise ValueError(
            "the arrays must lie on the devices of the sharding, one on each: they lie on"
            f" {sorted(map(str, by_device))}, the sharding is {sharding}."
        )
    for x in arrays:
        if x.sharding.memory_kind != sharding.memory_kind:
            raise ValueError(
                f"the arrays must be in the memory of the sharding: one on {x.device} is in {x.sharding.memory_kind!r},"
                f" the sharding is {sharding}. Move it with weft.device_put."
            )
        if x.shape != part or x.dtype != dt:
            raise ValueError(
                f"Expected shard shape {part} and dtype {dtypes.name(dt)}, got a single-device array"
                f" {get_aval(x).str_short()}: the array is to have shape {shape} with {sharding}."
            )
    return _spread(shaped(shape, dt), sharding, [by_device[d] for d in devices])


def _spread(aval, sharding: Sharding, parts: Sequence):
    if isinstance(parts[0], KeyArray):
        return KeyArray(aval, _spread(physical(aval), sharding, [x.raw for x in parts]))
    where = own_place(sharding)
    return (
        sharding.backend.capabilities.spread(aval, sharding, parts)
        if isinstance(where, Sharding)
        else move(parts[0], where)
    )


def make_array_from_callback(
    shape: Shape,
    sharding: Sharding,
    data_callback: Callable[[tuple[slice, ...]], ArrayLike],
    dtype: DTypeLike | None = None,
) -> Array:
    """Makes an array from its parts. `data_callback(index)` returns the part at an index, a tuple of slices. It is
    called for the parts that the devices of this process hold.

    Args:
        shape: int or sequence of ints, the shape of the whole.
        sharding: `weft.sharding.Sharding`: how the whole lies over devices.
        data_callback: function of a tuple of slices that returns an array.
        dtype: dtype of the whole, which its parts must have; None takes theirs.

    Returns:
        array of that dtype and shape.

    Raises:
        ValueError: if a part has another shape than its index, or another dtype than `dtype`.

    Example:
        >>> import weft, numpy as np
        >>> where = weft.NamedSharding(weft.make_mesh((1,), ("x",)), weft.P("x"))
        >>> weft.make_array_from_callback((2,), where, lambda index: np.arange(2.)[index])
        Array([0., 1.], dtype=float32)
    """
    own_place(sharding)  # fails here if its backend does not support it
    shape = canonical_shape(shape)
    part, known, parts = sharding.shard_shape(shape), {}, []
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        key = tuple((s.start, s.stop) for s in index)
        if key not in known:
            known[key] = data_callback(index)
        value = known[key]
        aval = get_aval(value)
        if dtype is not None and aval.dtype != dtypes.canonicalize(dtype):
            raise ValueError(
                f"make_array_from_callback: dtype is {dtypes.name(dtypes.canonicalize(dtype))}, and data_callback gave"
                f" an array of {dtypes.name(aval.dtype)} for the index {index}. Convert it in the callback, or leave"
                " dtype out."
            )
        if aval.shape != part:
            raise ValueError(
                f"make_array_from_callback: data_callback gave shape {aval.shape} for the index {index}, where the part"
                f" has shape {part}."
            )
        parts.append(move(value, SingleDeviceSharding(device, memory_kind=sharding._memory_kind)))
    return make_array_from_single_device_arrays(shape, sharding, parts)


def make_array_from_process_local_data(
    sharding: Sharding, local_data: PyTree, global_shape: Shape | None = None
) -> Any:
    """Makes global arrays from the data that each process has. Where there is one process, these are the whole arrays.

    Along an axis of which the devices of this process hold some parts, the data have these parts, in order: with two
    processes, and a sharding that cuts the axis between them, half of the axis. An axis may also be given whole, with
    `global_shape`.

    Args:
        sharding: `weft.sharding.Sharding`, or pytree prefix of them: how the whole lies over devices.
        local_data: pytree of host arrays, of any dtype.
        global_shape: shape of the whole, or pytree prefix of shapes; None for the one that follows from the data.

    Returns:
        pytree of arrays of the same dtypes, laid out over devices.

    Raises:
        ValueError: if the data do not have the shape that this process needs, or the shape of the whole does not follow
            from it.

    Example:
        >>> import weft, numpy as np
        >>> where = weft.NamedSharding(weft.make_mesh((1,), ("x",)), weft.P("x"))
        >>> weft.make_array_from_process_local_data(where, np.arange(2.))
        Array([0., 1.], dtype=float32)
    """
    leaves, tree = tree_flatten(local_data)
    is_shape = lambda s: s is None or isinstance(s, (tuple, list))
    return tree_unflatten(
        tree,
        [
            _from_process(x, where, shape if shape is None else tuple(shape))
            for x, where, shape in zip(
                leaves, broadcast_prefix(sharding, local_data), broadcast_prefix(global_shape, local_data, is_shape)
            )
        ],
    )


def _from_process(data: Any, sharding: Sharding, global_shape: tuple | None) -> Any:
    shape = tuple(data.shape)
    if sharding.is_fully_addressable:
        if global_shape is not None and tuple(n if m is None else m for n, m in zip(shape, global_shape)) != shape:
            raise ValueError(
                "make_array_from_process_local_data: this process has all devices, so its data must have the global"
                f" shape {global_shape}; got {shape}."
            )
        return move(data, sharding)
    whole = _global_shape(sharding, shape) if global_shape is None else global_shape
    if len(whole) != len(shape):
        raise ValueError(
            f"make_array_from_process_local_data: global_shape {whole} has {len(whole)} axes, and the data have"
            f" {len(shape)}."
        )
    mine = list(sharding.addressable_devices_indices_map(whole).values())
    part = sharding.shard_shape(whole)
    starts = [sorted({index[i].start or 0 for index in mine}) for i in range(len(whole))]
    for i, (n, m) in enumerate(zip(shape, whole)):
        if n not in (m, len(starts[i]) * part[i]):
            raise ValueError(
                f"make_array_from_process_local_data: axis {i} of the data has {n} elements. This process holds"
                f" {len(starts[i]) * part[i]} of the {m} elements of the whole, whose shape is {whole}: pass those, or"
                " all."
            )

    def piece(index: tuple) -> Any:
        cut = []
        for i, s in enumerate(index):
            start = s.start or 0
            at = start if shape[i] == whole[i] else starts[i].index(start) * part[i]
            cut.append(slice(at, at + part[i]))
        return data[tuple(cut)]

    return make_array_from_callback(whole, sharding, piece)


def _global_shape(sharding: Sharding, shape: tuple) -> tuple:
    """The shape of the whole, where each process has its own parts along an axis, or the same as others."""
    n = sharding.num_devices
    index_of = sharding.devices_indices_map((n,) * len(shape))
    whole = []
    for i, size in enumerate(shape):
        held: dict[int, set] = {}  # by process: the parts of this axis that it holds
        for d, index in index_of.items():
            held.setdefault(d.process_index, set()).add((index[i].start, index[i].stop))
        groups = {frozenset(parts) for parts in held.values()}
        sizes = {len(parts) for parts in groups}
        if len(sizes) != 1 or sum(len(parts) for parts in groups) != len(frozenset().union(*groups)):
            raise ValueError(
                f"make_array_from_process_local_data: along axis {i} the processes hold parts that overlap or differ"
                f" in number, so the shape of the whole does not follow from the data. Pass global_shape. {sharding}"
            )
        whole.append(size * len(groups))
    return tuple(whole)
