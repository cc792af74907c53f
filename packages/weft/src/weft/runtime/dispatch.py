"""Running programs: eager primitives and jit calls, on the backend that their arguments or the configuration choose."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Sequence

from ..base import dtypes, source_info
from ..base.avals import AbstractValue, ShapeDtypeStruct, array_aval, physical, shaped
from ..base.config import config, logger
from ..primitives.inspection import without_inspections
from ..symbolic.dims import live_scopes
from ..core.effects import touches
from ..core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, TypedScalar, Var
from ..core.memo import Memo, inner_jaxprs, memoized
from ..core.primitive import Primitive, exact
from ..symbolic.specialize import symbolic_scope
from ..core.trace import get_aval, is_array
from ..base.errors import BackendError, InconclusiveDimensionOperation, at_user_line, warn
from ..base.memory import DEVICE
from ..base.host import HostArray, converted, from_flat, has_numpy, is_host_array, np
from ..base.monitoring import COMPILE, TRANSFER, recorded, timed
from ..higher_order.call import jit_p
from ..primitives.linear import copy_p
from ..primitives.placement import reshard_p, sharding_constraint_p, transfer_p
from ..primitives.random_bits import random_clone_p, random_unwrap_p, random_wrap_p
from ..base.mesh import Mesh, NamedSharding, P, Sharding, SingleDeviceSharding, get_mesh, type_of_sharding
from ..core.shardings import with_placed
from ..transforms.constraints import with_constraints
from ..transforms.discharge import discharge, has_refs
from ..transforms.physical import lower_types
from ..transforms.platforms import for_platform
from ..transforms.stage import consts_as_args
from ..transforms.valueless import has_valueless, is_valueless, the_value, with_values, without_valueless
from .array import BufferArray, KeyArray
from .backend import CompileOptions
from .device import ALIASES, backend_of, default_device, eager
from .guards import check_execution, check_transfer
from .observers import NewProgram, observed
from .partition import Partition, off_mesh, own_place, place_in_force, place_of, spread_of
from .refs import Ref

if TYPE_CHECKING:
    from ..base.avals import ShapedArray
    from ..base.layout import Layout
    from ..core.types import Value
    from .partition import Where

# By device, constants and options: the constants, so that no others get their ids, the executable, and the constants
# on the device.
_EXECUTABLES: Memo[Any, tuple[list[Any], Any, list[Any]]] = Memo()


def put(
    value: Value, aval: AbstractValue | None = None, device: Where | None = None, committed: bool | None = None
) -> Any:
    """A host value (a Python scalar, a host array) as an array on `device`; or on the mesh that is set, or else on the
    default device and uncommitted.
    """
    kind = array_aval(get_aval(value) if aval is None else aval)
    if kind.dtype == dtypes.float0:  # no device supports such arrays
        return dtypes.float0_zeros(kind.shape)
    where = own_place(device) if device is not None else place_in_force() or default_device()
    backend = backend_of(where)
    if not backend.capabilities.guards_transfers:
        check_transfer("host_to_device", lambda: f"{kind.str_short(short_dtypes=False)} to {where}")
    if committed is None:
        committed = device is not None or isinstance(where, Sharding)
    host = host_array(value, kind)
    return recorded(TRANSFER, backend.put, host, kind, where, committed, to="device", bytes=host.nbytes)


def host_array(value: Value, aval: AbstractValue) -> Any:
    """A host scalar or array with exactly the dtype of `aval`."""
    if type(value) is TypedScalar:
        value = value.val
    if dtypes.is_python_scalar(value):
        return from_flat([value], (), aval.dtype)
    if isinstance(value, HostArray) or not has_numpy and is_host_array(value):
        return converted(value, aval.dtype)
    if isinstance(value, ShapeDtypeStruct):
        raise TypeError(
            at_user_line(
                f"{value} does not have a value and cannot be computed with. Give an array, or only trace the function:"
                " weft.eval_shape."
            )
        )
    return converted(np.asarray(value), aval.dtype)


def device_of(args: Sequence[Any]) -> Any:
    """Where a computation on `args` runs: on the devices of its committed arguments, else on the mesh that is set
    or on the default device. A Sharding if these are several.
    """
    committed = uncommitted = None
    for x in args:
        if not is_array(x):
            continue
        where = x.device
        if isinstance(where, Sharding):
            if where.num_devices > 1:
                return where
            (where,) = where._devices()
        if x.committed:
            if committed is not None and committed != where:
                raise ValueError(
                    at_user_line(
                        f"Received incompatible devices for jitted computation: arguments on {committed} and {where}. "
                        "Move them to one device with weft.device_put."
                    )
                )
            committed = where
        elif uncommitted is None:
            uncommitted = where
    where = place_in_force(committed) or committed
    if where is not None:
        return where
    if config.default_device is None and uncommitted is not None:
        # Uncommitted arrays stay where they are as long as that is the platform in force.
        default = default_device()
        return uncommitted if uncommitted.platform == default.platform and uncommitted.id == default.id else default
    return default_device()


def to_backend(x: Value, aval: AbstractValue, device: Where) -> Any:
    """An argument as an array of the device's backend, on the device or as a Sharding says."""
    if isinstance(x, KeyArray):
        x, aval = x.raw, physical(aval)
    if is_array(x):
        device = own_place(device)
        own = isinstance(device, Sharding) or type(x) is BufferArray or x.sharding.memory_kind == DEVICE
        return x if x.device == device and own else _transfer(x, array_aval(aval), device, isinstance(device, Sharding))
    return put(x, aval, device, False)


