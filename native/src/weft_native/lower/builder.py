"""A thin layer over MLIR's bindings: types of avals, attributes, constants, and operations created by name.

Operations are made with `ir.Operation.create`, which costs less than half of what the typed builder classes cost.
"""

from __future__ import annotations

import contextlib
import threading
from functools import partial
from typing import Any, Callable, Iterator, Sequence

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _sdy, _stablehlo
from weft.base import dtypes
from weft.base.avals import AbstractToken, AbstractValue, countable
from weft.base.errors import BackendError

_ELEMENTS: dict[str, Callable[[], Any]] = {
    "bool": lambda: ir.IntegerType.get_signless(1),
    "bfloat16": ir.BF16Type.get,
    "float16": ir.F16Type.get,
    "float32": ir.F32Type.get,
    "float64": ir.F64Type.get,
    "complex64": lambda: ir.ComplexType.get(ir.F32Type.get()),
    "complex128": lambda: ir.ComplexType.get(ir.F64Type.get()),
    "float8_e4m3fn": ir.Float8E4M3FNType.get,
    "float8_e5m2": ir.Float8E5M2Type.get,
    "float8_e4m3b11fnuz": ir.Float8E4M3B11FNUZType.get,
    "float8_e4m3fnuz": ir.Float8E4M3FNUZType.get,
    "float8_e5m2fnuz": ir.Float8E5M2FNUZType.get,
    "float8_e3m4": ir.Float8E3M4Type.get,
    "float8_e4m3": ir.Float8E4M3Type.get,
    "float8_e8m0fnu": ir.Float8E8M0FNUType.get,
    "float4_e2m1fn": ir.Float4E2M1FNType.get,
}
for _bits in (2, 4, 8, 16, 32, 64):
    _ELEMENTS[f"int{_bits}"] = partial(ir.IntegerType.get_signless, _bits)
    _ELEMENTS[f"uint{_bits}"] = partial(ir.IntegerType.get_unsigned, _bits)


class Dialects:
    """An MLIR context with the dialects loaded, and the types and attributes that were asked for in it."""

    # A context keeps everything that was made in it, so a new one is used after this many modules.
    MODULES = 500

    def __init__(self):
        registry = ir.DialectRegistry()
        _jax_mlir_ext.register_dialects(registry)
        self.context = ir.Context()
        self.context.append_dialect_registry(registry)
        _sdy.register_dialect(self.context)
        _chlo.register_dialect(self.context)
        _stablehlo.register_dialect(self.context)
        self.context.load_all_available_dialects()
        self.used = 0
        self.lock = threading.RLock()  # of the thread that builds, prints or compiles a module of this context
        self.types: dict = {}
        self.attributes: dict = {}
        self.locations: dict = {}
        self.elements: dict = {}
        self.kept: list = []  # C++ has an uncounted pointer to it

    def give_away(self) -> None:
        """No further module is built here."""
        self.used = self.MODULES


class _Own(threading.local):
    dialects: Dialects | None = None


_known: list[Dialects] = []
_own = _Own()


@contextlib.contextmanager
def dialects() -> Iterator[Dialects]:
    """The context to build the next module in, which no other thread uses before the block ends.

    XLA loads dialects into a module's context while it compiles, and Python's other threads run meanwhile. If they
    worked in the same context, the process would end. Inside of a block, a thread always gets the same context.
    """
    if _own.dialects is not None:
        _own.dialects.used += 1
        yield _own.dialects
        return
    for mine in tuple(_known):
        if mine.lock.acquire(blocking=False):
            break
    else:
        mine = Dialects()
        mine.lock.acquire()
        _known.append(mine)
    try:
        _own.dialects = mine
        mine.used += 1
        yield mine
    finally:
        _own.dialects = None
        if mine.used >= Dialects.MODULES and mine in _known:
            _known.remove(mine)
        mine.lock.release()


def parse(bytecode: bytes, home: Dialects):
    """A module from its bytecode."""
    return ir.Module.parse(bytecode, context=home.context)


# NumPy's stubs say from Python 3.12 on only that an array is a buffer, hence Any.


def dense(array: Any, type: ir.Type, **options: Any) -> ir.DenseElementsAttr:
    """The elements of an array."""
    return ir.DenseElementsAttr.get(array, type=type, **options)


def dense_ints(array: Any, type: ir.Type) -> ir.DenseIntElementsAttr:
    """The elements of an array of integers."""
    return ir.DenseIntElementsAttr.get(array, type=type)


