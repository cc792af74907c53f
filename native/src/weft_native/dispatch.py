"""Calls that stay in C++: `jit` and eager primitives through jaxlib's pjit, and the configuration that is part of
its cache key.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

import numpy as np
import jaxlib._jax as _jax
from weft.base import config as options, dtypes, tree
from weft.base.avals import array_type, shaped
from weft.base.config import config
from weft.core.jaxpr import TypedScalar
from weft.core.primitive import exact
from weft.core.trace import get_aval
from weft.runtime import guards
from weft.runtime.array import KeyArray
from weft.runtime.backend import CompileOptions, FastCall
from weft.primitives.linear import copy_p
from weft.runtime.dispatch import apply_by_compiling, executable_for, program_for, single_equation
from weft.runtime.partition import Partition, place_of
from weft.base.layout import Layout
from weft.base.mesh import Mesh, NamedSharding, P, Sharding
from weft.transforms.valueless import has_valueless

from . import bootstrap, cache
from . import sharding as placing
from .arrays import ArrayImpl
from .executable import XlaExecutable

# Mirrors of weft's pytree nodes.
registry = _jax.pytree.PyTreeRegistry(
    enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=True
)


def _mirror_node(node) -> None:
    registry.register_node(node.type, node.flatten, node.unflatten)


# To C++ random keys are nodes, whose leaf is the array of their words.
registry.register_node(
    KeyArray, lambda k: ((k.raw,), k.aval.dtype), lambda dtype, raw: KeyArray(shaped(raw[0].shape[:-1], dtype), raw[0])
)
tree.listen(_mirror_node)

# The values on which a cached call depends besides its arguments: options under which a program is traced, and options
# that make a call run Python.
_MIRRORED = (
    options.default_device.option,
    options.platforms.option,
    options.debug_nans.option,
    options.debug_infs.option,
    options.no_execution.option,
)


def mirror_config() -> None:
    """Copies weft's configuration, as this thread sees it, to where C++ reads it."""
    x64, off = options.enable_x64.option, options.jit_disabled.option
    _mirror(bootstrap.enable_x64, x64.default, x64.get())
    _mirror(bootstrap.disable_jit, off.default, off.get())
    _mirror_guards()
    _jax.set_tracebacks_enabled(config.array_tracebacks)
    watched = (*config.traced_options, *_MIRRORED)
    _mirror(bootstrap.context, tuple([o.default for o in watched]), tuple([o.get() for o in watched]))


_LEVELS = {name.lower(): level for name, level in _jax.guard_lib.TransferGuardLevel.__members__.items()}
_GC_LEVELS = {name.lower(): level for name, level in _jax.guard_lib.GarbageCollectionGuardLevel.__members__.items()}


def _mirror_guards() -> None:
    """Passes XLA the guards for transfers, threads and arrays in reference cycles."""
    everywhere, here = _jax.guard_lib.global_state(), _jax.guard_lib.thread_local_state()
    for direction in guards.DIRECTIONS:
        default, local = guards.level(direction, default=True), guards.level(direction)
        setattr(everywhere, direction, _LEVELS[default or "allow"])
        setattr(here, direction, None if local == default else _LEVELS[local or "allow"])
    arrays = options.array_garbage_collection_guard.option
    everywhere.garbage_collect_array = _GC_LEVELS[arrays.default or "allow"]
    here.garbage_collect_array = None if arrays.get() == arrays.default else _GC_LEVELS[arrays.get() or "allow"]
    _jax.guard_lib.update_thread_guard_global_state(config.thread_guard)


def _explicit_transfers(on: bool) -> None:
    here = _jax.guard_lib.thread_local_state()
    here.explicit_device_put = here.explicit_device_get = on


guards.watch(_explicit_transfers)


def _mirror(mirror, default, here) -> None:
    if mirror.get_global() != default:
        mirror.set_global(default)
    # the very object of the default, where it is equal: C++ compares by identity first
    mirror.set_local(bootstrap.UNSET if here == default else here)


