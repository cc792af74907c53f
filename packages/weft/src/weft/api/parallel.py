"""Computing on several devices: `pmap`, `shard_map` and arrays made of parts. Loaded when one of its names is first
used.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import wraps
from typing import Any, Callable, Hashable, Iterable, Sequence, overload

from ..runtime.backend import Device
from ..typing import AxisName
from ..base.annotations import Args, Decorator, Function, PyTree, Result, override
from ..base.config import config
from ..core.shardings import parts_of
from ..higher_order.shard_map import (
    bind_shard_map,
    global_aval,
    inside,
    local_aval,
    manual_axes,
    mesh_inside,
    nested_sizes,
)
from ..core.jaxpr import ClosedJaxpr
from ..core.trace import get_aval, is_array, is_array_like, mapped_axes
from ..runtime.array import KeyArray
from ..primitives.linear import expand_dims, squeeze
from ..runtime.device import devices as all_devices
from ..runtime.dispatch import host_array, move, put
from ..runtime.gather import relaid
from ..runtime.jit import JitFunction, abstractify
from .parts import make_array_from_single_device_arrays
from ..runtime.partition import spread_of
from ..runtime.processes import local_devices
from ..base.mesh import AbstractMesh, AxisType, Mesh, NamedSharding, P, PartitionSpec, axes_of, grid_mesh
from ..base.source_info import api_boundary
from ..base.mesh import use_abstract_mesh
from ..base.errors import at_user_line
from ..transforms.stage import stage_closed
from ..base.tree import (
    broadcast_prefix,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_unflatten,
)

# meshes --------------------------------------------------------------------------------------------------------------


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[Hashable],
    axis_types: tuple[AxisType, ...] | None = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """A mesh of the first devices, as many as the sizes ask for.

    Along axes of `AxisType.Auto` the compiler lays values out. Along those of `AxisType.Explicit` types say how values
    are divided (`weft.typeof(x)`: `float32[8@x,2]`), and moving them between devices takes a word, `weft.reshard`.

    Args:
        axis_shapes: sequence of ints, the sizes of the axes.
        axis_names: sequence of names, one for each axis.
        axis_types: sequence of `AxisType`, one for each axis; None for `Explicit`.
        devices: sequence of devices; None for all.

    Returns:
        `Mesh`, whose shape is `axis_shapes`.

    Raises:
        ValueError: if there are fewer devices.

    Example:
        >>> import weft
        >>> weft.make_mesh((1,), ("x",)).axis_sizes
        (1,)
    """
    sizes = tuple(int(n) for n in axis_shapes)
    found = list(all_devices() if devices is None else devices)
    need = math.prod(sizes)
    if need > len(found):
        raise ValueError(
            f"a mesh of shape {sizes} needs {need} devices, and there are {len(found)}. {_more_devices(need)}"
        )
    explicit = (AxisType.Explicit,) * len(sizes)
    return grid_mesh(found[:need], sizes, axis_names, explicit if axis_types is None else axis_types)


def _more_devices(n: int) -> str:
    return (
        f"To have {n} virtual CPU devices, set weft.config.update('jax_num_cpu_devices', {n}) before the first array is"
        " made."
    )


# shard_map -----------------------------------------------------------------------------------------------------------

_INFER = object()


@overload
def shard_map(
    f: Callable[Args, Result],
    /,
    *,
    out_specs: PartitionSpec | PyTree,
    in_specs: PartitionSpec | PyTree = ...,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Iterable[Hashable] = frozenset(),
    check_vma: bool = True,
) -> Function[Args, Result]: ...
@overload
def shard_map(
    f: None = None,
    /,
    *,
    out_specs: PartitionSpec | PyTree,
    in_specs: PartitionSpec | PyTree = ...,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Iterable[Hashable] = frozenset(),
    check_vma: bool = True,
) -> Decorator: ...
def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: PartitionSpec | PyTree,
    in_specs: PartitionSpec | PyTree = _INFER,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Iterable[Hashable] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Runs a function on each device of a mesh, on that device's parts of the arguments.

    Args:
        f: function of pytrees of arrays, the parts that one device has. Without it, the result is a decorator.
        out_specs: pytree prefix of `weft.P` for the results: which axes are cut along which axes of the mesh.
        in_specs: the same for the arguments. Without them it is as their types say, along explicit axes of the mesh.
        mesh: the mesh; None for the one that `weft.set_mesh` has set.
        axis_names: set of the mesh axes that `f` sees; the compiler handles the others. Empty for all.
        check_vma: bool: check that results which `out_specs` calls copies are the same on all devices.

    Returns:
        function of whole arrays, of the same dtypes. The shape of a whole is that of a part times the sizes of the mesh
        axes that cut it.

    Raises:
        TypeError: if `f` is not a function.
        ValueError: when it is called, without `in_specs` over axes that are not explicit, for specs that differ from
            what the types of arguments say, for axes that can't be cut evenly, and for results that may differ though
            `out_specs` calls them copies.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> mesh = weft.make_mesh((1,), ("x",))
        >>> total = lambda x: weft.lax.psum(x, "x")
        >>> weft.shard_map(total, mesh=mesh, in_specs=weft.P("x"), out_specs=weft.P())(jnp.arange(2.))
        Array([0., 1.], dtype=float32)
    """
    if f is None:
        return lambda g: shard_map(
            g, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names, check_vma=check_vma
        )
    if not callable(f):
        raise TypeError(f"shard_map takes a function, got {f!r}.")
    cache: dict = {}

    @wraps(f)
    @api_boundary
    def shard_map_f(*args):
        over = config.context_mesh if mesh is None else mesh
        if over is None:
            raise ValueError("shard_map needs a mesh: pass mesh=, or set one with weft.set_mesh(mesh).")
        names = frozenset(axis_names if not isinstance(axis_names, str) else (axis_names,)) or frozenset(
            over.axis_names
        )
        if not names <= set(over.axis_names):
            raise ValueError(
                f"shard_map's axis_names {sorted(map(str, names))} must be axes of the mesh, whose axes are"
                f" {over.axis_names}."
            )
        leaves, in_tree = tree_flatten(args)
        ins = _inferred(leaves, over, names) if in_specs is _INFER else _flat_specs("in_specs", in_specs, args, names)
        for path, x in tree_flatten_with_path(args)[0]:
            if not is_array_like(x):
                raise TypeError(
                    f"shard_map: the argument at {keystr(path)} is a {type(x).__name__}, which is not an array or a"
                    " number."
                )
        parts = [
            _local(abstractify(x), spec, over, path, check_vma, names)
            for (path, x), spec in zip(tree_flatten_with_path(args)[0], ins)
        ]
        key = (in_tree, tuple(parts), tuple(ins), over, names, config.trace_context())
        known = cache.get(key)
        if known is None:
            known = _trace_parts(f, in_tree, parts, over, names, out_specs, check_vma)
            if not known[1]:  # nothing of an outer trace
                cache[key] = known
        closed, consts, out_tree, outs = known
        if check_vma:
            check_copies(closed.out_avals, outs, names, getattr(f, "__name__", str(f)))
        results = bind_shard_map([*consts, *leaves], closed, over, [P()] * len(consts) + ins, outs, check_vma, names)
        return tree_unflatten(out_tree, results)

    return shard_map_f


