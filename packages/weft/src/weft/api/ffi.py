"""Calling compiled functions from programs: code that follows XLA's foreign function interface (`xla/ffi/api`),
registered under a name.

Only XLA can call such functions; `include_dir()` has the headers to write them with.
"""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Mapping, Sequence

from ..base import dtypes
from ..base.avals import shaped
from ..effects.callback import check_vmap_method, result_avals_of
from ..effects.foreign import Attribute, ffi_call_p
from ..core.trace import get_aval
from ..base.host import has_numpy, np
from ..runtime.device import backend_for

__all__ = [
    "build_ffi_lowering_function",
    "ffi_call",
    "ffi_lowering",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type",
    "register_ffi_type_id",
]


def _xla():
    return backend_for("cpu").capabilities.xla.foreign


def register_ffi_target(name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any) -> None:
    """Registers a compiled function under `name`, for `ffi_call`.

    Args:
        name: str: the name.
        fn: a PyCapsule around the function's pointer (`pycapsule`), or a dict of them for its stages ("instantiate",
            "prepare", "initialize", "execute").
        platform: str: "cpu", "CUDA" and so on.
        api_version: int: 1 for XLA's typed interface, 0 for the older custom calls.
        **kwargs: further keyword arguments of XLA's registration.

    Returns:
        None.

    Raises:
        BackendError: if XLA is not installed.
        JaxRuntimeError: if XLA refuses the function.

    Example:
        >>> import ctypes, weft
        >>> library = ctypes.CDLL("libmine.so")                                             # doctest: +SKIP
        >>> weft.ffi.register_ffi_target("mine", weft.ffi.pycapsule(library.Mine))          # doctest: +SKIP
    """
    _xla().register_target(name, fn, platform, api_version, **kwargs)


def register_ffi_type(name: str, type_registration: Mapping[str, Any], platform: str = "cpu") -> None:
    """Registers a type of state that a foreign function keeps between its stages.

    Args:
        name: str: the name of the type.
        type_registration: dict with capsules under "type_id" and "type_info".
        platform: str: "cpu", "CUDA" and so on.

    Returns:
        None.

    Raises:
        JaxRuntimeError: if XLA refuses the type.

    Example:
        >>> import weft
        >>> weft.ffi.register_ffi_type("State", {"type_id": type_id, "type_info": info})    # doctest: +SKIP
    """
    _xla().register_type(name, type_registration, platform)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Registers only the id of a type of state that a foreign function keeps between its stages.

    Args:
        name: str: the name of the type.
        obj: a capsule around a pointer to the id.
        platform: str: "cpu", "CUDA" and so on.

    Returns:
        None.

    Raises:
        JaxRuntimeError: if XLA refuses the type.

    Example:
        >>> import weft
        >>> weft.ffi.register_ffi_type_id("State", type_id)                                 # doctest: +SKIP
    """
    _xla().register_type(name, {"type_id": obj}, platform)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Declares that a foreign function computes each part of its leading axes independently, so that XLA may split them
    among devices.

    Args:
        name: str: the name under which the function is registered.

    Returns:
        None.

    Example:
        >>> import weft
        >>> weft.ffi.register_ffi_target_as_batch_partitionable("mine")
    """
    _xla().register_as_batch_partitionable(name)


def include_dir() -> str:
    """The folder with the C and C++ headers of XLA's foreign function interface.

    Returns:
        str: the path.

    Raises:
        BackendError: if XLA is not installed.

    Example:
        >>> import os, weft
        >>> os.path.exists(os.path.join(weft.ffi.include_dir(), "xla", "ffi", "api", "ffi.h"))
        True
    """
    return _xla().include_dir()