class Builder:
    """The place where a module is being built: the insertion point, the location, and shorthands for rules."""

    def __init__(self, home: Dialects):
        self.home = home
        self.loc = ir.Location.unknown(home.context)
        self.ip: Any = None

    # types and attributes -------------------------------------------------------------------------------------------

    def element(self, dtype):
        """The MLIR type of one element."""
        try:
            return self.home.elements[dtype]
        except KeyError:
            make = _ELEMENTS.get(dtypes.name(dtype))
            if make is None:
                raise BackendError(
                    f"XLA has no programs over arrays of dtype {dtypes.name(dtype)}. Convert to another dtype before"
                    " (weft.numpy.asarray(x, dtype)), or run on another backend."
                ) from None
            made = self.home.elements[dtype] = make()
            return made

    def type(self, aval: AbstractValue):
        """The tensor type of an aval."""
        try:
            return self.home.types[aval]
        except KeyError:
            if isinstance(aval, AbstractToken):
                made = self.home.types[aval] = ir.Type.parse("!stablehlo.token")
                return made
            made = self.home.types[aval] = self.tensor(aval.shape, aval.dtype)
            return made

    def tensor(self, shape, dtype):
        """The tensor type of a shape and a dtype. XLA ends the process for sizes that do not fit in 64 bits."""
        if not countable(shape, dtype):
            raise BackendError(
                f"XLA has no arrays of shape {tuple(shape)}: their sizes that are not zero make more than 2^63 bytes."
                " Make the largest smaller."
            )
        return ir.RankedTensorType.get(tuple(shape), self.element(dtype))

    def attr(self, text: str):
        """An attribute from its text; remembered."""
        try:
            return self.home.attributes[text]
        except KeyError:
            made = self.home.attributes[text] = ir.Attribute.parse(text)
            return made

    def i64s(self, values):
        """A dense array of 64-bit integers: how StableHLO writes dimensions."""
        return ir.DenseI64ArrayAttr.get([int(v) for v in values])

    def pairs(self, flat):
        """A padding attribute: (low, high) for each axis, given flat."""
        rows = len(flat) // 2
        i64 = ir.IntegerType.get_signless(64)
        return dense_ints(np.array(flat, np.int64).reshape(rows, 2), ir.RankedTensorType.get((rows, 2), i64))

    def int_attr(self, value: int, bits: int = 64):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(bits), int(value))

    def bool_attr(self, value: bool):
        return ir.BoolAttr.get(bool(value))

    # operations -----------------------------------------------------------------------------------------------------

    def op(self, name: str, operands: Sequence, result, attributes: dict | None = None):
        """An operation with one result."""
        return ir.Operation.create(
            name, results=[result], operands=operands, attributes=attributes, loc=self.loc, ip=self.ip
        ).result

    def ops(
        self, name: str, operands: Sequence, results: Sequence, attributes: dict | None = None, regions: Sequence = ()
    ):
        """An operation with several results, or with regions: (argument types, function from arguments to yielded
        values) pairs.
        """
        made = ir.Operation.create(
            name,
            results=list(results),
            operands=list(operands),
            attributes=attributes,
            regions=len(regions),
            loc=self.loc,
            ip=self.ip,
        )
        for region, (types, body) in zip(made.regions, regions):
            block = region.blocks.append(*types, arg_locs=[self.loc] * len(types))
            self.fill(block, lambda: body(*block.arguments), "stablehlo.return")
        return list(made.results)

    def fill(self, block, body: Callable[[], Sequence], terminator: str) -> None:
        """Builds the operations of `body` inside a block, and returns its values there."""
        outer, self.ip = self.ip, ir.InsertionPoint(block)
        try:
            values = list(body())
            ir.Operation.create(terminator, operands=values, loc=self.loc, ip=self.ip)
        finally:
            self.ip = outer

    # values ---------------------------------------------------------------------------------------------------------

    def splat(self, value, dtype, shape=()):
        """A constant of `shape` whose elements all equal one host scalar."""
        shape = tuple(shape)
        key = (shape, dtype, type(value), value if value == value and value != 0 else repr(value))
        try:
            attr = self.home.attributes[key]
        except KeyError:
            attr = self.home.attributes[key] = self._splat(value, dtype, shape)
        return self.op("stablehlo.constant", [], attr.type, {"value": attr})

    def _splat(self, value, dtype, shape):
        tensor, element, kind = self.tensor(shape, dtype), self.element(dtype), dtypes.kind(dtype)
        if 0 in shape:
            return dense(np.zeros(0, np.uint8), tensor)
        if kind == "f":
            return ir.DenseElementsAttr.get_splat(tensor, ir.FloatAttr.get(element, float(value)))
        if kind == "c":
            return dense(np.frombuffer(np.array(value, dtype).tobytes(), np.uint8), tensor)
        if kind == "b":
            return ir.DenseElementsAttr.get_splat(tensor, ir.IntegerAttr.get(element, int(bool(value))))
        value = int(value)
        if value >= 1 << 63:  # the bits of it
            value -= 1 << 64
        return ir.DenseElementsAttr.get_splat(tensor, ir.IntegerAttr.get(element, value))

    def constant(self, value: np.ndarray):
        """A constant from a host array."""
        value = np.asarray(value, order="C")  # not ascontiguousarray, which makes scalars one-dimensional
        if value.size == 1 or value.size and not np.any(value.reshape(-1).view(np.uint8).reshape(value.size, -1)):
            return self.splat(
                value.reshape(-1)[0].item() if value.dtype.kind != "V" else float(value.reshape(-1)[0]),
                value.dtype,
                value.shape,
            )
        tensor = self.tensor(value.shape, value.dtype)
        if value.dtype == np.bool_:
            data = np.packbits(value.reshape(-1), bitorder="little")
        elif dtypes.bits(value.dtype) < 8 and dtypes.is_int(value.dtype):  # one element for each byte
            data = value.reshape(-1).astype(np.int8).view(np.uint8)
        else:
            data = value.reshape(-1).view(np.uint8)
        attr = dense(data, tensor) if value.size else self._splat(0, value.dtype, value.shape)
        return self.op("stablehlo.constant", [], tensor, {"value": attr})

    @staticmethod
    def nonzero(value) -> bool:
        """Whether an integer of the program is a constant whose elements all equal one number other than zero."""
        if isinstance(value.owner, ir.Block) or value.owner.name != "stablehlo.constant":
            return False
        elements = value.owner.attributes["value"]
        return elements.is_splat and ir.IntegerAttr(elements.get_splat_value()).value != 0

    def broadcast(self, value, dims, shape, dtype):
        """`value` with its axes at `dims` of `shape`."""
        return self.op(
            "stablehlo.broadcast_in_dim", [value], self.tensor(shape, dtype), {"broadcast_dimensions": self.i64s(dims)}
        )

    def fit(self, value, aval: AbstractValue, shape: tuple):
        """`value` as an operand of an elementwise operation of `shape`: scalars and axes of size 1 are repeated."""
        if aval.shape == shape:
            return value
        return self.broadcast(value, range(len(aval.shape)) if aval.shape else (), shape, aval.dtype)

    def reshape(self, value, shape, dtype):
        return self.op("stablehlo.reshape", [value], self.tensor(shape, dtype))

    def convert(self, value, shape, dtype):
        """`value` converted to a dtype. Integers become narrower signed ones through unsigned ones: XLA's CPU emitters
        crash if the operand of `and` or `or` is a value from memory that a conversion has only truncated.
        """
        if dtypes.is_int(dtype) and dtypes.is_signed(dtype):
            element = ir.RankedTensorType(value.type).element_type
            if isinstance(element, ir.IntegerType) and element.width > dtypes.bits(dtype):
                value = self.convert(value, shape, dtypes.dtype(f"uint{dtypes.bits(dtype)}"))
        return self.op("stablehlo.convert", [value], self.tensor(shape, dtype))

    def compare(self, direction: str, x, y, aval: AbstractValue, total: bool = False):
        """x `direction` y, a boolean of the shape of `aval` (the operands')."""
        kind = dtypes.kind(aval.dtype)
        how = ("TOTALORDER" if total else "FLOAT") if kind in "fc" else "SIGNED" if kind == "i" else "UNSIGNED"
        return self.op(
            "stablehlo.compare",
            [x, y],
            self.tensor(aval.shape, dtypes.bool_),
            {
                "comparison_direction": self.attr(f"#stablehlo<comparison_direction {direction}>"),
                "compare_type": self.attr(f"#stablehlo<comparison_type {how}>"),
            },
        )

    def select(self, which, on_true, on_false, shape, dtype):
        return self.op("stablehlo.select", [which, on_true, on_false], self.tensor(shape, dtype))

    def pad(self, value, filler, config, shape, dtype):
        """`value` with (low, high, interior) of `filler` along each axis; low and high may be negative."""
        low, high, interior = zip(*config) if config else ((), (), ())
        return self.op(
            "stablehlo.pad",
            [value, filler],
            self.tensor(shape, dtype),
            {
                "edge_padding_low": self.i64s(low),
                "edge_padding_high": self.i64s(high),
                "interior_padding": self.i64s(interior),
            },
        )

    def iota(self, shape, dimension: int, dtype):
        # XLA's compiler treats the absolute value of a complex number as the number itself, and ends the process
        if dtypes.is_complex(dtype):
            return self.convert(self.iota(shape, dimension, dtypes.real_of(dtype)), shape, dtype)
        return self.op("stablehlo.iota", [], self.tensor(shape, dtype), {"iota_dimension": self.int_attr(dimension)})