def _transfer(x: Value, aval: ShapedArray, where: Where, committed: bool) -> Any:
    """An array on another device or as a Sharding says: through its backend where that has both, else through the
    host.
    """
    backend = backend_of(where)
    aval = with_placed(aval, type_of_sharding(where, len(aval.shape)))
    if isinstance(x, backend.capabilities.array_type) and backend.capabilities.transfer is not None:
        return backend.capabilities.transfer(x, aval, where, committed)
    return backend.put(host_array(x._host(), aval), aval, where, committed)


def program_for(
    closed: ClosedJaxpr, platform: str | None = None, branches_of: Sequence[str] = ()
) -> tuple[Jaxpr, list[Any]]:
    """The jaxpr that a backend compiles for a closed jaxpr (no keys, no shardings in types, nothing without
    values, no constvars, no other platform's branches), and the constants that lead its arguments. `branches_of`: see
    `Capabilities`.
    """
    closed = with_constraints(without_valueless(closed))
    if has_refs(closed.jaxpr):
        closed = (
            discharge(ClosedJaxpr(consts_as_args(closed.jaxpr), []))
            if any(type(c) is Ref for c in closed.consts)
            else discharge(closed)
        )
    lowered = lower_types(closed if platform is None else for_platform(closed, platform, tuple(branches_of)))
    return consts_as_args(lowered.jaxpr), lowered.consts


def runnable(
    closed: ClosedJaxpr, where: Where | None, donated: Sequence[Any] = ()
) -> tuple[ClosedJaxpr, Any, tuple[Any, ...]]:
    """A program without the arguments and results that have no values, where it runs, and which of the remaining
    arguments are donated.
    """
    if not has_valueless(closed):
        return closed, where, tuple(donated)
    if type(where) is Partition:
        where = where._replace(
            ins=tuple(with_values(where.ins, closed.in_avals)),
            outs=where.outs and tuple(with_values(where.outs, closed.out_avals)),
        )
    return without_valueless(closed), where, tuple(with_values(donated, closed.in_avals))


def compile_place(device: Where, consts: Sequence[Any]) -> tuple[Any, ...]:
    """(placement of a program whose constants are leading arguments, placement of each constant)."""
    if type(device) is not Partition:
        return device, [device] * len(consts)
    places = [spread_of(c) or NamedSharding(device.mesh, P()) for c in consts]
    return device.with_constants(places), places


