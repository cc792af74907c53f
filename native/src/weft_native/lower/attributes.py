"""Words for XLA about single operations: its frontend attributes, which never change values."""

import json
from typing import Sequence

from weft.base.source_info import COMPUTE_TYPE, XLA_METADATA

from .registry import rule

_PROCESSORS = {"device_host": ("_xla_compute_type", "host"), "tpu_sparsecore": ("_xla_compute_type", "sparse")}


def frontend_attributes(scopes: Sequence[str]) -> dict[str, str]:
    """The attributes of an operation that was traced in these scopes; the innermost counts."""
    found: dict[str, str | None] = {}
    for name in scopes:
        if name.startswith(COMPUTE_TYPE):
            kind = name.removeprefix(COMPUTE_TYPE)
            for key in ("_xla_compute_type", "_xla_stream_annotation"):
                found.pop(key, None)
            if kind != "device":
                key, value = _PROCESSORS.get(kind, ("_xla_stream_annotation", kind.removeprefix("gpu_stream:")))
                found[key] = value
        elif name.startswith(XLA_METADATA):
            found.update(json.loads(name.removeprefix(XLA_METADATA)))
    return {k: v for k, v in found.items() if v is not None}


@rule("xla_metadata_value")
def _xla_metadata_value(b, ins, outs, x, *, xla_metadata_kvs):
    b.annotate([x], dict(xla_metadata_kvs))
    return x
