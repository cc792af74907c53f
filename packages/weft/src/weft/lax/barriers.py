"""Functions of `weft.lax` that compute nothing: barriers, sinks, tokens, and stage."""

from __future__ import annotations


from ..base.annotations import PyTree
from ..effects import barriers as ops
from ..transforms import tokens
from ..base.tree import tree_flatten, tree_unflatten
from ..typing import Array, ArrayLike, Tree
from .common import on_device
from .common import operand as checked

__all__ = ["after_all", "create_token", "dce_sink", "optimization_barrier", "stage"]


def optimization_barrier(operand: Tree, /) -> Tree:
    """Keeps compilers from moving anything across arrays: all are computed before any is used.

    Args:
        operand: pytree of arrays of any dtype, any shape.

    Returns:
        pytree like operand, with the same values.

    Example:
        >>> from weft import lax
        >>> lax.optimization_barrier((1.0, 2))
        (Array(1., dtype=float32, weak_type=True), Array(2, dtype=int32, weak_type=True))
    """
    flat, tree = tree_flatten(operand)
    return tree_unflatten(
        tree, ops.optimization_barrier_p.bind(*[on_device(checked("optimization_barrier", x)) for x in flat])
    )


def dce_sink(val: PyTree, *, prevent_mlir_dce: bool = False) -> None:
    """Keeps what computes the arrays of a pytree in traced programs, though nobody uses them.

    Args:
        val: pytree of arrays of any dtype, any shape.
        prevent_mlir_dce: bool: keep it in the compiled program too, which needs the CPU backend with a custom call
            named dce_sink.

    Returns:
        None.

    Example:
        >>> import weft
        >>> str(weft.make_jaxpr(weft.lax.dce_sink)(1.0))
        '{ lambda ; a:f32[]. let dce_sink[prevent_mlir_dce=False] a in () }'
    """
    ops.dce_sink_p.bind(
        *[checked("dce_sink", x) for x in tree_flatten(val)[0]], prevent_mlir_dce=bool(prevent_mlir_dce)
    )


def create_token(_: object = None) -> Array:
    """Makes a token; `after_all` joins tokens. Nothing else takes them.

    Args:
        _: anything; it is not read.

    Returns:
        token: a scalar of the dtype of tokens, without a value.

    Example:
        >>> from weft import lax
        >>> token = lax.after_all(lax.create_token(), lax.create_token())
    """
    return tokens.create_token_p.bind()


def after_all(*operands: ArrayLike) -> Array:
    """Makes a token that stands for all the tokens given.

    Args:
        operands: tokens, scalars of the dtype of tokens.

    Returns:
        token.

    Raises:
        TypeError: for arguments that are no tokens.

    Example:
        >>> from weft import lax
        >>> token = lax.after_all()
    """
    return tokens.after_all_p.bind(*operands)


def stage(x: Tree, /) -> Tree:
    """Makes a value one of the program that is being traced, even where it is known already; outside of tracing it is
    the value itself.

    Args:
        x: array of any dtype, any shape.

    Returns:
        array of the dtype and shape of x.

    Example:
        >>> import weft
        >>> str(weft.make_jaxpr(lambda: weft.lax.stage(2.0))())
        '{ lambda ; . let  in (2.0:f32[],) }'
    """
    return on_device(ops.stage_p.bind(checked("stage", x)))