def mirror_trace(is_root: bool) -> None:
    """Tells C++ whether calls in this thread are being traced, so that all of them must run Python."""
    bootstrap.tracing.set_local(bootstrap.UNSET if is_root else True)


class FastEntry(NamedTuple):
    """The data with which C++ runs a call by itself; it reads the attributes by name."""

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: Sequence
    out_shardings: Sequence
    out_avals: Sequence
    out_committed: Sequence
    kept_var_bitvec: Sequence
    in_device_local_layouts: Sequence
    const_args: Sequence


def fast_entry(out, executable: XlaExecutable, consts: Sequence, usual: bool) -> FastEntry | None:
    """The entry for calls like the one that returned `out`; None if such calls need Python. `usual` tells whether its
    arguments were `all_usual`.
    """
    leaves, treedef = registry.flatten(out)
    if (
        len(leaves) != len(executable.out_avals)
        or executable.effects
        or executable.laid_out
        or any(type(x) is not ArrayImpl for x in leaves)
        or any(type(c) is not ArrayImpl for c in consts)
        or not usual  # C++ would give the program a memory or a layout that it does not expect
    ):
        return None
    ins = [s for s, kept in zip(executable.in_shardings, executable.kept) if kept]
    return FastEntry(
        executable.loaded,
        treedef,
        ins,
        executable.out_shardings,
        [x.aval for x in leaves],
        [x._committed for x in leaves],
        list(executable.kept),
        [None] * len(ins),
        list(consts),
    )


def exchange(backend, array, sharding: Sharding):
    """An array over several devices, with another sharding over the same devices."""
    closed = single_equation(copy_p, (array.aval,), {})
    mesh = getattr(sharding, "mesh", None) or array.sharding.mesh
    place = Partition(sharding._devices(), (array.sharding,), (sharding,), mesh)
    executable, _ = executable_for(closed, place, "reshard")
    return executable.execute([array])[0]


def relay(array, layout: Layout):
    """An array with its axes in another order in memory, on the same devices."""
    closed = single_equation(copy_p, (array.aval,), {})
    sharding = array.sharding
    if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, Mesh):
        mesh, where = sharding.mesh, sharding
    else:
        mesh = Mesh([array.device], ("d",))
        where = NamedSharding(mesh, P())
    place = Partition(where._devices(), (where,), (where,), mesh, (placing.layout_of(array),), (layout,))
    executable, _ = executable_for(closed, place, "relay")
    made = executable.execute([array])[0]
    return ArrayImpl(array.aval, array._sharding, list(made._arrays), array._committed, _skip_checks=True)


def jit(
    fun: Callable,
    miss: Callable,
    static_argnums: Sequence[int],
    static_argnames: Sequence[str],
    name: str,
    shard_arg: Callable,
    first: Callable,
) -> FastCall:
    """A callable that runs known calls in C++ and asks `miss` about all others; `first(name)` is called before the
    first of those.
    """
    missed = False

    def cache_miss(*args, **kwargs):
        nonlocal missed
        if not missed:
            missed = True
            first(name)
        usual = not placing.unusual or placing.all_usual(tree.tree_leaves((args, kwargs)))
        out, prepared = miss(*args, **kwargs)
        if prepared is None or type(prepared.executable) is not XlaExecutable or config.debug_nans or config.debug_infs:
            return out, None, False
        return out, fast_entry(out, prepared.executable, prepared.consts, usual), False

    call = _jax.pjit(
        name,
        fun,
        cache_miss,
        list(static_argnums),
        list(static_argnames),
        name,
        registry,
        shard_arg,
        _jax.PjitFunctionCache(capacity=4096),
    )

    def clear() -> None:
        call._clear_cache()
        cache.forget()

    return FastCall(call, clear)


# eager primitives ----------------------------------------------------------------------------------------------------