def _inferred(leaves: Sequence, mesh: Mesh | AbstractMesh, names: frozenset) -> list[PartitionSpec]:
    """The specs of arguments as their types say. Raises ValueError for axes of which types say nothing."""
    silent = [n for n in names if n not in mesh.explicit_axes]
    if silent and mesh.size > 1:
        raise ValueError(
            at_user_line(
                f"shard_map needs in_specs: it runs over {', '.join(map(repr, silent))}, and types say how values are"
                " divided along explicit axes alone. Give a weft.P for each argument, or make the mesh"
                " with weft.make_mesh."
            )
        )
    parts = lambda x: [tuple([a for a in axes_of(part) if a in names]) for part in parts_of(abstractify(x))]
    return [P(*parts(x)) if is_array_like(x) else P() for x in leaves]


def _flat_specs(what: str, specs: Any, tree: Any, names) -> list:
    is_spec = lambda s: isinstance(s, PartitionSpec)
    if isinstance(specs, list) and isinstance(tree, tuple):
        specs = tuple(specs)
    try:
        flat = broadcast_prefix(specs, tree, is_spec)
    except ValueError as e:
        raise ValueError(
            f"shard_map's {what} must be a weft.P, or a pytree prefix of them for the"
            f" {'arguments' if what == 'in_specs' else 'results'}: {e}"
        ) from e
    for s in flat:
        if s is not None and not is_spec(s):
            raise TypeError(f"shard_map's {what} must hold weft.P (PartitionSpec) only, got {s!r}.")
        for part in s or ():
            if any(a not in names for a in axes_of(part)):
                raise ValueError(
                    f"shard_map's {what} {s} names an axis that the function does not run over: its axes are"
                    f" {sorted(map(str, names))}."
                )
    return [P() if s is None else s for s in flat]