def pycapsule(funcptr: Any):
    """A function pointer of ctypes as a PyCapsule, as `register_ffi_target` takes it.

    Args:
        funcptr: function of a `ctypes.CDLL`.

    Returns:
        PyCapsule.

    Example:
        >>> import ctypes, weft
        >>> weft.ffi.pycapsule(ctypes.CDLL(None).printf)     # doctest: +ELLIPSIS
        <capsule object NULL at ...>
    """
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(ctypes.cast(funcptr, ctypes.c_void_p), None, None)


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence | None = None,
    output_layouts: Any = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable:
    """A function that calls the compiled function registered as `target_name`.

    Args:
        target_name: str: the name given to `register_ffi_target`.
        result_shape_dtypes: `ShapeDtypeStruct` or array: the shape and dtype of the result; a sequence for several
            results.
        has_side_effect: bool: make the call even if its results are not used.
        vmap_method: str: how vmap calls it, as for `pure_callback`.
        input_layouts: for each argument its axes from the slowest to the fastest, or None: the last axis is the
            fastest.
        output_layouts: the same for the result, or a sequence for several results.
        input_output_aliases: dict {input: output} of arguments and results that share memory.
        custom_call_api_version: int: 4 for functions of the typed interface. Older versions take
            `legacy_backend_config` and no attributes.
        legacy_backend_config: str: the configuration of a custom call of an older version.

    Returns:
        function of arrays. Its keyword arguments (numbers, strings, NumPy arrays, tuples, dicts) become attributes of
        the call.

    Raises:
        ValueError: for layouts, aliases or results that do not fit.
        TypeError: for attributes of other types.
        JaxRuntimeError: when it runs, if no such function is registered for the platform.

    Example:
        >>> import weft, weft.numpy as jnp
        >>> double = weft.ffi.ffi_call("double", weft.ShapeDtypeStruct((3,), "float32"))
        >>> print(weft.eval_shape(lambda x: double(x, times=2), jnp.ones(3)))
        ShapeDtypeStruct(shape=(3,), dtype=float32)
    """
    check_vmap_method(vmap_method)
    if legacy_backend_config is not None and custom_call_api_version >= 4:
        raise ValueError(
            f"legacy_backend_config needs a custom_call_api_version below 4; got {custom_call_api_version}. Pass"
            " attributes as keyword arguments."
        )
    several = isinstance(result_shape_dtypes, Sequence)
    results = tuple(result_shape_dtypes) if several else (result_shape_dtypes,)
    for i, r in enumerate(results):
        if not hasattr(r, "shape") or not hasattr(r, "dtype"):
            raise ValueError(f"result_shape_dtypes must have 'shape' and 'dtype' attributes; got {r} at position {i}.")
    result_avals = result_avals_of(list(results), "ffi_call")[0]
    out_layouts = _layouts(
        "output",
        [a.shape for a in result_avals],
        output_layouts if several or output_layouts is None else [output_layouts],
    )

    def wrapped(*args: Any, **attributes: Any):
        if attributes and custom_call_api_version < 4:
            raise ValueError(
                f"ffi_call takes attributes from custom_call_api_version 4 on; got {custom_call_api_version}."
            )
        avals = [get_aval(x) for x in args]
        aliases = tuple(sorted((input_output_aliases or {}).items()))
        _check_aliases(aliases, avals, result_avals)
        outs = ffi_call_p.bind(
            *args,
            target_name=target_name,
            result_avals=result_avals,
            vmap_method=vmap_method,
            has_side_effect=has_side_effect,
            input_layouts=_layouts("input", [a.shape for a in avals], input_layouts),
            output_layouts=out_layouts,
            input_output_aliases=aliases,
            custom_call_api_version=custom_call_api_version,
            legacy_backend_config=legacy_backend_config,
            attributes=tuple(sorted((k, _frozen(k, v)) for k, v in attributes.items())),
        )
        return (list(outs) if isinstance(result_shape_dtypes, list) else tuple(outs)) if several else outs[0]

    return wrapped


