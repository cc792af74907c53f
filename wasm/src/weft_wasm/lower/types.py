"""Dtypes of the language as storage and as scalars of the loop IR, and the error for programs that can't be lowered."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from weft.base import dtypes
from weft.base.annotations import override
from weft.base.avals import ShapedArray
from weft.core.jaxpr import Jaxpr, Literal, Var
from weft.core.memo import inner_jaxprs, memoized
from weft.base.errors import BackendError

from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import Const, Expr
from weft_wasm.lower.formats import FORMATS, computed, decode, encode, ends, limits, round_to_format

if TYPE_CHECKING:
    from weft.effects.callback import HostFunction

_NAMES = {
    "bool": "bool",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "int4": "i4",
    "uint4": "u4",
    "int2": "i2",
    "uint2": "u2",
    **{name.replace("f", "float", 1).replace("e", "_e", 1): name for name in FORMATS if name[0] == "f"},
}

WIDE = frozenset(map(dtypes.dtype, ("float64", "int64", "uint64", "complex128")))
STORED = frozenset((*_NAMES, "complex64", "complex128"))  # complex numbers as pairs


class LoweringError(BackendError):
    """A program holds something that the kernel compiler can't compile. The message names the primitive, the dtype and
    your line; convert the operands there, or run that part on another backend (`weft.jit(f, backend='cpu')`).

    Example:
        >>> import weft, weft.numpy as jnp
        >>> with weft.default_device(weft.devices("wasm")[0]):
        ...     jnp.ones((70_000, 70_000)).sum()  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        weft_wasm.lower.types.LoweringError: … 19600000000 bytes: here WebAssembly addresses 4 GiB …
        >>> with weft.default_device(weft.devices("wasm")[0]):
        ...     print(weft.lax.map(lambda row: jnp.ones(70_000).sum(), jnp.arange(3)))  # a row at a time
        [70000. 70000. 70000.]
    """

    def __init__(self, cause: str, advice: str = ""):
        """cause: without lines of the user's code, since exported pages show it."""
        super().__init__(cause, advice)

    @override
    def __str__(self) -> str:
        return "".join(self.args)


@memoized
def dtypes_in(jaxpr: Jaxpr) -> frozenset[Any]:
    """The dtypes of the arrays and numbers in a jaxpr, literals and the jaxprs within among them."""
    atoms = [*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars]
    for eqn in jaxpr.eqns:
        atoms += eqn.invars
        atoms += eqn.outvars
    own = frozenset([v.aval.dtype for v in atoms if isinstance(v.aval, ShapedArray)])
    return own.union(*map(dtypes_in, inner_jaxprs(jaxpr)))


def has_wide(jaxpr: Jaxpr) -> bool:
    """Whether a jaxpr has numbers of 64 bits, so that what is lowered for it may have them, too."""
    return not dtypes_in(jaxpr).isdisjoint(WIDE)


def array_type(v: Var | Literal) -> ShapedArray:
    """The data of a variable that represents an array. Raises LoweringError for one that does not."""
    if not isinstance(v.aval, ShapedArray):
        raise LoweringError(
            f"{v!r} is not an array, so the wasm and webgpu backends can't store it; use the cpu backend."
        )
    return v.aval


def storage_dtype(dtype: Any, who: str = "an argument", where: object = "") -> str:
    """The loop IR's name of an element type; LoweringError for those it has no storage for."""
    try:
        return _NAMES[dtype.name]
    except (KeyError, AttributeError):
        at = f" at {where}" if where else ""
        name = dtypes.name(dtype)
        hint = "convert to another dtype first"
        raise LoweringError(
            f"{who} has dtype {name}, which the wasm and webgpu backends do not have: {hint}, or use the cpu"
            f" backend.{at}"
        ) from None


def scalar_dtype(storage: str) -> str:
    """The dtype in which values of a storage dtype are computed: f16 and bf16 in f32."""
    return "f32" if storage in nodes.STORAGE_FLOATS else computed(storage) if storage in FORMATS else storage


def memory_dtype(storage: str) -> str:
    """The loop IR's dtype of stored elements: bytes for formats that it does not have."""
    return "u8" if storage in FORMATS else storage


def narrow(e: Expr, storage: str) -> Expr:
    """A computed value in the form that a buffer of that dtype stores."""
    # it has been rounded already
    if type(e) is nodes.Convert and e.x.dtype == storage and storage in nodes.STORAGE_FLOATS:
        return e.x
    return (
        nodes.Convert(e, storage)
        if storage in nodes.STORAGE_FLOATS
        else encode(e, storage)
        if storage in FORMATS
        else e
    )


def widen(e: Expr, storage: str) -> Expr:
    """A loaded value in the form for computing."""
    return (
        nodes.Convert(e, "f32") if storage in nodes.STORAGE_FLOATS else decode(e, storage) if storage in FORMATS else e
    )


def rounded_to_storage(e: Expr, storage: str) -> Expr:
    """A computed value as it is read back from a buffer of that dtype.

    Code that computes a value again must see the same loads: a maximum is compared with the operands that it was made
    of.
    """
    return (
        widen(narrow(e, storage), storage)
        if storage in nodes.STORAGE_FLOATS
        else round_to_format(e, storage)
        if storage in FORMATS
        else e
    )


def constant(value: nodes.Number, storage: str) -> Const:
    """A host scalar as a constant of the dtype it is computed in."""
    kind = scalar_dtype(storage)
    if kind in nodes.FLOATS:
        return Const(float(value), kind)
    return Const(bool(value), "bool") if kind == "bool" else Const(nodes.wrap(int(value), kind), kind)


def lowest(storage: str) -> Const:
    """The identity of max."""
    kind = scalar_dtype(storage)
    if storage in FORMATS and kind != "f32":
        return Const(limits(storage)[0], kind)
    if kind in nodes.FLOATS:  # some formats have no infinities
        return Const(ends(storage)[0] if storage in FORMATS else -math.inf, kind)
    if kind == "bool":
        return Const(False, "bool")
    return Const(-(1 << (8 * nodes.ITEMSIZE[kind] - 1)) if kind in nodes.SIGNED else 0, kind)


def highest(storage: str) -> Const:
    """The identity of min."""
    kind = scalar_dtype(storage)
    if storage in FORMATS and kind != "f32":
        return Const(limits(storage)[1], kind)
    if kind in nodes.FLOATS:
        return Const(ends(storage)[1] if storage in FORMATS else math.inf, kind)
    if kind == "bool":
        return Const(True, "bool")
    bits = 8 * nodes.ITEMSIZE[kind]
    return Const((1 << (bits - 1)) - 1 if kind in nodes.SIGNED else (1 << bits) - 1, kind)


class Callback(NamedTuple):
    """A host call of a program: `name` is the primitive, `ins` and `outs` the avals of the arrays that it passes."""

    name: str
    callback: HostFunction
    ins: tuple[ShapedArray, ...]
    outs: tuple[ShapedArray, ...]
