"""XLA's profiler from jaxlib, which `weft.profiler` uses if this backend is installed."""

from __future__ import annotations

import gzip

import jaxlib._profile_data as _profile_data
import jaxlib._profiler as _profiler
from weft.base.config import config
from weft.base.errors import at_user_line, warn

from .client import client_for

ProfileOptions = _profiler.ProfileOptions
ProfileData, ProfileEvent, ProfilePlane = (
    _profile_data.ProfileData,
    _profile_data.ProfileEvent,
    _profile_data.ProfilePlane,
)
annotation = _profiler.TraceMe
start_server, register_subprocess = _profiler.start_server, _profiler.register_subprocess


class ProfileSession:
    """A profile that is being taken, of this process and its devices."""

    def __init__(self, options=None):
        self._session = _profiler.ProfilerSession() if options is None else _profiler.ProfilerSession(options)

    def stop(self, folder: str) -> None:
        """Ends the profile and writes it under `folder`/plugins/profile."""
        self._session.stop_and_export(folder)


def memory_profile(platform: str) -> bytes:
    """The contents of the devices' memory, in the format of pprof."""
    if not config.array_tracebacks:
        warn(
            at_user_line(
                "this memory profile can't tell where its arrays were made, since the config option"
                " jax_array_tracebacks is off (calls are faster so). Set JAX_ARRAY_TRACEBACKS=1 before they are made."
            )
        )
    return gzip.compress(client_for(platform).heap_profile())