def _local(aval, spec, mesh, path, check_vma: bool, names: frozenset):
    try:
        return local_aval(aval, spec, mesh, check_vma, names)
    except ValueError as e:
        raise ValueError(f"shard_map: the argument at {keystr(path)}: {e}") from e


def _trace_parts(f: Callable, in_tree, avals, mesh, names, out_specs, check_vma: bool):
    """(the program of one device's parts, the constants that lead its arguments, the results' structure, their
    specs).
    """
    box: list = []

    def flat(*xs):
        out, tree = tree_flatten(f(*in_tree.unflatten(xs)))
        box.append(tree)
        return out

    seen = use_abstract_mesh(mesh_inside(mesh, names)) if mesh.typed_axes else nullcontext()
    with seen, mapped_axes(*manual_axes(mesh, names, check_vma)):
        traced = stage_closed(flat, avals, f"the function {getattr(f, '__name__', f)}")
    jaxpr = traced.jaxpr
    closed = ClosedJaxpr(jaxpr.replace(constvars=[], invars=jaxpr.constvars + jaxpr.invars), [])
    out_tree = box[0]
    outs = _flat_specs("out_specs", out_specs, tree_unflatten(out_tree, [0] * out_tree.num_leaves), names)
    for aval, spec in zip(closed.out_avals, outs):
        global_aval(aval, spec, mesh)
    return closed, traced.consts, out_tree, outs