class Eager:
    """Primitives run one by one, each through a separate C++ pjit for each set of parameters."""

    # Programs whose parameters (shapes, for example) do not recur must not accumulate.
    CAPACITY = 4096

    def __init__(self, backend):
        self.backend = backend
        self.calls: dict = {}
        self.scalars: dict = {}
        self.cache = _jax.PjitFunctionCache(capacity=8192)

    def clear(self) -> None:
        """Forgets all programs and scalars."""
        self.calls.clear()
        self.scalars.clear()
        self.cache = _jax.PjitFunctionCache(capacity=8192)

    def apply(self, primitive, args: tuple, params: dict):
        """The result of a primitive for arrays, host arrays and host scalars."""
        try:
            call = self.calls[primitive, *exact(params)] if params else self.calls[primitive]
        except KeyError:
            call = self._new_call(primitive, params)
        except TypeError:  # a parameter that can't be hashed
            return self._miss(primitive, params, args)[0]
        try:
            for x in args:
                if type(x) is not ArrayImpl:
                    values = [x if type(x) is ArrayImpl else self._array(x) for x in args]
                    # None: an array of another backend
                    return (
                        apply_by_compiling(primitive, args, params)
                        if any([v is None for v in values])
                        else call(*values)
                    )
            return call(*args)
        except (_jax.JaxRuntimeError, ValueError) as e:
            told = guards.explained(e, lambda: [("an array", x) for x in args])
            if told is e:
                raise
            raise told from None

    def _new_call(self, primitive, params: dict):
        def run(*args):  # C++ calls it under disable_jit; it is also the call's identity
            return self._miss(primitive, params, args)[0]

        def miss(*args):
            return self._miss(primitive, params, args)

        call = _jax.pjit(
            primitive.name, run, miss, [], [], primitive.name, registry, self.backend.shard_arg, self.cache
        )
        if len(self.calls) >= self.CAPACITY:
            for key in list(self.calls)[: self.CAPACITY // 2]:
                del self.calls[key]
        self.calls[(primitive, *exact(params)) if params else primitive] = call
        return call

    def _miss(self, primitive, params: dict, args: tuple):
        guards.check_execution(primitive.name)
        backend, avals = self.backend, tuple([get_aval(x) for x in args])
        words = [x.raw if type(x) is KeyArray else x for x in args]
        device, committed = backend.placement(words)
        if device.backend is not backend:  # the default device is another backend's
            return apply_by_compiling(primitive, args, params, device), None, False
        closed = single_equation(primitive, avals, params)
        if has_valueless(closed):
            return apply_by_compiling(primitive, args, params), None, False
        place = place_of(closed, words, device)
        places: Sequence[Any]
        if type(place) is Partition:
            executable, consts = executable_for(closed, place, primitive.name)
            places, committed = place.ins, True
        else:
            jaxpr, consts = program_for(closed, device.platform)
            executable = backend.compile(jaxpr, device, CompileOptions(primitive.name))
            consts, places = [backend.put(c, get_aval(c), device, False) for c in consts], [device] * len(words)
        usual = placing.all_usual(words)
        outs = executable.execute(
            [*consts, *[backend.array(x, get_aval(x), p) for x, p in zip(words, places)]], committed
        )
        made = [KeyArray(array_type(a), o) if dtypes.is_key(a.dtype) else o for a, o in zip(closed.out_avals, outs)]
        result = made if primitive.multiple_results else made[0]
        return result, fast_entry(result, executable, consts, usual), False

    def _array(self, x):
        """A host value in a form that C++ accepts; small numbers are put on the device once. None for other values, and
        for types without values.
        """
        kind = type(x)
        if kind in (bool, int, float, complex):
            value, aval = x, get_aval(x)
        elif getattr(x, "dtype", None) == dtypes.float0:
            return None
        elif kind is TypedScalar:
            value, aval = x.val, x.aval
        elif kind is KeyArray and type(x.raw) is ArrayImpl or isinstance(x, (np.ndarray, np.generic)):
            return x  # C++ takes a key's words itself, and puts host arrays on the device
        else:
            return None
        device = self.backend.default_device()
        if device.backend is not self.backend:
            return None
        key = (aval, device, value if value else repr(value))
        try:
            return self.scalars[key]
        except KeyError:
            if len(self.scalars) >= self.CAPACITY:
                self.scalars.clear()
            made = self.scalars[key] = self.backend.put(value, aval, device, False)
            return made
