"""Exchange between the processes of a cluster, in programs that also run in one process, where each function has a
plain meaning.

Where a cluster was joined (`weft.distributed.initialize`) they raise: use `weft.make_array_from_process_local_data` and
collectives under `weft.jit` there.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Sequence

from ..base.errors import at_user_line
from ..base.host import np, require_numpy
from ..numpy.creation import asarray
from ..runtime.dispatch import move
from ..runtime.processes import process_count
from ..base.mesh import Mesh, NamedSharding, P as P
from ..base.tree import tree_flatten, tree_map, tree_unflatten

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


def _alone(name: str) -> None:
    if process_count() > 1:
        raise RuntimeError(
            at_user_line(
                f"{name} works in one process, and this program has {process_count()}. Make global arrays with"
                " weft.make_array_from_process_local_data, and exchange values by collectives in a jitted function"
                " over them."
            )
        )


class ProcessFailureError(RuntimeError):
    """Devices of another process are gone. With one process nothing raises it.

    Example:
        >>> from weft.experimental import multihost_utils
        >>> print(multihost_utils.ProcessFailureError({"cpu:3"}))
        devices have failed: ['cpu:3']
    """

    def __init__(self, failed_devices: set):
        super().__init__(f"devices have failed: {sorted(map(str, failed_devices))}")
        self.failed_devices = failed_devices


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The leaves of the source process as NumPy arrays.

    Args:
        in_tree: a pytree of arrays of any shapes and dtypes.
        is_source: whether this process is the source. If it is left out, the first one is.

    Returns:
        a pytree of NumPy arrays of the same shapes and dtypes.

    Raises:
        ValueError: `is_source` is False in the only process.
        RuntimeError: the program has several processes.

    Example:
        >>> from weft.experimental import multihost_utils
        >>> multihost_utils.broadcast_one_to_all({"step": 3})
        {'step': array(3)}
    """
    require_numpy("broadcast_one_to_all")
    _alone("broadcast_one_to_all")
    if is_source is False:
        raise ValueError(
            at_user_line(
                "broadcast_one_to_all: is_source is False in the only process, so there is no source. Leave it out."
            )
        )
    return tree_map(np.asarray, in_tree)


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The leaves of all processes as NumPy arrays.

    Args:
        in_tree: a pytree of arrays of any shapes and dtypes.
        tiled: whether the arrays are joined along their first axis. Otherwise they are stacked along a new one.

    Returns:
        a pytree of NumPy arrays of the same dtypes, whose shapes have a leading axis of size 1 unless they are
        tiled.

    Raises:
        RuntimeError: the program has several processes.

    Example:
        >>> from weft.experimental import multihost_utils
        >>> multihost_utils.process_allgather(2.0)
        array([2.])
    """
    require_numpy("process_allgather")
    _alone("process_allgather")
    return tree_map(lambda x: np.asarray(x) if tiled and np.ndim(x) else np.asarray(x)[None], in_tree)


def sync_global_devices(name: str) -> None:
    """Waits until all processes have reached this point. With one process it returns at once.

    Args:
        name: names the point; str.

    Returns:
        None

    Raises:
        RuntimeError: the program has several processes.

    Example:
        >>> from weft.experimental import multihost_utils
        >>> multihost_utils.sync_global_devices("start")
    """
    _alone("sync_global_devices")


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Checks that all processes have the same values. With one process it always succeeds.

    Args:
        in_tree: a pytree of arrays of any shapes and dtypes.
        fail_message: the message of the error; str.

    Returns:
        None

    Raises:
        RuntimeError: the program has several processes.

    Example:
        >>> from weft.experimental import multihost_utils
        >>> multihost_utils.assert_equal({"seed": 3}, "seeds differ")
    """
    broadcast_one_to_all(in_tree)


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the cluster's scheduler is about to stop the processes. Without a cluster no scheduler does.

    Args:
        step_id: the number of the step; int.

    Returns:
        bool: False.

    Raises:
        RuntimeError: the program has several processes.

    Example:
        >>> from weft.experimental import multihost_utils
        >>> multihost_utils.reached_preemption_sync_point(10)
        False
    """
    _alone("reached_preemption_sync_point")
    return False


@contextmanager
def live_devices(devices: Sequence[Any]):
    """A `with` block whose value is the list of those devices that still respond. In one process these are all devices.

    Args:
        devices: a sequence of devices.

    Returns:
        context manager whose value is a list of devices.

    Raises:
        RuntimeError: the program has several processes.

    Example:
        >>> import weft
        >>> from weft.experimental import multihost_utils
        >>> with multihost_utils.live_devices(weft.devices()[:1]) as devices:
        ...     len(devices)
        1
    """
    _alone("live_devices")
    yield list(devices)


def _each_spec(name: str, tree: Any, pspecs: Any, f) -> Any:
    _alone(name)
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
        local_inputs: a pytree of arrays of any shapes and dtypes.
        global_mesh: the mesh.
        pspecs: a PartitionSpec for all arrays, or a pytree with one for each. `P()` replicates an array.

    Returns:
        a pytree of arrays of the same shapes and dtypes.

    Raises:
        ValueError: the specs do not fit the tree, or one of them is None.
        RuntimeError: the program has several processes.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import multihost_utils as mhu
        >>> mesh = weft.make_mesh((1,), ("x",), devices=weft.devices()[:1])
        >>> mhu.host_local_array_to_global_array(jnp.ones(2), mesh, mhu.P("x")).shape
        (2,)
    """
    return _each_spec(
        "host_local_array_to_global_array",
        local_inputs,
        pspecs,
        lambda x, spec: move(asarray(x), NamedSharding(global_mesh, spec)),
    )


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """The parts of global arrays that lie on devices of this process. In one process these are the whole arrays.

    Args:
        global_inputs: a pytree of arrays of any shapes and dtypes.
        global_mesh: the mesh over which they are laid out.
        pspecs: a PartitionSpec for all arrays, or a pytree with one for each.

    Returns:
        a pytree of arrays of the same shapes and dtypes.

    Raises:
        ValueError: the specs do not fit the tree, or one of them is None.
        RuntimeError: the program has several processes.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental import multihost_utils as mhu
        >>> mesh = weft.make_mesh((1,), ("x",), devices=weft.devices()[:1])
        >>> mhu.global_array_to_host_local_array(jnp.ones(2), mesh, mhu.P("x"))
        Array([1., 1.], dtype=float32)
    """
    return _each_spec("global_array_to_host_local_array", global_inputs, pspecs, lambda x, spec: asarray(x))


def __dir__() -> list[str]:
    return sorted(__all__)