@memoized
def exported_for(jaxpr: Jaxpr) -> frozenset[Any]:
    """(name, platforms) of the exported programs inside a program that may run on some platforms alone."""
    found = [e.primitive.only_on(e.params) for e in jaxpr.eqns if e.primitive.only_on is not None]
    return frozenset(f for f in found if f is not None).union(*map(exported_for, inner_jaxprs(jaxpr)))


def check_platform(name: str, platforms: tuple[Any, ...], device: Where) -> None:
    """Raises ValueError where an exported program is about to run on a platform that it was not exported for."""
    behind = backend_of(device).capabilities.host_platform
    # "remote", and the host's platform
    names = {ALIASES.get(n, n) for n in (device.platform, *([] if behind is None else [behind(device)]))}
    if not names & set(platforms):
        here = " or ".join(sorted(names))
        raise ValueError(
            f"Function '{name}' was exported for platforms '{platforms}' but it is used on '{here}'. Export it with"
            " platforms=(…), or with disabled_checks=[export.DisabledSafetyCheck.platform()]."
        )


def executable_for(
    closed: ClosedJaxpr,
    device: Where,
    name: str,
    donated: tuple[Any, ...] = (),
    keep_unused: bool = False,
    compiler_options: tuple[Any, ...] = (),
) -> tuple[Any, list[Any]]:
    """The compiled program of a closed jaxpr on a device, compiled at most once for each set of the compiler's
    options, (name, value) pairs.
    """
    whole = closed
    closed, device, donated = runnable(closed, device, donated)
    executables = _EXECUTABLES.of(closed.jaxpr)
    key = (device, tuple(map(id, closed.consts)), donated, keep_unused, compiler_options)
    found = executables.get(key)
    if found is None:
        if live_scopes and symbolic_scope(closed.jaxpr) is not None:
            raise InconclusiveDimensionOperation(
                f"{name} has symbolic dimensions, and a compiler needs numbers. Export it (weft.export.export) with an"
                " argument that has these dimensions; an exported program is compiled for the sizes of each call."
            )
        for call in exported_for(closed.jaxpr):
            check_platform(*(*call, device))
        backend = backend_of(device)
        jaxpr, consts = program_for(closed, device.platform, backend.capabilities.branches_of)
        if config.log_compiles:
            logger("weft.compile").warning(
                "Compiling jit(%s) for %s with arguments %s\n  at %s",
                name,
                device,
                [a.str_short() for a in closed.in_avals],
                source_info.current(2),
            )
        size, most = sum([getattr(c, "nbytes", 0) for c in consts]), config.captured_constants_warn_bytes
        if size >= most >= 0:
            warn(
                at_user_line(
                    f"{name} closes over arrays of {size:,} bytes in all, which stay on the device with the program."
                    " Pass them as arguments, or raise jax_captured_constants_warn_bytes."
                )
            )
        if type(device) is not Partition:
            jaxpr, callbacks = without_inspections(jaxpr)
            for callback in callbacks:
                callback(SingleDeviceSharding(device))
        options = CompileOptions(
            name,
            (False,) * len(consts) + tuple(donated),
            (*compiler_options, *([("keep_unused", True)] if keep_unused else [])),
        )
        if compiler_options and not backend.capabilities.takes_compiler_options:
            raise BackendError(
                f"the {backend.name} backend's compiler takes no options, and {name} was given"
                f" {', '.join(k for k, _ in compiler_options)}. Leave compiler_options out, or run on 'cpu'."
            )
        device, places = compile_place(device, consts)
        with nullcontext() if backend.capabilities.times_compilation else timed(COMPILE, f"jit({name})"):
            executable = backend.compile(jaxpr, device, options)
        executable = observed(NewProgram(name, whole, device, executable, source_info.current(2)))
        found = executables[key] = (
            [*closed.consts],
            executable,
            [to_backend(c, get_aval(c), place) for c, place in zip(consts, places)],
        )
    return found[1], found[2]


