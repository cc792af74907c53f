"""What an editor and a type checker see of the public functions: parameters, results, and no name without a type."""
import importlib
import pathlib
import re
import subprocess
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = ("weft", "weft.lax", "weft.lax.linalg", "weft.numpy", "weft.numpy.fft", "weft.numpy.linalg", "weft.random", "weft.nn", "weft.nn.initializers")

# What the checker says of these. `A` is what functions take for an array, `D` for a dtype, `S` for a shape,
# `O` for the sharding of a result; `R` is an array.
SHORT = {
    "A": "weft.runtime.array.Array | numpy.ndarray[Any, Any] | numpy.bool[bool] | numpy.number[Any, int | float | complex] | bool | int | float | complex",
    "D": "str | type[Any] | numpy.dtype[Any] | weft.dtypes.SupportsDType | weft.dtypes.ExtendedDType",
    "S": "typing.Sequence[typing.SupportsIndex | weft.avals.SymbolicSize]",
    "O": "weft.mesh.NamedSharding | weft.mesh.PartitionSpec | None",
    "R": "weft.runtime.array.Array",
}
EXPECTED: dict[str, str] = {
    'weft.jit': 'Overload(def [Args, Result] (def (*Args.args, **Args.kwargs) -> Result, *, in_shardings: Any =, out_shardings: Any =, static_argnums: int | typing.Sequence[int] | None =, static_argnames: str | typing.Sequence[str] | None =, donate_argnums: int | typing.Sequence[int] | None =, donate_argnames: str | typing.Sequence[str] | None =, keep_unused: bool =, device: weft.runtime.backend.Device | None =, backend: str | None =, inline: bool =, compiler_options: dict[str, Any] | None =) -> weft.runtime.jit.JitFunction[Args, Result], def (None =, *, in_shardings: Any =, out_shardings: Any =, static_argnums: int | typing.Sequence[int] | None =, static_argnames: str | typing.Sequence[str] | None =, donate_argnums: int | typing.Sequence[int] | None =, donate_argnames: str | typing.Sequence[str] | None =, keep_unused: bool =, device: weft.runtime.backend.Device | None =, backend: str | None =, inline: bool =, compiler_options: dict[str, Any] | None =) -> weft.runtime.jit.Jit)',
    'weft.grad': 'def [Args] (fun: def (*Args.args, **Args.kwargs) -> Any, argnums: int | typing.Sequence[int] =, has_aux: bool =, holomorphic: bool =, allow_int: bool =, reduce_axes: typing.Sequence[Any] =) -> weft.annotations.Function[Args, Any]',
    'weft.value_and_grad': 'def [Args, Result] (fun: def (*Args.args, **Args.kwargs) -> Result, argnums: int | typing.Sequence[int] =, has_aux: bool =, holomorphic: bool =, allow_int: bool =, reduce_axes: typing.Sequence[Any] =) -> weft.annotations.Function[Args, tuple[Result, Any]]',
    'weft.vmap': 'def [Args, Result] (fun: def (*Args.args, **Args.kwargs) -> Result, in_axes: Any =, out_axes: Any =, axis_name: typing.Hashable | tuple[typing.Hashable, ...] | None =, axis_size: int | None =, spmd_axis_name: typing.Hashable | tuple[typing.Hashable, ...] | None =, sum_match: bool =) -> weft.annotations.Function[Args, Result]',
    'weft.jacfwd': 'def [Args] (fun: def (*Args.args, **Args.kwargs) -> Any, argnums: int | typing.Sequence[int] =, has_aux: bool =, holomorphic: bool =) -> weft.annotations.Function[Args, Any]',
    'weft.checkpoint': 'Overload(def [Args, Result] (fun: def (*Args.args, **Args.kwargs) -> Result, *, prevent_cse: bool | typing.Sequence[bool] =, policy: (def (*Any, **Any) -> Any) | None =, static_argnums: int | typing.Sequence[int] =, static_argnames: str | typing.Sequence[str] =, concrete: None =) -> weft.annotations.Function[Args, Result], def (fun: None =, *, prevent_cse: bool | typing.Sequence[bool] =, policy: (def (*Any, **Any) -> Any) | None =, static_argnums: int | typing.Sequence[int] =, static_argnames: str | typing.Sequence[str] =, concrete: None =) -> weft.annotations.Decorator)',
    'weft.block_until_ready': 'def [Tree] (x: Tree) -> Tree',
    'weft.numpy.add': 'weft.numpy.universal.ufunc[[A, A], R]',
    'weft.numpy.sin': 'def (A) -> R',
    'weft.numpy.sum': 'def (a: A, axis: int | typing.Sequence[int] | None =, dtype: D | None =, out: None =, keepdims: bool =, initial: A | None =, where: A | None =, promote_integers: bool =) -> R',
    'weft.numpy.mean': 'def (a: A, axis: int | typing.Sequence[int] | None =, dtype: D | None =, out: None =, keepdims: bool =, *, where: A | None =) -> R',
    'weft.numpy.argmax': 'def (a: A, axis: int | None =, out: None =, keepdims: bool | None =) -> R',
    'weft.numpy.zeros': 'def (shape: typing.SupportsIndex | weft.avals.SymbolicSize | S, dtype: D | None =, *, device: weft.runtime.backend.Device | weft.mesh.Sharding | None =, out_sharding: O =) -> R',
    'weft.numpy.reshape': 'def (a: A, shape: typing.SupportsIndex | weft.avals.SymbolicSize | S, order: str =, *, copy: bool | None =, out_sharding: O =) -> R',
    'weft.numpy.where': 'Overload(def (A, A, A, *, size: int | None =, fill_value: A | tuple[A, ...] | None =) -> R, def (A, None =, None =, *, size: int | None =, fill_value: A | tuple[A, ...] | None =) -> tuple[R, ...])',
    'weft.numpy.concatenate': 'def (arrays: R | numpy.ndarray[Any, Any] | typing.Sequence[A], axis: int | None =, dtype: D | None =) -> R',
    'weft.numpy.dot': 'def (a: A, b: A, *, precision: None | str | weft.lax.dots.Precision | tuple[str, str] | tuple[weft.lax.dots.Precision, weft.lax.dots.Precision] | tuple[Any, Any, Any, int, int, int, bool, fallback=weft.ops.dot.DotAlgorithm] | weft.ops.dot.DotAlgorithmPreset =, preferred_element_type: D | None =, out_sharding: O =) -> R',
    'weft.numpy.asarray': 'def (a: Any, dtype: D | None =, order: str | None =, *, copy: bool | None =, device: weft.runtime.backend.Device | weft.mesh.Sharding | None =, out_sharding: O =) -> R',
    'weft.numpy.linspace': 'Overload(def (start: A, stop: A, num: typing.SupportsIndex | weft.avals.SymbolicSize =, endpoint: bool =, retstep: Literal[False] =, dtype: D | None =, axis: int =, *, device: weft.runtime.backend.Device | weft.mesh.Sharding | None =) -> R, def (start: A, stop: A, num: typing.SupportsIndex | weft.avals.SymbolicSize, endpoint: bool, retstep: Literal[True], dtype: D | None =, axis: int =, *, device: weft.runtime.backend.Device | weft.mesh.Sharding | None =) -> tuple[R, R], def (start: A, stop: A, num: typing.SupportsIndex | weft.avals.SymbolicSize =, endpoint: bool =, *, retstep: Literal[True], dtype: D | None =, axis: int =, device: weft.runtime.backend.Device | weft.mesh.Sharding | None =) -> tuple[R, R])',
    'weft.numpy.cumsum': 'def (a: A, axis: int | None =, dtype: D | None =, out: None =) -> R',
    'weft.numpy.float32': 'weft.dtypes._ScalarType',
    'weft.numpy.nanmax': 'def (a: A, axis: int | typing.Sequence[int] | None =, out: None =, keepdims: bool =, initial: A | None =, where: A | None =) -> R',
    'weft.numpy.linalg.svd': 'Overload(def (a: A, full_matrices: bool =, compute_uv: Literal[True] =, hermitian: bool =, subset_by_index: tuple[int, int] | None =) -> tuple[Any, Any, Any, fallback=weft.numpy.linalg.SVDResult], def (a: A, full_matrices: bool, compute_uv: Literal[False], hermitian: bool =, subset_by_index: tuple[int, int] | None =) -> R, def (a: A, full_matrices: bool =, *, compute_uv: Literal[False], hermitian: bool =, subset_by_index: tuple[int, int] | None =) -> R)',
    'weft.numpy.linalg.solve': 'def (a: A, b: A) -> R',
    'weft.numpy.fft.fft': 'def (a: A, n: int | None =, axis: int =, norm: str | None =) -> R',
    'weft.numpy.fft.rfft2': 'def (a: A, s: S | None =, axes: typing.Sequence[int] | None =, norm: str | None =) -> R',
    'weft.lax.add': 'def (x: A, y: A) -> R',
    'weft.lax.exp': 'def (x: A, *, accuracy: weft.ops.elementwise.AccuracyMode | tuple[float, float, int, fallback=weft.ops.elementwise.Tolerance] | None =) -> R',
    'weft.lax.neg': 'def (x: A) -> R',
    'weft.lax.scan': 'def [_C, _X, _Y] (f: def (_C, _X) -> tuple[_C, _Y], init: _C, xs: _X | None =, length: int | None =, reverse: bool =, unroll: int | bool =, _split_transpose: bool =) -> tuple[_C, _Y]',
    'weft.lax.while_loop': 'def [Result] (cond_fun: def (Result) -> A, body_fun: def (Result) -> Result, init_val: Result) -> Result',
    'weft.lax.fori_loop': 'def [Result] (lower: A, upper: A, body_fun: def (Any, Result) -> Result, init_val: Result, *, unroll: int | bool | None =) -> Result',
    'weft.lax.cond': 'def [Result] (pred: A, true_fun: def (*Any, **Any) -> Result, false_fun: def (*Any, **Any) -> Result, *operands: Any, operand: Any =) -> Result',
    'weft.lax.dot_general': 'def (lhs: A, rhs: A, dimension_numbers: tuple[tuple[typing.Sequence[int], typing.Sequence[int]], tuple[typing.Sequence[int], typing.Sequence[int]]], precision: None | str | weft.lax.dots.Precision | tuple[str, str] | tuple[weft.lax.dots.Precision, weft.lax.dots.Precision] | tuple[Any, Any, Any, int, int, int, bool, fallback=weft.ops.dot.DotAlgorithm] | weft.ops.dot.DotAlgorithmPreset =, preferred_element_type: D | None =, *, out_sharding: O =) -> R',
    'weft.lax.scatter_add': 'def (operand: A, scatter_indices: A, updates: A, dimension_numbers: tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...], tuple[Any, ...], tuple[Any, ...], fallback=weft.ops.index.ScatterDimensionNumbers], *, indices_are_sorted: bool =, unique_indices: bool =, mode: str | weft.ops.index.GatherScatterMode | None =) -> R',
    'weft.lax.sort': 'Overload(def (operand: A, dimension: int =, is_stable: bool =, num_keys: int =) -> R, def (operand: typing.Sequence[A], dimension: int =, is_stable: bool =, num_keys: int =) -> tuple[R, ...])',
    'weft.lax.psum': 'def [Tree] (x: Tree, axis_name: typing.Hashable | tuple[typing.Hashable, ...], *, axis_index_groups: typing.Sequence[typing.Sequence[int]] | None =) -> Tree',
    'weft.lax.reduce_max': 'def (operand: A, axes: typing.Sequence[int]) -> R',
    'weft.lax.add_p': 'weft.core.primitive.Primitive',
    'weft.lax.linalg.cholesky': 'def (x: A, *, symmetrize_input: bool =) -> R',
    'weft.random.key': 'def (seed: int | A, *, impl: Any =, dtype: Any =) -> R',
    'weft.random.normal': 'def (key: A, shape: S =, dtype: D | None =, *, out_sharding: O =) -> R',
    'weft.random.split': 'def (key: A, num: int | tuple[int, ...] =) -> R',
    'weft.random.exponential': 'def (key: A, shape: S =, dtype: D | None =, *, out_sharding: O =) -> R',
    'weft.random.gamma': 'def (key: A, a: A, shape: S | None =, dtype: D | None =, *, out_sharding: O =) -> R',
    'weft.nn.relu': 'weft.control.custom.custom_jvp[[x: A], R]',
    'weft.nn.gelu': 'def (x: A, approximate: bool =) -> R',
    'weft.nn.softmax': 'def (x: A, axis: int | typing.Sequence[int] | None =, where: A | None =) -> R',
    'weft.nn.one_hot': 'def (x: A, num_classes: int, *, dtype: D | None =, axis: int | typing.Hashable | tuple[typing.Hashable, ...] =) -> R',
    'weft.nn.initializers.he_normal': 'def (in_axis: int | typing.Sequence[int] =, out_axis: int | typing.Sequence[int] =, batch_axis: int | typing.Sequence[int] =, dtype: D | None =) -> weft.nn.initializers.Initializer',
}


