"""Host values of several processes, brought together by programs over one device of each. Every process calls these
functions in the same order.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Sequence

from ..base.avals import physical, shaped
from ..base.devices import addressable
from ..base.errors import at_user_line
from ..base.host import np
from ..base.mesh import Mesh, NamedSharding, P, Sharding
from ..core.trace import is_array
from ..primitives.linear import reduce_sum_p
from .array import KeyArray
from .device import devices
from .dispatch import move, put
from .partition import off_mesh

if TYPE_CHECKING:
    from ..core.types import Value


def spans_processes(where: Any) -> bool:
    """Whether an argument places a value on devices of several processes, and this process has some of them."""
    return isinstance(where, Sharding) and where.has_addressable_devices and not where.is_fully_addressable


def _over_processes(block: Any) -> Any:
    """A global array of uint8: one row for each process, the block of this one is its own."""
    first: dict[int, Any] = {}
    for d in devices():
        first.setdefault(d.process_index, d)
    mesh = Mesh([first[i] for i in sorted(first)], ("processes",))
    (here,) = addressable(mesh.flat_devices)
    part = put(block[None], None, here, True)
    spread = here.backend.capabilities.spread
    return spread(shaped((mesh.size, block.size), block.dtype), NamedSharding(mesh, P("processes")), [part])


def _everywhere(x: Any) -> Any:
    return move(x, x.sharding.update(spec=P()))._host()


def exchanged(block: Any) -> Any:
    """The blocks of all processes, arrays of uint8 of one size, as rows in the order of the processes."""
    return _everywhere(_over_processes(block))


def summed(block: Any) -> Any:
    """The sum of the blocks of all processes."""
    with off_mesh():  # this is another mesh
        return _everywhere(reduce_sum_p.bind(_over_processes(block), axes=(0,), out_sharding=None))


def digest(*what: Any) -> Any:
    """32 bytes that stand for a description or for an array's bytes."""
    found = hashlib.sha256()
    for part in what:
        found.update(part if isinstance(part, bytes) else repr(part).encode())
    return np.frombuffer(found.digest(), np.uint8)


def agreed(name: str, values: Sequence[Any], flag: int = 0) -> list[int]:
    """The flags of all processes, after a check that they call the same function with values of the same types: XLA
    would wait for ever otherwise.

    Raises ValueError in each process if they do not.
    """
    mine = digest(name, [(x.shape, str(x.dtype)) for x in values])
    rows = exchanged(np.concatenate([np.array([flag], np.uint8), mine]))
    other = [i for i, row in enumerate(rows) if not np.array_equal(row[1:], rows[0][1:])]
    if other:
        types = ", ".join(f"{x.dtype}{list(x.shape)}" for x in values)
        raise ValueError(
            at_user_line(
                f"{name}: process {other[0]} and process 0 do not call it with values of the same shapes and dtypes, or"
                f" one of them calls another function; this process has ({types}). All processes must make the same"
                " calls in the same order."
            )
        )
    return [int(row[0]) for row in rows]


def relaid(x: Any, of: NamedSharding, to: NamedSharding) -> Any:
    """The parts of an array with the sharding `of`, as an array with the sharding `to`: the global array of a local
    one, or the other way round. Both have the same parts on the devices of this process.
    """
    if isinstance(x, KeyArray):
        whole = relaid(x.raw, of, to)
        return KeyArray(shaped(whole.shape[: x.ndim], x.dtype), whole)
    x = move(x, of)
    shape = tuple(n // k * m for n, k, m in zip(x.shape, of._tiles(x.ndim)[0], to._tiles(x.ndim)[0]))
    data = {shard.device: shard.data for shard in x.addressable_shards}
    parts = [data[d] for d in addressable(to.mesh.flat_devices)]
    return to.backend.capabilities.spread(physical(shaped(shape, x.dtype)), to, parts)


def comparable(x: Any) -> bytes:
    """The bytes of an array, the same for values that are equal."""
    return (x + x.dtype.type(0) if x.dtype.kind in "fc" else x).tobytes()


def different(values: Sequence[Any]) -> list[int]:
    """The processes whose arrays have other values than those of process 0."""
    rows = exchanged(digest(*[comparable(x) for x in values]))
    return [i for i, row in enumerate(rows) if not np.array_equal(row, rows[0])]


def check_same(value: Value, where: Sharding) -> None:
    """Raises ValueError where a value that is put on devices of all processes is not the same in each."""
    if is_array(value) and not value.is_fully_addressable:
        return
    if is_array(value) and value.committed:
        raise ValueError(
            at_user_line(
                f"device_put: {where} has devices of other processes, and the array is committed to {value.sharding} in"
                " this one. Make a global array of the parts that the processes have:"
                " weft.make_array_from_process_local_data(sharding, numpy.asarray(x))."
            )
        )
    if {d.process_index for d in where.device_set} != {d.process_index for d in devices()}:
        return  # the other processes need not call this
    x = np.asarray(value.raw if isinstance(value, KeyArray) else value)
    agreed("device_put", [x])
    wrong = different([x])
    if wrong:
        raise ValueError(
            at_user_line(
                f"device_put: process {wrong[0]} has another value than process 0, and {where} has devices of both."
                " Pass the same value in each process, or weft.make_array_from_process_local_data for data that"
                " differ."
            )
        )
