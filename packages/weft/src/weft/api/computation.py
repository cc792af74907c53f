"""`xla_computation`: a function as the computation that XLA compiles."""

from __future__ import annotations

from typing import Any, Callable, Hashable, Iterable, Sequence

from ..base.annotations import Args, Function, like
from .tracing import make_jaxpr
from ..core.trace import Axis
from ..base.errors import BackendError
from .functions import check_callable, name_of
from ..runtime.device import get_backend
from ..transforms.physical import lower_types
from ..base.tree import tree_flatten


def xla_computation(
    fun: Callable[Args, Any],
    static_argnums: int | Iterable[int] = (),
    axis_env: Sequence[tuple[Hashable, int]] | None = None,
    in_parts: None = None,
    out_parts: None = None,
    backend: str | None = None,
    tuple_args: bool | None = False,
    instantiate_const_outputs: bool | None = None,
    return_shape: bool = False,
    donate_argnums: int | Iterable[int] = (),
) -> Function[Args, Any]:
    """A function that returns the XLA computation of `fun` for example arguments.

    Args:
        fun: function of pytrees of arrays, of any dtype and shape.
        static_argnums: int or sequence of ints: arguments that are Python values, part of the computation.
        axis_env: sequence of (name, size): the axes over which `fun` communicates. The computation has a replica for
            each index; the last axis varies fastest.
        in_parts: None, the only value that is taken; `jit(in_shardings=…).lower(…)` gives partitioned programs.
        out_parts: None, the only value that is taken.
        backend: name of an XLA platform: 'cpu', 'gpu' or 'tpu'; None for the default one.
        tuple_args: bool: whether the computation takes one tuple; None: if there are more than 100 arguments.
        instantiate_const_outputs: has no effect.
        return_shape: bool: return a pair of the computation and the pytree of result shapes.
        donate_argnums: int or sequence of ints: arguments whose memory the results may take.

    Returns:
        function of arrays, or of values with a shape and a dtype. It returns an object with `as_hlo_text()`,
        `as_serialized_hlo_module_proto()` and `as_hlo_dot_graph()`.

    Raises:
        ValueError: for `in_parts` and `out_parts`.
        BackendError: when it is called, if XLA is not installed.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> 'cosine' in weft.xla_computation(jnp.cos)(3.0).as_hlo_text()
        True
    """
    check_callable(fun)
    if in_parts is not None or out_parts is not None:
        raise ValueError(
            "xla_computation: in_parts and out_parts belong to sharded_jit, which JAX dropped; weft.jit(f,"
            " in_shardings=…).lower(*args) gives a partitioned program."
        )
    numbers = lambda x: (x,) if isinstance(x, int) else tuple(x)
    static, donate = numbers(static_argnums), numbers(donate_argnums)

    @like(fun)
    def computation(*args, **kwargs):
        closed, shapes = make_jaxpr(fun, static_argnums=static, axis_env=axis_env, return_shape=True)(*args, **kwargs)
        n = len(args)
        fixed, given = {i % n for i in static}, {i % n for i in donate}
        flags = [i in given for i, a in enumerate(args) if i not in fixed for _ in tree_flatten(a)[0]] + [False] * len(
            tree_flatten(kwargs)[0]
        )
        found, platform = get_backend("cpu" if backend is None and get_backend()[0].name != "xla" else backend)
        if found.capabilities.xla is None:
            raise BackendError(
                f"the backend {found.name!r} makes no XLA computations; install weft-native, or look at"
                " weft.make_jaxpr."
            )
        packed = len(flags) > 100 if tuple_args is None else bool(tuple_args)
        made = found.capabilities.xla.computation(
            lower_types(closed),
            f"xla_computation_{name_of(fun)}",
            platform,
            tuple(Axis(n, s) for n, s in axis_env or ()),
            flags,
            packed,
        )
        return (made, shapes) if return_shape else made

    return computation
