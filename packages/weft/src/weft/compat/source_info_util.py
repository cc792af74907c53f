"""jax.extend.source_info_util: lines and scopes of the user's code."""

from __future__ import annotations

from ..base.source_info import (  # noqa: F401
    SourceInfo as SourceInfo,
    current as current,
    named_scope as extend_name_stack,
    register_exclusion as register_exclusion,
)


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """The line that an equation comes from."""
    return str(source_info)