def _layouts(which: str, shapes: Sequence, given) -> tuple:
    """For each array its axes from the slowest to the fastest."""
    if given is None:
        return tuple(tuple(range(len(s))) for s in shapes)
    if len(given) != len(shapes):
        raise ValueError(f"ffi_call has {len(shapes)} {which} arrays and got {len(given)} {which}_layouts.")
    layouts = []
    for layout, shape in zip(given, shapes):
        layout = tuple(range(len(shape))) if layout is None else tuple(layout)
        if sorted(layout) != list(range(len(shape))):
            raise ValueError(
                f"ffi_call: {which} layout {layout} is not a permutation of the axes of an array of shape"
                f" {tuple(shape)}."
            )
        layouts.append(layout)
    return tuple(layouts)


def _check_aliases(aliases: Sequence, avals: Sequence, results: Sequence) -> None:
    for i, o in aliases:
        for what, n, count in (("input", i, len(avals)), ("output", o, len(results))):
            if not 0 <= n < count:
                raise ValueError(
                    f"input_output_aliases contains the mapping '{i}:{o}' with {what} index {n} outside the range [0,"
                    f" {count})."
                )
        if shaped(avals[i].shape, avals[i].dtype) != results[o]:
            raise ValueError(
                f"input_output_aliases contains the mapping '{i}:{o}': the input is {avals[i].str_short()} and the"
                f" output {results[o].str_short()}."
            )


def _frozen(name: str, value: Any):
    """An attribute as a hashable parameter."""
    if has_numpy and isinstance(value, np.ndarray):
        return Attribute(value)
    if isinstance(value, Mapping):
        return ("dict", *sorted((k, _frozen(name, v)) for k, v in value.items()))
    if isinstance(value, tuple):
        return ("tuple", *[_frozen(name, v) for v in value])
    if (
        isinstance(value, (bool, int, float, str))
        or has_numpy
        and isinstance(value, np.generic)
        and not dtypes.is_complex(dtypes.dtype(value.dtype))
    ):
        return value
    raise TypeError(
        f"ffi_call attributes are numbers, strings, NumPy arrays, tuples and dicts of them; {name} is a"
        f" {type(value).__name__}."
    )


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts=None,
    result_layouts=None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable:
    """A lowering rule for weft's XLA backend (`weft_native.lower.registry.rule`) that calls a foreign function. The
    parameters of the primitive become attributes of the call.

    Args:
        call_target_name: str: the name given to `register_ffi_target`.
        operand_layouts: as `input_layouts` of `ffi_call`.
        result_layouts: as `output_layouts` of `ffi_call`.
        backend_config: dict of attributes, or the text that custom calls of an older version take.
        skip_ffi_layout_processing: bool: layouts are in XLA's order, from the fastest axis to the slowest.
        **lowering_args: further attributes of the custom call: `api_version`, `has_side_effect`,
            `operand_output_aliases`.

    Returns:
        function: the rule.

    Raises:
        BackendError: if XLA is not installed.

    Example:
        >>> import weft
        >>> callable(weft.ffi.ffi_lowering("mine"))
        True
    """
    return _xla().lowering(
        call_target_name, operand_layouts, result_layouts, backend_config, skip_ffi_layout_processing, lowering_args
    )


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts=None,
    result_layouts=None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable:
    """A lowering rule like that of `ffi_lowering`, except that it returns the operation of the custom call, not its
    results.

    Args:
        call_target_name: str: the name given to `register_ffi_target`.
        operand_layouts: as `input_layouts` of `ffi_call`.
        result_layouts: as `output_layouts` of `ffi_call`.
        backend_config: dict of attributes, or the text that custom calls of an older version take.
        skip_ffi_layout_processing: bool: layouts are in XLA's order, from the fastest axis to the slowest.
        **lowering_args: further attributes of the custom call.

    Returns:
        function: the rule.

    Raises:
        BackendError: if XLA is not installed.

    Example:
        >>> import weft
        >>> callable(weft.ffi.build_ffi_lowering_function("mine"))
        True
    """
    return _xla().operation(
        call_target_name, operand_layouts, result_layouts, backend_config, skip_ffi_layout_processing, lowering_args
    )