@overload
def smap(
    f: Callable[Args, Result],
    /,
    *,
    in_axes: int | PyTree | None = ...,
    out_axes: int | PyTree | None,
    axis_name: AxisName,
) -> Function[Args, Result]: ...
@overload
def smap(
    f: None = None, /, *, in_axes: int | PyTree | None = ..., out_axes: int | PyTree | None, axis_name: AxisName
) -> Decorator: ...
def smap(
    f: Callable[..., Any] | None = None,
    /,
    *,
    in_axes: int | PyTree | None = _INFER,
    out_axes: int | PyTree | None,
    axis_name: AxisName,
) -> Any:
    """`shard_map` over one axis of the current mesh, with arguments like those of `vmap`: `in_axes` and `out_axes` name
    the axis that is cut, or None for a value that is not cut.

    Args:
        f: function of pytrees of arrays: of the parts that one device has.
        in_axes: int, None, or pytree of them: the axis of each argument that is cut.
        out_axes: int, None, or pytree of them: the axis of each result along which parts are put together.
        axis_name: name of an axis of the mesh.

    Returns:
        function of whole arrays, of the same dtypes.

    Raises:
        ValueError: for axes that can't be cut evenly.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> with weft.set_mesh(weft.make_mesh((1,), ("x",))):
        ...     print(weft.smap(lambda x: x * 2, in_axes=0, out_axes=0, axis_name="x")(jnp.arange(2.)))
        [0. 2.]
    """
    if f is None:
        return lambda g: smap(g, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    spec = lambda axis: P() if axis is None else P(*[None] * axis, axis_name)
    none = lambda x: x is None
    specs = lambda axes: tree_map(spec, tuple(axes) if isinstance(axes, list) else axes, is_leaf=none)
    ins = in_axes if in_axes is _INFER else specs(in_axes)
    return shard_map(f, in_specs=ins, out_specs=specs(out_axes), axis_names={axis_name})


def check_copies(avals: Sequence, out_specs, names: frozenset, who: str) -> None:
    """Raises ValueError for a result that may differ between devices which, by its spec, hold copies of it."""
    for i, (aval, spec) in enumerate(zip(avals, out_specs)):
        named = {a for part in spec for a in axes_of(part)}
        wrong = sorted(a for a in names if a in aval.vma and a not in named)
        if wrong:
            raise ValueError(
                f"shard_map of {who}: out_specs say that result {i} ({spec}) is the same along {wrong}, and it may"
                " differ there. Name the axes in its spec, reduce the result over them (weft.lax.psum, pmean, …), or,"
                " if you know that it is the same, pass check_vma=False."
            )


# pmap ----------------------------------------------------------------------------------------------------------------

_PMAP_AXIS = "_internal_pmap_axis_name"


def pmap(
    fun: Callable[Args, Result],
    axis_name: AxisName | None = None,
    *,
    in_axes: int | PyTree | None = 0,
    out_axes: int | PyTree | None = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> PmapFunction[Args, Result]:
    """`fun` over an axis of its arguments, one device for each entry, as one program. In several processes, each passes
    the entries of its own devices and gets their results; collectives are over the entries of all.

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        axis_name: a name by which collectives (`weft.lax.psum` and its siblings) refer to the axis.
        in_axes, out_axes: which axis of each argument and result is mapped; None for arguments that all devices get
            whole and results that are the same.
        static_broadcasted_argnums: arguments that are Python values, part of the program; they must hash.
        devices: the devices, as many as the axis has entries; default: the first ones.
        backend: name of a platform, such as 'cpu'; None for the default one.
        axis_size: int, the size of the axis, where no argument says it; None for that of the arguments.
        donate_argnums: arguments whose memory the program may reuse.

    Returns:
        function of the same arguments; mapped arrays have the number of devices along an axis, and results the same
        dtypes.

    Raises:
        ValueError: for axes of different sizes, and for more entries than devices.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.pmap(lambda x: x + weft.lax.psum(x, "i"), axis_name="i")(jnp.ones((1, 2)))
        Array([[2., 2.]], dtype=float32)
    """
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}.")
    return PmapFunction(
        fun,
        axis_name,
        in_axes,
        out_axes,
        _numbers(static_broadcasted_argnums),
        devices,
        backend,
        axis_size,
        _numbers(donate_argnums),
    )


def _numbers(x) -> tuple:
    return (x,) if isinstance(x, int) else tuple(x)


class PmapFunction(JitFunction[Args, Result]):
    """The result of `weft.pmap`: a jitted function that binds shard_map over the devices."""

    def __init__(self, fun, axis_name, in_axes, out_axes, static, devices, backend, axis_size, donate):
        self.body, self.axis_name = fun, _PMAP_AXIS if axis_name is None else axis_name
        self.in_axes, self.out_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes, out_axes
        self.devices, self.platform, self.axis_size = None if devices is None else tuple(devices), backend, axis_size
        if self.devices is not None and axis_size is not None and axis_size != len(self.devices):
            raise ValueError(f"pmap: axis_size is {axis_size}, and {len(self.devices)} devices are given.")
        for a in tree_leaves(self.in_axes):
            if not isinstance(a, int):
                raise TypeError(f"pmap in_axes must be an int, None, or a container of those; got {in_axes}.")

        @wraps(fun, updated=())  # another pmap's attributes do not apply to this one
        def mapped(*args, **kwargs):
            return self.bind(args, kwargs)

        super().__init__(mapped, static, (), donate, ())

    @override
    def __repr__(self):
        return f"<pmapped {self.body!r}>"

    @override
    def run(self, *args, **kwargs):
        if self.spans() and not inside():
            return self.run_everywhere(args, kwargs), None
        return super().run(*self.placed(args), **kwargs)

    def spans(self) -> bool:
        """Whether the devices are those of several processes."""
        found = all_devices(self.platform) if self.devices is None else self.devices
        return len({d.process_index for d in found}) > 1

    def run_everywhere(self, args, kwargs):
        """The results of this process, which passes the entries of its devices. All processes call this."""
        args = self.placed(args)
        fixed, dynamic, axes = self.split_static(args)
        leaves, tree = tree_flatten((dynamic, kwargs))
        dims = _prefix("in_axes", (axes, 0), (dynamic, kwargs))
        processes = len({d.process_index for d in self.available()})
        mesh = self.mesh(self.entries(dynamic, kwargs, axes) * processes, ())
        there = lambda spec: NamedSharding(mesh, spec)
        here = lambda spec: NamedSharding(mesh.local_mesh, spec)
        specs = [_spec(self.axis_name, None if d is None else d % get_aval(x).ndim) for x, d in zip(leaves, dims)]
        wholes = [x if d is None else relaid(x, here(spec), there(spec)) for x, d, spec in zip(leaves, dims, specs)]
        inner, kwargs = tree.unflatten(wholes)
        rest = iter(inner)
        out, _ = super().run(*[fixed[i] if i in fixed else next(rest) for i in range(len(args))], **kwargs)
        outs, tree = tree_flatten(out)
        placed = [
            _spec(self.axis_name, None if d is None else d % x.ndim)
            for x, d in zip(outs, _prefix("out_axes", self.out_axes, out))
        ]
        return tree_unflatten(tree, [relaid(x, there(spec), here(spec)) for x, spec in zip(outs, placed)])

    @override
    def lower(self, *args, **kwargs):
        return super().lower(*self.placed(args), **kwargs)

    def entries(self, dynamic, kwargs, axes) -> int:
        """The size of the mapped axes."""
        leaves = tree_leaves((dynamic, kwargs))
        dims = _prefix("in_axes", (axes, 0), (dynamic, kwargs))
        paths = [keystr(p[1:]) for p, _ in tree_flatten_with_path((dynamic, kwargs))[0]]
        sizes: dict = {}
        for x, d, path in zip(leaves, dims, paths):
            if d is not None:
                shape = get_aval(x).shape
                if not -len(shape) <= d < len(shape):
                    raise ValueError(
                        f"pmap was requested to map its argument at {path} along axis {d}, and its shape {shape} has no"
                        " such axis. Choose another in in_axes, or None for an argument that all devices get whole."
                    )
                sizes.setdefault(shape[d], path)
        if len(sizes) > 1:
            what = ", ".join(f"{n} (argument {path})" for n, path in sizes.items())
            raise ValueError(
                f"pmap got inconsistent sizes for array axes to be mapped: {what}. Mapped axes must have one size."
            )
        if not sizes:
            raise ValueError("pmap requires at least one argument with a mapped axis.")
        return next(iter(sizes))

    def mapped_size(self, dynamic, kwargs, axes) -> int:
        """The same, after a check that it fits the devices."""
        size = self.entries(dynamic, kwargs, axes)
        if self.axis_size is not None and self.axis_size != size:
            raise ValueError(f"Specified axis_size {self.axis_size} doesn't match received axis_size {size}.")
        if self.devices is not None and len(self.devices) != size and not inside():
            raise ValueError(
                f"pmap got {len(self.devices)} devices for a mapped axis of size {size}; give as many devices as"
                " entries."
            )
        return size

    def available(self) -> list:
        if self.devices is not None:
            return list(self.devices)
        return all_devices(self.platform) if self.spans() else local_devices(backend=self.platform)

    def split_static(self, args) -> tuple[dict, tuple, Any]:
        """(the static arguments by number, the others, the axes of those)."""
        n, axes = len(args), self.in_axes
        fixed = {i % n: args[i] for i in self.static_argnums if -n <= i < n}
        if len(fixed) < len(self.static_argnums):
            raise ValueError(
                f"pmap'd function has static_broadcasted_argnums={self.static_argnums} but was called with only {n}"
                " positional arguments. Static arguments must be passed by position."
            )
        dynamic = tuple(x for i, x in enumerate(args) if i not in fixed)
        if isinstance(axes, tuple):
            if len(axes) != n:
                raise ValueError(
                    "pmap in_axes must be an int, None, or a tuple with one entry for each positional argument: got"
                    f" {axes} for {n} arguments."
                )
            axes = tuple(a for i, a in enumerate(axes) if i not in fixed)
        return fixed, dynamic, axes

    def bind(self, args, kwargs):
        """Runs the function on traced arguments, over the devices."""
        n = len(args)
        fixed, dynamic, axes = self.split_static(args)
        size, nested, name = self.mapped_size(dynamic, kwargs, axes), inside(), self.axis_name
        leaves, in_tree = tree_flatten((dynamic, kwargs))
        avals = [get_aval(x) for x in leaves]
        dims = [
            None if d is None else d % len(a.shape)
            for d, a in zip(_prefix("in_axes", (axes, 0), (dynamic, kwargs)), avals)
        ]
        specs = [_spec(name, d) for d in dims]
        one = AbstractMesh((size,), (name,))
        box: list = []

        def body(*xs):
            inner, kw = in_tree.unflatten([x if d is None else squeeze(x, (d,)) for x, d in zip(xs, dims)])
            rest = iter(inner)
            out = self.body(*[fixed[i] if i in fixed else next(rest) for i in range(n)], **kw)
            outs, tree = tree_flatten(out)
            placed = [
                None if d is None else d % (len(get_aval(x).shape) + 1)
                for x, d in zip(outs, _prefix("out_axes", self.out_axes, out))
            ]
            box.append((tree, placed))
            return [x if d is None else expand_dims(x, (d,)) for x, d in zip(outs, placed)]

        with mapped_axes(*manual_axes(one, {name})):
            traced = stage_closed(
                body, [local_aval(a, s, one) for a, s in zip(avals, specs)], f"the function {self.name}"
            )
        closed = ClosedJaxpr(
            traced.jaxpr.replace(constvars=[], invars=traced.jaxpr.constvars + traced.jaxpr.invars), []
        )
        mesh = one if nested else self.mesh(size, nested_sizes(closed.jaxpr))
        out_tree, placed = box[0]
        outs = bind_shard_map(
            [*traced.consts, *leaves],
            closed,
            mesh,
            [P()] * len(traced.consts) + specs,
            [_spec(name, d) for d in placed],
            False,
            frozenset({name}),
        )
        return tree_unflatten(out_tree, outs)

    def mesh(self, size: int, nested: tuple) -> Mesh:
        """The devices as a grid: the mapped axis, and one axis for each inner pmap, as far as there are devices."""
        found = self.available()
        if self.spans():
            processes = sorted({d.process_index for d in found})
            of = {i: [d for d in found if d.process_index == i] for i in processes}
            each, left = divmod(size, len(processes))
            if left or any(len(d) < each for d in of.values()):
                raise ValueError(
                    f"pmap over {each} entries in each of {len(processes)} processes needs as many devices there; the"
                    f" processes have {', '.join(str(len(d)) for d in of.values())}."
                )
            return grid_mesh([d for i in processes for d in of[i][:each]], (size,), (self.axis_name,))
        # the given devices are those of this axis; others fill up
        if self.devices is not None and self.devices and nested:
            found = [*self.devices, *[d for d in local_devices(backend=self.platform) if d not in self.devices]]
        if size > len(found):
            raise ValueError(
                f"pmap over an axis of size {size} needs {size} devices, and there are {len(found)}."
                f" {_more_devices(size)} weft.vmap computes the same on one device."
            )
        while nested and size * math.prod(nested) > len(found):
            nested = nested[:-1]  # the remaining axes run one after another on each device
        names = [self.axis_name, *[f"{self.axis_name} {i + 1}" for i in range(len(nested))]]
        types = [AxisType.Auto] + [AxisType.Manual] * len(nested)
        return grid_mesh(found[: size * math.prod(nested)], (size, *nested), names, types)

    def placed(self, args):
        """Moves arrays that are committed to other devices to those of the mapped axis."""
        committed = [x for x in tree_leaves(args) if is_array(x) and x.committed]
        if not committed or inside():
            return args
        sets = {
            frozenset(lies._devices()) if (lies := spread_of(x)) is not None else frozenset((x.device,))
            for x in committed
        }
        if len(sets) == 1 and len(next(iter(sets))) > 1:
            (there,) = sets
            if self.devices is None or there == set(self.devices):
                return args

        def free(v: Any) -> Any:
            if isinstance(v, KeyArray):
                return KeyArray(v.aval, free(v.raw))
            return put(host_array(v._host(), get_aval(v)), get_aval(v)) if is_array(v) and v.committed else v

        return tuple(
            (
                tree_map(free, x)
                if i not in {s % len(args) for s in self.static_argnums if -len(args) <= s < len(args)}
                else x
            )
            for i, x in enumerate(args)
        )


def _spec(name, d) -> PartitionSpec:
    return P() if d is None else P(*[None] * d, name)


def _prefix(what: str, axes, values) -> list:
    try:
        return broadcast_prefix(axes, values)
    except ValueError as e:
        raise ValueError(f"pmap {what} must be an int, None, or a pytree prefix of the values: {e}") from e


# arrays made of parts ------------------------------------------------------------------------------------------------


def device_put_sharded(shards: Sequence[PyTree], devices: Sequence[Device]) -> Any:
    """Stacks one value for each device, and puts each on its device: like `weft.numpy.stack` on pytrees, sharded over
    the devices.

    Args:
        shards: sequence of pytrees of arrays, of one structure, one dtype and one shape for each leaf.
        devices: sequence of as many devices.

    Returns:
        pytree like the shards, of the same dtypes; each shape has the number of devices in front.

    Raises:
        ValueError: if there are not as many values as devices, or they differ in shape, dtype or structure.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.device_put_sharded([jnp.ones(2)], weft.devices()[:1]).shape
        (1, 2)
    """
    if not isinstance(shards, Sequence):
        raise TypeError(f"device_put_sharded `shards` input must be a sequence; got {type(shards)}")
    if len(shards) != len(devices):
        raise ValueError(f"len(shards) = {len(shards)} must equal len(devices) = {len(devices)}.")
    if not shards:
        raise ValueError("device_put_sharded needs at least one shard and one device.")
    flat = [tree_flatten(s) for s in shards]
    if any(tree != flat[0][1] for _, tree in flat):
        raise ValueError("the shards passed to device_put_sharded must have the same tree structure.")
    out = []
    for parts in zip(*[leaves for leaves, _ in flat]):
        avals = [get_aval(x) for x in parts]
        if any(a.shape != avals[0].shape or a.dtype != avals[0].dtype for a in avals):
            raise ValueError(
                "the shards passed to device_put_sharded must have consistent shapes and dtypes; got"
                f" {', '.join(a.str_short() for a in avals)}."
            )
        out.append(_stacked_over([move(x, d) for x, d in zip(parts, devices)], avals[0], devices))
    return flat[0][1].unflatten(out)


def device_put_replicated(x: PyTree, devices: Sequence[Device]) -> Any:
    """Copies a pytree to each device. The copies form a new first axis, which is sharded over the devices.

    Args:
        x: pytree of arrays, of any dtype and shape.
        devices: sequence of devices.

    Returns:
        pytree like x, of the same dtypes; each shape has the number of devices in front.

    Raises:
        ValueError: if there are no devices.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> weft.device_put_replicated(jnp.ones(2), weft.devices()[:1]).shape
        (1, 2)
    """
    if not isinstance(devices, Sequence) or not devices:
        raise ValueError("device_put_replicated needs a sequence of at least one device.")
    return tree_map(lambda v: _stacked_over([move(v, d) for d in devices], get_aval(v), devices), x)


def _stacked_over(parts: Sequence, aval, devices: Sequence):
    sharding = NamedSharding(Mesh(list(devices), (_PMAP_AXIS,)), P(_PMAP_AXIS))
    rows = [move(expand_dims(x, (0,)), d) for x, d in zip(parts, devices)]
    return make_array_from_single_device_arrays((len(devices), *aval.shape), sharding, rows)