def public() -> list[str]:
    found = []
    for name in MODULES:
        module = importlib.import_module(name)
        names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
        found += [f"{name}.{n}" for n in names if not isinstance(getattr(module, n), types.ModuleType)]
    return found


def short(text: str) -> str:
    for letter, long in SHORT.items():
        text = text.replace(long, letter)
    return text


@pytest.fixture(scope="module")
def revealed(tmp_path_factory) -> dict[str, str]:
    """What mypy reveals of each public name, or the error that it gives for it."""
    names = public()
    source = tmp_path_factory.mktemp("types") / "names.py"
    imports = [f"import {m}" for m in MODULES]
    source.write_text("\n".join([*imports, *[f"reveal_type({n})" for n in names]]) + "\n")
    run = subprocess.run([sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--no-error-summary", str(source)], cwd=ROOT, capture_output=True, text=True)
    found = {}
    for line, text in re.findall(r"names\.py:(\d+): (?:note|error): (.*)", run.stdout):
        found.setdefault(names[int(line) - 1 - len(imports)], short(text.removeprefix('Revealed type is "').removesuffix('"')))
    assert len(found) == len(names), run.stdout + run.stderr
    return found


@pytest.mark.parametrize("name", EXPECTED)
def test_the_type_of(revealed, name):
    assert revealed[name] == EXPECTED[name]


def test_every_name_has_a_type(revealed):
    unseen = {name: text for name, text in revealed.items() if text == "Any" or "has no attribute" in text or "explicitly export" in text}
    assert not unseen, f"a checker does not know {unseen}"


def test_every_function_has_parameters_and_a_result(revealed):
    bare = {name: text for name, text in revealed.items() if text.startswith("def (*Any, **Any)")}
    assert not bare, f"the parameters of these are lost: {bare}"
