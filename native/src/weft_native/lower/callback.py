"""Primitives that call Python functions of the host, through XLA's FFI callback."""

from __future__ import annotations

from typing import Callable

from jaxlib.mlir import ir
from weft.core.effects import any_ordered
from weft.base.errors import BackendError, at_user_line
from weft.runtime.effects import call_host, host_results
from weft.base.mesh import NamedSharding, P

from .registry import rule, rules

_TARGETS = {
    "cpu": "xla_ffi_python_cpu_callback",
    "gpu": "xla_ffi_python_gpu_callback",
    "cuda": "xla_ffi_python_gpu_callback",
}


@rule("debug_callback")
def _debug(b, ins, outs, *args, callback, effect, **_):
    def call(device, *values):
        call_host(callback, values, ins, device)
        return ()

    if effect.ordered and b.partitions and len(b.partitions.devices) > 1:
        raise ValueError(
            at_user_line(
                "ordered debug callbacks (weft.debug.print, weft.debug.callback) run on one device only, and this"
                f" program runs on {len(b.partitions.devices)}. Use ordered=False, or weft.experimental.io_callback,"
                " which each device calls in the order of the program."
            )
        )
    return emit(b, "debug_callback", ins, outs, args, call, effect.ordered, True)


@rule("pure_callback")
def _pure(b, ins, outs, *args, callback, result_avals, **_):
    def call(device, *values):
        return tuple(host_results("pure_callback", callback, result_avals, values, ins, device))

    return emit(b, "pure_callback", ins, outs, args, call, False, False)


@rule("io_callback")
def _io(b, ins, outs, *args, callback, result_avals, ordered, **_):
    def call(device, *values):
        return tuple(host_results("io_callback", callback, result_avals, values, ins, device))

    return emit(b, "io_callback", ins, outs, args, call, ordered, True)


def emit(b, name: str, ins, outs, args, function: Callable, ordered: bool, effect: bool) -> list:
    """A custom call of `function(device, *values) -> tuple`. An ordered call takes the token of the previous one and
    returns the next.
    """
    target = _TARGETS.get(b.platform)
    if target is None:
        raise BackendError(
            f"XLA's platform {b.platform!r} can't call Python functions ({name}); run the program on a CPU or GPU, "
            f"or take the callback out of it.\n  at {b.loc}"
        )
    b.callbacks.append(_with_token(function) if ordered else function)
    layouts = [_layout(a.shape) for a in ins], [_layout(a.shape) for a in outs]
    operands, types = list(args), [b.type(a) for a in outs]
    if ordered:
        operands, types = [b.token, *operands], [token_type(), *types]
        layouts = [_layout(()), *layouts[0]], [_layout(()), *layouts[1]]
    if b.partitions and b.members is None and effect:
        placement = {"sdy.sharding": on_first_device(b, max(len(types), 1))}
    else:
        placement = {}
    index = ir.IntegerAttr.get(ir.IntegerType.get_unsigned(64), len(b.callbacks) - 1)
    made = b.ops(
        "stablehlo.custom_call",
        operands,
        types,
        {
            "call_target_name": ir.StringAttr.get(target),
            "api_version": b.int_attr(4, 32),
            "has_side_effect": b.bool_attr(effect),
            "backend_config": ir.DictAttr.get({"index": index}),
            "operand_layouts": ir.ArrayAttr.get(layouts[0]),
            "result_layouts": ir.ArrayAttr.get(layouts[1]),
            **placement,
        },
    )
    if ordered:
        b.token, *made = made
    if placement:  # the results are everybody's
        where = NamedSharding(b.partitions.mesh, P())
        made = [rules["sharding_constraint"](b, [a], [a], x, sharding=where) for x, a in zip(made, outs)]
    return made


def _with_token(function: Callable) -> Callable:
    return lambda device, token, *values: (token, *function(device, *values))


def _layout(shape):
    """Row-major layout, as in NumPy."""
    return ir.Attribute.parse(
        f"dense<{list(reversed(range(len(shape)))) if shape else ''}> : tensor<{len(shape)}xindex>"
    )


def on_first_device(b, count: int):
    """The sharding of an operation that happens once, on the first device, for `count` results."""
    if "first device" not in b.meshes:
        b.meshes["first device"] = "first_device", {}
        ir.Operation.create(
            "sdy.mesh",
            attributes={
                "sym_name": ir.StringAttr.get("first_device"),
                "mesh": ir.Attribute.parse("#sdy.mesh<[], device_ids=[0]>"),
            },
            loc=b.loc,
            ip=ir.InsertionPoint.at_block_begin(b.module.body),
        )
    return ir.Attribute.parse(f"#sdy.sharding_per_value<[{', '.join(['<@first_device, []>'] * count)}]>")


def token_type():
    return ir.Type.parse("!stablehlo.token")


def first_token(b, effects) -> None:
    """The token that the first ordered callback of a program takes, if it has one."""
    if any_ordered(effects):
        (b.token,) = b.ops("stablehlo.create_token", [], [token_type()])
