"""jax.interpreters.batching: rules for vmap. Rules of weft take the mapped axis first. The conventions of jax's rules
differ by the table that holds them.
"""

from __future__ import annotations

from ..core.trace import Axis, get_aval
from ..primitives.linear import broadcast_to_axis, moveaxis
from .core import RuleTable

not_mapped = NotMapped = None


def _size(args, dims):
    return next(get_aval(x).shape[d] for x, d in zip(args, dims) if d is not None)


# rule(args, dims, **params)
primitive_batchers = RuleTable(
    "batch",
    lambda rule: lambda axis, args, dims, **params: rule(tuple(args), tuple(dims), **params),
    lambda p: lambda args, dims, **params: p.batch(Axis(None, _size(args, dims)), args, dims, **params),
)
# rule(size, name, None, args, dims, **params)
axis_primitive_batchers = RuleTable(
    "batch",
    lambda rule: (
        lambda axis, args, dims, **params: rule(axis.size, axis.name, None, tuple(args), tuple(dims), **params)
    ),
    lambda p: lambda size, name, _, args, dims, **params: p.batch(Axis(name, size), args, dims, **params),
)
# rule(axis, args, dims, **params)
fancy_primitive_batchers = RuleTable("batch")


def moveaxis_(x, source: int, destination: int):
    return moveaxis(x, source, destination)


def broadcast(x, sz: int, axis: int, mesh_axis=None):
    """`x` repeated along a new axis."""
    return moveaxis(broadcast_to_axis(x, sz), 0, axis)


def bdim_at_front(x, bdim, size: int, mesh_axis=None):
    """`x` with its batch axis first; repeated along a new one if it has none."""
    return broadcast_to_axis(x, size) if bdim is None else moveaxis(x, bdim, 0)


def defvectorized(prim) -> None:
    """A primitive of one argument that computes each element by itself."""

    def batch(args, dims, **params):
        out = prim.bind(*args, **params)
        return out, ([dims[0]] * len(out) if prim.multiple_results else dims[0])

    primitive_batchers[prim] = batch


def defbroadcasting(prim) -> None:
    """A primitive whose arguments broadcast against each other."""

    def batch(args, dims, **params):
        size, rank = _size(args, dims), max(len(get_aval(x).shape) - (d is not None) for x, d in zip(args, dims))
        ready = []
        for x, d in zip(args, dims):
            if d is not None:
                x = bdim_at_front(x, d, size)
                shape = get_aval(x).shape
                x = x.reshape((shape[0], *[1] * (rank - len(shape) + 1), *shape[1:]))
            ready.append(x)
        out = prim.bind(*ready, **params)
        return out, ([0] * len(out) if prim.multiple_results else 0)

    primitive_batchers[prim] = batch


def defreducer(prim) -> None:
    """A primitive that reduces one argument over its parameter `axes`."""

    def batch(args, dims, *, axes, **params):
        (x,), (d,) = args, dims
        axes = tuple(a + (a >= d) for a in axes)
        return prim.bind(x, axes=axes, **params), d - sum(a < d for a in axes)

    primitive_batchers[prim] = batch
