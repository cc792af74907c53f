"""What libraries for checkpoints take from jax: the state of `jax.distributed`."""

from __future__ import annotations

from typing import Any

from ..runtime.device import backend_for
from ..runtime.distributed import is_initialized
from ..runtime.processes import process_count, process_index


class _State:
    """jax._src.distributed.State: what this process knows of the others."""

    @property
    def client(self) -> Any:
        """The client of the processes' service; None for one process."""
        return backend_for("cpu").capabilities.xla.cluster.runtime_client() if is_initialized() else None

    @property
    def process_id(self) -> int:
        return process_index() if is_initialized() else 0

    @property
    def num_processes(self) -> int:
        return process_count() if is_initialized() else 1

    service = None
    coordinator_address: str | None = None


global_state = _State()
