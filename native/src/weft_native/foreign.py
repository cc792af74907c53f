"""Registering compiled functions with XLA, and lowering rules that call them: the functions behind `weft.ffi`."""

from __future__ import annotations

import pathlib
from typing import Any, Callable, Mapping

import jaxlib
from jaxlib.mlir import ir
from weft.base.errors import BackendError

from .compat import xc
from .lower.foreign import attribute, custom_call, layouts

_PLATFORMS = {"gpu": "CUDA", "cuda": "CUDA"}


def _platform(name: str) -> str:
    return _PLATFORMS.get(name, name)


def register_target(name: str, fn: Any, platform: str, api_version: int, **traits: Any) -> None:
    xc.register_custom_call_target(name, fn, _platform(platform), api_version, **traits)


def register_type(name: str, registration: Mapping[str, Any], platform: str) -> None:
    xc.register_custom_type(name, dict(registration), platform=_platform(platform))


def register_as_batch_partitionable(name: str) -> None:
    xc.register_custom_call_as_batch_partitionable(name)


def include_dir() -> str:
    folder = pathlib.Path(jaxlib.__file__).parent / "include"
    if not (folder / "xla").is_dir():
        raise BackendError(
            "this jaxlib comes without the headers of XLA's foreign function interface; install a wheel of jaxlib"
            " 0.4.31 or later."
        )
    return str(folder)


_CALL_ARGUMENTS = ("api_version", "has_side_effect", "operand_output_aliases")


def _call(
    b,
    ins,
    outs,
    operands,
    target,
    operand_layouts,
    result_layouts,
    config,
    fastest_first,
    arguments: dict,
    params: dict,
) -> list:
    unknown = sorted(set(arguments) - set(_CALL_ARGUMENTS))
    if unknown:
        raise TypeError(
            f"ffi_lowering takes {', '.join(_CALL_ARGUMENTS)} besides its own arguments; got {', '.join(unknown)}."
        )
    version = arguments.get("api_version", 4)
    orders = lambda given, avals: [tuple(range(len(a.shape))) for a in avals] if given is None else given
    if version >= 4:
        given = {} if config is None else dict(config)
        config = {k: v if isinstance(v, ir.Attribute) else attribute(b, v) for k, v in {**given, **params}.items()}
    return custom_call(
        b,
        outs,
        operands,
        target,
        config,
        version,
        layouts(b, orders(operand_layouts, ins), fastest_first and operand_layouts is not None),
        layouts(b, orders(result_layouts, outs), fastest_first and result_layouts is not None),
        tuple(sorted((arguments.get("operand_output_aliases") or {}).items())),
        arguments.get("has_side_effect", False),
    )


def lowering(target, operand_layouts, result_layouts, config, fastest_first: bool, arguments: dict) -> Callable:
    def rule(b, ins, outs, *operands, **params):
        return _call(
            b, ins, outs, operands, target, operand_layouts, result_layouts, config, fastest_first, arguments, params
        )

    return rule


def operation(target, operand_layouts, result_layouts, config, fastest_first: bool, arguments: dict) -> Callable:
    def build(b, ins, outs, *operands, **params):
        return _call(
            b, ins, outs, operands, target, operand_layouts, result_layouts, config, fastest_first, arguments, params
        )[0].owner

    return build
