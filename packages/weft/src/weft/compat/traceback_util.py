"""jax._src.traceback_util: removes frames of libraries from errors."""

from __future__ import annotations

from ..base.source_info import (
    UnfilteredStackTrace as UnfilteredStackTrace,
    _internal,
    _internal_paths,
    api_boundary as api_boundary,
    is_internal,
    register_exclusion as register_exclusion,
)


class _Paths:
    """The paths whose files are left out, as the list that libraries change."""

    append = staticmethod(register_exclusion)

    def remove(self, path: str) -> None:
        _internal_paths.remove(path)
        _internal.clear()

    def __contains__(self, path) -> bool:
        return path in _internal_paths

    def __iter__(self):
        return iter(_internal_paths)

    def __len__(self) -> int:
        return len(_internal_paths)


_exclude_paths = _Paths()


def include_frame(frame) -> bool:
    """Whether a frame is the user's."""
    return not is_internal(frame.f_code.co_filename)
