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
    """Devices of another process are gone. With one process nothing raises it."""

    def __init__(self, failed_devices: set):
        super().__init__(f"devices have failed: {sorted(map(str, failed_devices))}")
        self.failed_devices = failed_devices


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The leaves of the source process (the first by default) as NumPy arrays.

    Raises:
        ValueError: if the only process says that it is not the source.

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
    """The leaves of all processes as NumPy arrays, stacked along a new leading axis, or with `tiled` joined along the
    first.

    Example:
        >>> from weft.experimental import multihost_utils
        >>> multihost_utils.process_allgather(2.0)
        array([2.])
    """
    require_numpy("process_allgather")
    _alone("process_allgather")
    return tree_map(lambda x: np.asarray(x) if tiled and np.ndim(x) else np.asarray(x)[None], in_tree)


def sync_global_devices(name: str) -> None:
    """Waits until all processes have come to the point of that name: at once, for one."""
    _alone("sync_global_devices")


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raises AssertionError if the leaves differ between processes: never, for one."""
    broadcast_one_to_all(in_tree)


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether the cluster's scheduler is about to stop the processes: without a cluster there is none."""
    _alone("reached_preemption_sync_point")
    return False


@contextmanager
def live_devices(devices: Sequence[Any]):
    """A block that knows which of some devices are there: those of this process, all of them."""
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
    """Arrays laid out over a mesh as their specs say; each process gives the part of its own devices.

    Raises:
        ValueError: for specs that do not fit the tree, or are None.

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
    """The part of arrays over a mesh that lies on this process's devices: all of them."""
    return _each_spec("global_array_to_host_local_array", global_inputs, pspecs, lambda x, spec: asarray(x))


def __dir__() -> list[str]:
    return sorted(__all__)
