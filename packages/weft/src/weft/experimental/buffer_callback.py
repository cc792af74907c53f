"""Callbacks that are given the buffers of their arguments, and write into those of their results."""

from __future__ import annotations

import enum
from functools import partial
from typing import Any, Callable, Mapping

from ..base import dtypes
from ..base.annotations import PyTree, override
from ..base.errors import BackendError, at_user_line
from ..base.host import np
from ..base.tree import tree_flatten
from ..effects.callback import io_callback, pure_callback

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]


class ExecutionStage(enum.Enum):
    """When a callback is called: weft calls it as the program runs."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3


class ExecutionContext:
    """What a buffer callback is told of its call: the stage."""

    stage = ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        """The stream of a GPU; BackendError, because the buffers are the host's."""
        raise BackendError("a buffer callback runs on the host, which has no stream: use the buffers with NumPy.")


class Buffer:
    """The memory of an argument or of a result, during the call alone. NumPy makes an array of it without a copy:
    `numpy.asarray(buffer)`.
    """

    __slots__ = ("_array",)

    def __init__(self, array: Any):
        self._array = array

    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: self._array.dtype)
    ndim = property(lambda self: self._array.ndim)
    writeable = property(lambda self: self._array.flags.writeable)

    def unsafe_raw_buffer_pointer(self) -> int:
        """The address of the memory."""
        return self._array.ctypes.data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._array, dtype, copy=copy)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    @override
    def __repr__(self) -> str:
        return f"Buffer({dtypes.name(self.dtype)}[{','.join(map(str, self.shape))}])"


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: PyTree,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: dict[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """A function that calls `callback(context, results, *args, **kwargs)`, which writes its results into buffers.

    The buffers are in the memory of the host: a backend whose arrays are elsewhere copies them there and back.

    Args:
        callback: gets an `ExecutionContext`, `Buffer`s to write in the structure of `result_shape_dtypes`, and buffers
            to read in the structure of the arguments.
        result_shape_dtypes: pytree of `ShapeDtypeStruct`s.
        has_side_effect: bool: it must be called, even if its results are not used.
        vmap_method: how vmap calls it, as for `weft.pure_callback`.
        input_output_aliases: dictionary from places of arguments to places of results, among the leaves: these results
            hold the argument when the callback is called.
        command_buffer_compatible: bool: its work on a GPU could be recorded once. Without meaning on the host.

    Returns:
        function of pytrees of arrays.

    Raises:
        ValueError: for aliases of other places, or of an argument that has not the type of its result.

    Example:
        >>> import numpy as np
        >>> import weft, weft.numpy as jnp
        >>> from weft.experimental.buffer_callback import buffer_callback
        >>> def add_one(context, out, x):
        ...     np.asarray(out)[...] = np.asarray(x) + 1
        >>> weft.jit(buffer_callback(add_one, weft.ShapeDtypeStruct((2,), "float32")))(jnp.zeros(2))
        Array([1., 1.], dtype=float32)
    """
    results, tree = tree_flatten(result_shape_dtypes)
    aliases = {} if input_output_aliases is None else dict(input_output_aliases)

    def on_the_host(ranks: list[int], *args: PyTree, **kwargs: PyTree) -> PyTree:
        given, given_tree = tree_flatten((args, kwargs))
        arrays = [np.asarray(x).view() for x in given]
        for array in arrays:
            array.flags.writeable = False
        batch = np.broadcast_shapes(*[a.shape[: a.ndim - rank] for a, rank in zip(arrays, ranks)])
        outs = [np.zeros((*batch, *r.shape), dtypes.dtype(r.dtype)) for r in results]
        for source, target in aliases.items():
            outs[target][...] = arrays[source]
        values, named = given_tree.unflatten([Buffer(a) for a in arrays])
        callback(ExecutionContext(), tree.unflatten([Buffer(out) for out in outs]), *values, **named)
        return tree.unflatten(outs)

    def function(*args: Any, **kwargs: Any) -> Any:
        given = tree_flatten((args, kwargs))[0]
        _check_aliases(aliases, given, results)
        call: Callable[..., Any] = partial(on_the_host, [np.ndim(x) for x in given])
        if has_side_effect and vmap_method is None:
            return io_callback(call, result_shape_dtypes, *args, **kwargs)
        return pure_callback(call, result_shape_dtypes, *args, vmap_method=vmap_method, **kwargs)

    return function


def _check_aliases(aliases: Mapping[int, int], given: list[Any], results: list[Any]) -> None:
    for source, target in aliases.items():
        if not 0 <= source < len(given) or not 0 <= target < len(results):
            raise ValueError(
                at_user_line(
                    f"buffer_callback: input_output_aliases {dict(aliases)} name arguments 0 to {len(given) - 1} and"
                    f" results 0 to {len(results) - 1}."
                )
            )
        have, want = np.shape(given[source]), tuple(results[target].shape)
        if have != want:
            raise ValueError(
                at_user_line(
                    f"buffer_callback: argument {source} of shape {have} can't be the memory of result {target} of"
                    f" shape {want}."
                )
            )
