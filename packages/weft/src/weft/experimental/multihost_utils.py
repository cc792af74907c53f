"""Exchange between the processes of a cluster (`weft.distributed.initialize`), in programs that also run in one
process, where each function has a plain meaning.

All processes call these functions, in the same order: each of them waits for the others.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Callable, Iterator, Sequence

from ..base.devices import addressable
from ..base.errors import at_user_line
from ..base.host import np, require_numpy
from ..base.mesh import Mesh, NamedSharding, P as P
from ..base.tree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from ..core.trace import is_array
from ..numpy.creation import asarray
from ..runtime.array import KeyArray
from ..runtime.device import backend_for
from ..runtime.dispatch import move
from ..runtime.gather import agreed, different, digest, exchanged, relaid, summed
from ..runtime.processes import process_count, process_index

__all__ = [
    "P",
    "ProcessFailureError",
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "live_devices",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]


def _blocks(name: str, in_tree: Any, flag: int = 0) -> tuple[list[Any], Any, Any, list[int]]:
    """(the leaves as NumPy arrays, their tree, all their bytes, the flags of all processes), after a check that all
    processes have the same types.
    """
    leaves, tree = tree_flatten(in_tree)
    values = [np.asarray(x) for x in leaves]
    flags = agreed(name, values, flag)
    return values, tree, np.frombuffer(b"".join([x.tobytes() for x in values]) or b"0", np.uint8), flags


def _unpacked(block: Any, like: Sequence[Any]) -> list[Any]:
    at, made = 0, []
    for x in like:
        made.append(np.frombuffer(block[at : at + x.nbytes].tobytes(), x.dtype).reshape(x.shape))
        at += x.nbytes
    return made


class ProcessFailureError(RuntimeError):
    """Devices of another process are gone: `live_devices` raises it.

    Example:
        >>> from weft.experimental import multihost_utils
        >>> print(multihost_utils.ProcessFailureError({"cpu:3"}))
        devices have failed: ['cpu:3']
    """

    def __init__(self, failed_devices: set):
        super().__init__(f"devices have failed: {sorted(map(str, failed_devices))}")
        self.failed_devices = failed_devices


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The leaves of the source process as NumPy arrays, in all processes.

    Args:
        in_tree: a pytree of arrays of any shapes and dtypes, which are the same in all processes; the values of the
            source count.
        is_source: whether this process is the source. If it is left out, the first one is.

    Returns:
        a pytree of NumPy arrays of the same shapes and dtypes.

    Raises:
        ValueError: not exactly one process is the source, or the processes have other shapes or dtypes.

    Example:
        >>> from weft.experimental import multihost_utils
        >>> multihost_utils.broadcast_one_to_all({"step": 3})
        {'step': array(3)}
    """
    require_numpy("broadcast_one_to_all")
    source = process_index() == 0 if is_source is None else bool(is_source)
    if process_count() == 1:
        sources, out = [int(source)], tree_map(np.asarray, in_tree)
    else:
        values, tree, block, sources = _blocks("broadcast_one_to_all", in_tree, int(source))
    if sum(sources) != 1:
        found = [i for i, s in enumerate(sources) if s]
        raise ValueError(
            at_user_line(
                f"broadcast_one_to_all: {'no process is' if not found else f'the processes {found} are all'} the source"
                " (is_source), of which there must be one. Leave is_source out for the first process."
            )
        )
    if process_count() == 1:
        return out
    return tree_unflatten(tree, _unpacked(summed(block if source else np.zeros_like(block)), values))


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The leaves of all processes as NumPy arrays. Of an array that spans processes, the whole.

    Args:
        in_tree: a pytree of arrays of any shapes and dtypes, which are the same in all processes.
        tiled: whether the arrays are joined along their first axis. Otherwise they are stacked along a new one.

    Returns:
        a pytree of NumPy arrays of the same dtypes. Stacked, their shapes have the number of processes in front; an
        array that spans processes keeps its shape.

    Raises:
        ValueError: the processes have other shapes or dtypes, or an array that spans processes is to be stacked.

    Example:
        >>> from weft.experimental import multihost_utils
        >>> multihost_utils.process_allgather(2.0)
        array([2.])
    """
    require_numpy("process_allgather")
    leaves, tree = tree_flatten(in_tree)
    spanning = [is_array(x) and not x.is_fully_addressable for x in leaves]
    if any(spanning) and not tiled:
        raise ValueError(
            at_user_line(
                "process_allgather: an array that spans processes has no copy in each to be stacked. Pass tiled=True"
                " for the whole array."
            )
        )
    wholes = [move(x, x.sharding.update(spec=P()))._host() for x, s in zip(leaves, spanning) if s]
    own = [x for x, s in zip(leaves, spanning) if not s]
    if not own or process_count() == 1:
        rows = [[np.asarray(x) for x in own]]
    else:
        values, _, block, _ = _blocks("process_allgather", own)
        rows = [_unpacked(row, values) for row in exchanged(block)]
    joined = [np.concatenate(xs) if tiled and xs[0].ndim else np.stack(xs) for xs in zip(*rows)]
    parts = {True: iter(wholes), False: iter(joined)}
    return tree_unflatten(tree, [next(parts[s]) for s in spanning])


def sync_global_devices(name: str) -> None:
    """Waits until all processes have reached this point. With one process it returns at once.

    Args:
        name: names the point; str.

    Returns:
        None

    Raises:
        AssertionError: a process waits at a point of another name.

    Example:
        >>> from weft.experimental import multihost_utils
        >>> multihost_utils.sync_global_devices("start")
    """
    if process_count() > 1:
        rows = exchanged(np.concatenate([np.zeros(1, np.uint8), digest("sync_global_devices", name)]))
        other = [i for i, row in enumerate(rows) if not np.array_equal(row, rows[0])]
        if other:
            raise AssertionError(
                at_user_line(
                    f"sync_global_devices name mismatch ({name!r}): process {other[0]} and process 0 are at points of"
                    " other names. All processes must make the same calls in the same order."
                )
            )


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Checks that all processes have the same values. With one process it always succeeds.

    Args:
        in_tree: a pytree of arrays of any shapes and dtypes. An array that spans processes has one value.
        fail_message: the message of the error; str.

    Returns:
        None

    Raises:
        AssertionError: a process has other values.
        ValueError: a process has other shapes or dtypes.

    Example:
        >>> from weft.experimental import multihost_utils
        >>> multihost_utils.assert_equal({"seed": 3}, "seeds differ")
    """
    require_numpy("assert_equal")
    if process_count() > 1:
        values = [np.asarray(x) for x in tree_leaves(in_tree) if not is_array(x) or x.is_fully_addressable]
        agreed("assert_equal", values)
        wrong = different(values)
        if wrong:
            raise AssertionError(
                at_user_line(
                    f"{fail_message or 'assert_equal'}: process {wrong[0]} has other values than process 0. This is"
                    f" process {process_index()}, whose values are {in_tree}."
                )
            )


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether all processes are to save their work at this step, because the scheduler is about to stop one of them
    (SIGTERM). All processes call this at each step.

    From the first call on, SIGTERM does not end a process of a cluster: the program saves, and ends by itself.

    Args:
        step_id: the number of the step; int.

    Returns:
        bool: the same in all processes. False without a cluster.

    Example:
        >>> from weft.experimental import multihost_utils
        >>> multihost_utils.reached_preemption_sync_point(10)
        False
    """
    return process_count() > 1 and _cluster().reached_preemption_sync_point(step_id)


def _cluster() -> Any:
    return backend_for("cpu").capabilities.xla.cluster


@contextmanager
def live_devices(devices: Sequence[Any]) -> Iterator[list[Any]]:
    """A `with` block whose value is the list of those devices whose processes still run, the same in all of them.

    Processes end where another one has ended, unless `jax_enable_recoverability` is set before they join.

    Args:
        devices: a sequence of devices, of which this process has some.

    Returns:
        context manager whose value is a list of devices.

    Raises:
        ValueError: this process has none of the devices.
        ProcessFailureError: a process ended during the block.

    Example:
        >>> import weft
        >>> from weft.experimental import multihost_utils
        >>> with multihost_utils.live_devices(weft.devices()[:1]) as devices:
        ...     len(devices)
        1
    """
    if not addressable(devices):
        raise ValueError(
            at_user_line("live_devices: this process has none of the devices. Let those processes call it that have.")
        )
    found = _live(devices)
    try:
        yield found
    finally:
        gone = set(found) - set(_live(devices))
        if gone:
            raise ProcessFailureError(gone)


def _live(devices: Sequence[Any]) -> list[Any]:
    if process_count() == 1:
        return list(devices)
    live = _cluster().live_processes(sorted({d.process_index for d in devices}))
    return [d for d in devices if d.process_index in live]


def _each_spec(name: str, tree: Any, pspecs: Any, f: Callable[..., Any]) -> Any:
    leaves, treedef = tree_flatten(tree)
    is_leaf = lambda x: x is None or isinstance(x, P)
    specs = tree_flatten(pspecs, is_leaf=is_leaf)[0]
    specs = specs * len(leaves) if len(specs) == 1 else specs
    if len(specs) != len(leaves) or any(not isinstance(s, P) for s in specs):
        raise ValueError(
            at_user_line(
                f"{name}: pspecs is a PartitionSpec for all arrays or one for each, got {pspecs}. P() replicates an"
                " array."
            )
        )
    return tree_unflatten(treedef, [f(x, s) for x, s in zip(leaves, specs)])


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Arrays that are laid out over a mesh. Each process passes the part that belongs to its devices.

    Args:
        local_inputs: a pytree of arrays of any shapes and dtypes. An array that spans processes stays as it is.
        global_mesh: the mesh, in which the devices of each process are a grid.
        pspecs: a PartitionSpec for all arrays, or a pytree with one for each. `P()` replicates an array.

    Returns:
        a pytree of arrays of the same dtypes. Along an axis that the spec cuts between processes, their shapes are
        those of the inputs times the number of processes there.

    Raises:
        ValueError: the specs do not fit the tree, one of them is None, or the devices of this process are not a grid.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import multihost_utils as mhu
        >>> mesh = weft.make_mesh((1,), ("x",), devices=weft.devices()[:1])
        >>> mhu.host_local_array_to_global_array(jnp.ones(2), mesh, mhu.P("x")).shape
        (2,)
    """

    def one(x: Any, spec: P) -> Any:
        x = asarray(x)
        if not global_mesh.is_multi_process:
            return move(x, NamedSharding(global_mesh, spec))
        if not x.is_fully_addressable:
            return x
        if x.committed:  # to devices of this process; the parts go where the mesh says
            x = np.asarray(x) if not isinstance(x, KeyArray) else x
        return relaid(x, NamedSharding(global_mesh.local_mesh, spec), NamedSharding(global_mesh, spec))

    return _each_spec("host_local_array_to_global_array", local_inputs, pspecs, one)


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """The parts of global arrays that lie on devices of this process. In one process these are the whole arrays.

    Args:
        global_inputs: a pytree of arrays of any shapes and dtypes. An array of this process alone stays as it is.
        global_mesh: the mesh over which they are laid out.
        pspecs: a PartitionSpec for all arrays, or a pytree with one for each.

    Returns:
        a pytree of arrays of the same dtypes. Along an axis that the spec cuts between processes, their shapes are
        those of the inputs divided by the number of processes there.

    Raises:
        ValueError: the specs do not fit the tree, one of them is None, or the devices of this process are not a grid.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import multihost_utils as mhu
        >>> mesh = weft.make_mesh((1,), ("x",), devices=weft.devices()[:1])
        >>> mhu.global_array_to_host_local_array(jnp.ones(2), mesh, mhu.P("x"))
        Array([1., 1.], dtype=float32)
    """

    def one(x: Any, spec: P) -> Any:
        x = asarray(x)
        if x.is_fully_addressable:
            return x
        return relaid(x, NamedSharding(global_mesh, spec), NamedSharding(global_mesh.local_mesh, spec))

    return _each_spec("global_array_to_host_local_array", global_inputs, pspecs, one)


def __dir__() -> list[str]:
    return sorted(__all__)