def run_jaxpr(
    closed: ClosedJaxpr,
    args: Sequence[Any],
    name: str,
    donated: tuple[Any, ...] = (),
    device: Where | None = None,
    keep_unused: bool = False,
    compiler_options: tuple[Any, ...] = (),
) -> list[Any]:
    """Compiles (once) and runs a closed jaxpr on concrete arguments."""
    if has_valueless(closed):
        program, place, given = runnable(closed, device, donated)
        values = with_values(args, closed.in_avals)
        outs = iter(
            run_jaxpr(program, values, name, given, place, keep_unused, compiler_options)
            if program.out_avals or program.effects
            else ()
        )
        return [the_value(a) if is_valueless(a) else next(outs) for a in closed.out_avals]
    if has_refs(closed.jaxpr):
        return run_on_refs(closed, args, name, device, keep_unused, compiler_options)
    check_execution(name)
    device = device_of(args) if device is None else device
    if type(device) is not Partition:
        device = place_of(closed, args, device)
    executable, consts = executable_for(
        closed, device, name, donated if any(donated) else (), keep_unused, compiler_options
    )
    places = device.ins if type(device) is Partition else (device,) * len(args)
    values = [to_backend(x, a, place) for x, a, place in zip(args, closed.in_avals, places)]
    outs = executable.execute([*consts, *values])
    if any(donated):
        how = f"donated to jit({name}) at {source_info.current(2)}"
        for x in [x.raw if isinstance(x, KeyArray) else x for x, d in zip(args, donated) if d]:
            if isinstance(x, BufferArray):
                x.delete(how)
            elif is_array(x):  # by the runtime
                x.gone = how
    return [KeyArray(array_aval(a), o) if dtypes.is_key(a.dtype) else o for a, o in zip(closed.out_avals, outs)]


def run_on_refs(
    closed: ClosedJaxpr,
    args: Sequence[Any],
    name: str,
    device: Where | None,
    keep_unused: bool,
    compiler_options: tuple[Any, ...],
) -> list[Any]:
    """`run_jaxpr` for a program that makes references or takes them. They hold the written values afterwards."""
    values = [*closed.consts, *args]
    refs = [x for x in values if type(x) is Ref]
    if len(set(map(id, refs))) < len(refs):
        raise ValueError(
            at_user_line(
                f"{name}: one mutable reference is passed twice, as two arguments or as an argument and by the"
                " function's closure. Pass it once."
            )
        )
    held = [x.value if type(x) is Ref else x for x in values]
    if type(device) is Partition:  # the value of a reference stays on its device
        places = [spread_of(c) or NamedSharding(device.mesh, P()) for c in held[: len(closed.consts)]]
        spread = device.with_constants(places)
        device = spread._replace(
            outs=(*spread.outs, *[place for x, place in zip(values, spread.ins) if type(x) is Ref])
        )
    outs = run_jaxpr(_on_values(closed.jaxpr), held, name, (), device, keep_unused, compiler_options)
    n = len(closed.out_avals)
    for ref, value in zip(refs, outs[n:]):
        ref.value = value
    return outs[:n]


@memoized
def _on_values(jaxpr: Jaxpr) -> ClosedJaxpr:
    """The same program on the values of its references; its constants are leading arguments."""
    return discharge(ClosedJaxpr(consts_as_args(jaxpr), []))


def _each_ref_once(closed: ClosedJaxpr, args: Sequence[Any]) -> tuple[ClosedJaxpr, Sequence[Any]]:
    """A program of one equation that takes a reference twice (a loop's condition and body may both close over it),
    changed to take it once.
    """
    if len(set(map(id, args))) == len(args):
        return closed, args
    vars_of = {id(x): v for v, x in zip(closed.jaxpr.invars, args) if type(x) is Ref}
    invars = [vars_of.get(id(x), v) for v, x in zip(closed.jaxpr.invars, args)]
    pairs = list({v: x for v, x in zip(invars, args)}.items())
    (eqn,) = closed.jaxpr.eqns
    return ClosedJaxpr(closed.jaxpr.replace(invars=[v for v, _ in pairs], eqns=[eqn.replace(invars=invars)]), []), [
        x for _, x in pairs
    ]


