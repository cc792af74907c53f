"""Calls that were made before, with as little Python as possible: jit functions and eager primitives.

A call is known by the structure and the avals of its arguments and by the configuration that tracing depends on.
Everything else goes the long way round, through `weft.runtime`.
"""

from __future__ import annotations

from typing import Any, Callable, Sequence

from weft.base import dtypes
from weft.base.avals import AbstractValue
from weft.base.config import config
from weft.core.jaxpr import TypedScalar
from weft.core.primitive import Primitive, exact
from weft.core.trace import current_trace, get_aval, root
from weft.runtime.array import BufferArray, register_array_class
from weft.runtime.backend import FastCall
from weft.runtime.device import default_device
from weft.runtime.dispatch import apply_by_compiling, device_of, executable_for, host_array, single_equation
from weft.transforms.valueless import has_valueless
from weft.base.tree import tree_flatten, tree_structure, tree_unflatten

CAPACITY = 4096
SCALARS = 1024
LEAF = tree_structure(0)


class WasmArray(BufferArray):
    """An array of the Wasm backend: its handle is an address. It has its own class, so that eager operations find their
    backend by it.
    """

    __slots__ = ()


register_array_class(WasmArray)

Execute = Callable[[Sequence[WasmArray]], list[WasmArray]]


class Calls:
    """The cached calls of one device."""

    def __init__(self, backend: Any, device: Any):
        self.backend, self.device = backend, device
        self.eager: dict[tuple[Any, ...], Execute] = {}
        self.scalars: dict[tuple[str, Any], WasmArray] = {}

    def scalar(self, x: Any) -> WasmArray | None:
        """A host scalar as an array of the device, made once; None for other values, and for types without values."""
        aval: AbstractValue
        if type(x) is TypedScalar:
            value, aval = x.val, x.aval
        elif dtypes.is_python_scalar(x):
            value, aval = x, get_aval(x)
        else:
            return None
        if aval.dtype == dtypes.float0:
            return None
        key = (repr(value), aval)
        found = self.scalars.get(key)
        if found is None:
            if len(self.scalars) >= SCALARS:
                self.scalars.clear()
            found = self.scalars[key] = self.backend.put(host_array(value, aval), aval, self.device, False)
        return found

    def jit(self, miss: Callable[..., tuple[Any, Any]]) -> FastCall:
        """A callable that runs known calls at once and passes all others to `miss`: (result, Prepared | None)."""
        known: dict[tuple[Any, ...], tuple[Execute, list[WasmArray], Any]] = {}
        device, scalar = self.device, self.scalar

        def call(*args: Any, **kwargs: Any) -> Any:
            if current_trace() is not root:
                return miss(*args, **kwargs)[0]
            for x in args:
                if type(x) is not WasmArray or x.device_ is not device:
                    return general(args, kwargs)
            if kwargs:
                return general(args, kwargs)
            return run(args, {}, list(args), len(args), False)

        def general(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            leaves, tree = tree_flatten((args, kwargs))
            constants = False
            for k, x in enumerate(leaves):
                if type(x) is not WasmArray:
                    x = leaves[k] = scalar(x)
                    constants = True
                if x is None or x.device_ is not device:
                    return miss(*args, **kwargs)[0]
            return run(args, kwargs, leaves, tree, constants)

        def run(
            args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[WasmArray], tree: Any, constants: bool
        ) -> Any:
            key = (tree, constants, *[x.aval for x in leaves], config.call_context())
            entry = known.get(key)
            if entry is not None:
                execute, consts, out_tree = entry
                outs = execute(consts + leaves if consts else leaves)
                return outs[0] if out_tree is None else tree_unflatten(out_tree, outs)
            out, prepared = miss(*args, **kwargs)
            # a donated scalar must stay in the cache, and uncommitted arrays follow the default device
            if (
                prepared is not None
                and prepared.device is device
                and device is default_device()
                and not (constants and prepared.executable.donated)
            ):
                out_tree = None if prepared.out_tree == LEAF else prepared.out_tree
                known[key] = prepared.executable.execute, list(prepared.consts), out_tree
            if len(known) > CAPACITY:
                known.clear()
            return out

        return FastCall(call, known.clear)

    def apply(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Runs one primitive on arrays of the device and host scalars."""
        values: list[WasmArray] = []
        for x in args:
            if type(x) is not WasmArray:
                x = self.scalar(x)
            if x is None or x.device_ is not self.device:
                return apply_by_compiling(primitive, args, params)
            values.append(x)
        try:
            key = (primitive, *exact(params), *[x.aval for x in values], config.call_context())
            execute = self.eager.get(key)
        except TypeError:  # a parameter that doesn't hash
            return apply_by_compiling(primitive, args, params)
        if execute is None:
            if self.device is not device_of(values):
                return apply_by_compiling(primitive, args, params)
            closed = single_equation(primitive, tuple([x.aval for x in values]), params)
            executable, consts = executable_for(closed, self.device, primitive.name)
            if (
                consts
                or self.device is not default_device()
                or has_valueless(closed)
                or any(dtypes.is_key(a.dtype) for a in closed.out_avals)
            ):
                return apply_by_compiling(primitive, args, params)
            if len(self.eager) >= CAPACITY:
                self.eager.clear()
            execute = self.eager[key] = executable.execute
        outs = execute(values)
        return outs if primitive.multiple_results else outs[0]