_eager: dict[Any, Any] = {}  # (primitive, parameters, avals) -> the closed jaxpr of that operation


def run_primitive(primitive: Primitive, args: tuple[Any, ...], params: dict[Any, Any]) -> Any:
    """The work of the root trace: runs one primitive now."""
    if primitive.impl is not None:
        return primitive.impl(*args, **params)
    if primitive.effects is not None and touches in primitive.effects(params):
        return run_jaxpr(
            *_each_ref_once(single_equation(primitive, tuple([get_aval(x) for x in args]), params), args),
            primitive.name,
        )
    if primitive is jit_p:
        return run_jaxpr(
            params["jaxpr"], args, params["name"], params["donated_invars"], keep_unused=params["keep_unused"]
        )
    for x in args:
        fast = eager.get(type(x))
        if fast is not None:
            return fast(primitive, args, params)
    device = device_of(args)
    fast = backend_of(device).capabilities.apply
    return fast(primitive, args, params) if fast is not None else apply_by_compiling(primitive, args, params, device)


def apply_by_compiling(
    primitive: Primitive, args: Sequence[Any], params: dict[Any, Any], device: Where | None = None
) -> Any:
    """Runs one primitive as a program of one equation, compiled once for each combination of types and parameters."""
    closed = single_equation(primitive, tuple([get_aval(x) for x in args]), params)
    outs = run_jaxpr(closed, args, primitive.name, device=device)
    return outs if primitive.multiple_results else outs[0]


def forget_operations() -> None:
    """Forgets the programs of single operations."""
    _eager.clear()


def single_equation(primitive: Primitive, avals: tuple[Any, ...], params: dict[Any, Any]) -> ClosedJaxpr:
    """The program `primitive[params]` for arguments of these avals."""
    try:
        key = (primitive, avals, *exact(params), config.trace_context())
        closed = _eager.get(key)
    except TypeError:
        key, closed = None, None
    if closed is None:
        out = primitive.abstract_eval(avals, params)
        invars = [Var(a) for a in avals]
        outvars = [Var(a) for a in out] if primitive.multiple_results else [Var(out)]
        effects = primitive.effects(params) if primitive.effects else frozenset()
        closed = ClosedJaxpr(
            Jaxpr([], invars, outvars, [JaxprEqn(invars, outvars, primitive, params, effects)], effects), []
        )
        if live_scopes and symbolic_scope(closed.jaxpr) is not None:
            raise InconclusiveDimensionOperation(
                f"{primitive.name} would make an array with symbolic dimensions"
                f" ({', '.join(v.aval.str_short() for v in outvars)}) outside a traced program. Trace the function that"
                " does this: weft.export.export, weft.eval_shape, weft.make_jaxpr."
            )
        if key is not None:
            if len(_eager) >= 10_000:  # shapes that do not recur must not accumulate
                _eager.clear()
            _eager[key] = closed
    return closed


# converting between the two representations of keys needs no program
random_wrap_p.add_rules(
    impl=lambda raw, *, impl: KeyArray(shaped(get_aval(raw).shape[:-1], impl), raw if is_array(raw) else put(raw))
)
random_unwrap_p.add_rules(impl=lambda key: key.raw)
random_clone_p.add_rules(impl=lambda key: KeyArray(key.aval, key.raw))


def move(x: Value, where: Where | None = None, copy: bool = False, donate: bool = False) -> Any:
    """A value as an array on a device or as a Sharding says, committed to it; without either, where it is, or on the
    default device.

    `copy` requires separate memory. `donate` allows the array's memory to be reused.
    """
    where = None if where is None else _without_default(own_place(where))
    if isinstance(x, KeyArray):
        return KeyArray(x.aval, move(x.raw, where, copy, donate))
    aval = get_aval(x)
    if not is_array(x):
        return put(x, aval, default_device() if where is None else where, where is not None)
    here = where is None or _is_at(x, where)
    if where is None or here and x.committed:
        return _copy(x) if copy else x
    moved = _transfer(x, array_aval(aval), where, True)
    if here:
        return _copy(moved) if copy else moved
    if donate:
        x.delete()
    return moved


def place_like(x: Any, shape: Sequence[Any]) -> Sharding | None:
    """Where a new array of a shape lies that is made like `x`: where that was put; None for the default place."""
    if not is_array(x) or not x.committed or x.aval.weak_type:
        return None
    where = x.sharding
    return where if where.num_devices == 1 or tuple(shape) == x.shape else None


def on_first_device(x: Any) -> Any:
    """An array on several devices, whole on the first of them and not committed to it."""
    if isinstance(x, KeyArray):
        return KeyArray(x.aval, on_first_device(x.raw))
    return _transfer(x, array_aval(x.aval), x.sharding._devices()[0], False)


def _copy(x: Any) -> Any:
    """An array in memory of its own, at the same place."""
    with off_mesh():
        return copy_p.bind(x)


def _without_default(where: Where) -> Any:
    """A device for the sharding that is the device in its default memory."""
    return where._device if isinstance(where, SingleDeviceSharding) and where.memory_kind == DEVICE else where


def _is_at(x: Any, where: Where) -> bool:
    if isinstance(where, SingleDeviceSharding):
        return bool(x.sharding == where)
    return bool(x.device == where) and x.sharding.memory_kind == (
        where.memory_kind if isinstance(where, Sharding) else DEVICE
    )


def in_memory(x: Value, kind: str) -> Sharding:
    """Where a value is, in another kind of memory. Raises ValueError if its devices don't have it."""
    where = x.sharding if is_array(x) else SingleDeviceSharding(default_device())
    return where.with_memory_kind(kind)


def in_layout(x: Any, layout: Layout) -> Any:
    """An array whose axes lie in this order. Raises BackendError for a backend that keeps arrays in one order."""
    layout.check_compatible_aval(x.shape)
    if x.format.layout.major_to_minor == layout.major_to_minor:
        return x
    relaid = backend_of(x.device).capabilities.relaid
    if relaid is None:
        raise BackendError(
            at_user_line(
                f"the {backend_of(x.device).name} backend keeps arrays row by row, and {layout} is another order. Leave"
                " the layout out, or run on 'cpu'."
            )
        )
    return relaid(x, layout)


transfer_p.add_rules(impl=lambda *xs, devices, srcs: [move(x, d) for x, d in zip(xs, devices)])


def _constrain(x: Value, *, sharding: NamedSharding) -> Any:
    """Outside of a program, a constraint moves the value; axes that it leaves open keep their placement."""
    if P.UNCONSTRAINED in sharding.spec.partitions:
        here = getattr(spread_of(x), "spec", P())
        sharding = sharding.update(
            spec=P(
                *[
                    (here[i] if i < len(here) else None) if p is P.UNCONSTRAINED else p
                    for i, p in enumerate(sharding.spec)
                ]
            )
        )
    return move(x, sharding)


sharding_constraint_p.add_rules(impl=_constrain)


def _move_to(x: Value, *, dst_sharding: NamedSharding) -> Any:
    """Outside of a program an array moves to the devices of the mesh: its own, the one that is set, or that of the
    sharding.
    """
    mesh = dst_sharding.mesh
    if not isinstance(mesh, Mesh):
        here = [m for m in (getattr(spread_of(x), "mesh", None), get_mesh()) if isinstance(m, Mesh)]
        found = next((m for m in here if m.shape_tuple == mesh.shape_tuple), None)
        if found is None:
            raise ValueError(
                at_user_line(
                    f"reshard to {dst_sharding}: no mesh with devices is set that has these axes. Set it, with"
                    " weft.set_mesh(mesh)."
                )
            )
        mesh = found.update(axis_types=mesh.axis_types)
    spec = dst_sharding.spec.update(unreduced=frozenset(), reduced=frozenset())  # such sums are made at once
    return move(x, NamedSharding(mesh, spec))


reshard_p.add_rules(impl=_move_to)
