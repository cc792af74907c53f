"""What an editor and a type checker see of the public functions: parameters, results, and no name without a type."""

import __future__

import importlib
import pathlib
import re
import subprocess
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = (
    "weft",
    "weft.lax",
    "weft.lax.linalg",
    "weft.numpy",
    "weft.numpy.fft",
    "weft.numpy.linalg",
    "weft.random",
    "weft.nn",
    "weft.nn.initializers",
)

# What the checker says of these. `A` is what functions take for an array, `D` for a dtype, `S` for a shape,
# `O` for the sharding of a result; `R` is an array.
SHORT = {
    "A": (
        "weft.base.array.Array | numpy.ndarray[Any, Any] | numpy.bool[bool] | numpy.number[Any, int | float |"
        " complex] | bool | int | float | complex"
    ),
    "D": "str | type[Any] | numpy.dtype[Any] | weft.base.dtypes.SupportsDType | weft.base.dtypes.ExtendedDType",
    "S": "typing.Sequence[typing.SupportsIndex | weft.base.avals.SymbolicSize]",
    "O": "weft.base.mesh.NamedSharding | weft.base.spec.PartitionSpec | None",
    "R": "weft.base.array.Array",
}
EXPECTED: dict[str, str] = {
    "weft.jit": (
        "Overload(def [Args, Result] (def (*Args.args, **Args.kwargs) -> Result, *, in_shardings:"
        " weft.base.mesh.Sharding | weft.base.spec.PartitionSpec | object =, out_shardings: weft.base.mesh.Sharding |"
        " weft.base.spec.PartitionSpec | object =, static_argnums: int | typing.Sequence[int] | None =,"
        " static_argnames: str | typing.Sequence[str] | None =, donate_argnums: int | typing.Sequence[int] | None =,"
        " donate_argnames: str | typing.Sequence[str] | None =, keep_unused: bool =, device:"
        " weft.base.devices.Device | None =, backend: str | None =, inline: bool =, compiler_options: dict[str, Any]"
        " | None =) -> weft.runtime.jit.JitFunction[Args, Result], def (None =, *, in_shardings:"
        " weft.base.mesh.Sharding | weft.base.spec.PartitionSpec | object =, out_shardings: weft.base.mesh.Sharding |"
        " weft.base.spec.PartitionSpec | object =, static_argnums: int | typing.Sequence[int] | None =,"
        " static_argnames: str | typing.Sequence[str] | None =, donate_argnums: int | typing.Sequence[int] | None =,"
        " donate_argnames: str | typing.Sequence[str] | None =, keep_unused: bool =, device:"
        " weft.base.devices.Device | None =, backend: str | None =, inline: bool =, compiler_options: dict[str, Any]"
        " | None =) -> weft.runtime.jit.Jit)"
    ),
    "weft.grad": (
        "def [Args] (fun: def (*Args.args, **Args.kwargs) -> Any, argnums: int | typing.Sequence[int] =, has_aux: bool"
        " =, holomorphic: bool =, allow_int: bool =, reduce_axes: typing.Sequence[typing.Hashable] =) ->"
        " weft.base.annotations.Function[Args, Any]"
    ),
    "weft.value_and_grad": (
        "def [Args, Result] (fun: def (*Args.args, **Args.kwargs) -> Result, argnums: int | typing.Sequence[int] =,"
        " has_aux: bool =, holomorphic: bool =, allow_int: bool =, reduce_axes: typing.Sequence[typing.Hashable] =) ->"
        " weft.base.annotations.Function[Args, tuple[Result, Any]]"
    ),
    "weft.vmap": (
        "def [Args, Result] (fun: def (*Args.args, **Args.kwargs) -> Result, in_axes: int | object | None =, out_axes:"
        " int | object | None =, axis_name: typing.Hashable | tuple[typing.Hashable, ...] | None =, axis_size: int |"
        " None =, spmd_axis_name: typing.Hashable | tuple[typing.Hashable, ...] | None =, sum_match: bool =) ->"
        " weft.base.annotations.Function[Args, Result]"
    ),
    "weft.jacfwd": (
        "def [Args] (fun: def (*Args.args, **Args.kwargs) -> Any, argnums: int | typing.Sequence[int] =, has_aux: bool"
        " =, holomorphic: bool =) -> weft.base.annotations.Function[Args, Any]"
    ),
    "weft.checkpoint": (
        "Overload(def [Args, Result] (fun: def (*Args.args, **Args.kwargs) -> Result, *, prevent_cse: bool |"
        " typing.Sequence[bool] =, policy: (def (*Any, **Any) -> Any) | None =, static_argnums: int |"
        " typing.Sequence[int] =, static_argnames: str | typing.Sequence[str] =, concrete: None =) ->"
        " weft.base.annotations.Function[Args, Result], def (fun: None =, *, prevent_cse: bool | typing.Sequence[bool]"
        " =, policy: (def (*Any, **Any) -> Any) | None =, static_argnums: int | typing.Sequence[int] =,"
        " static_argnames: str | typing.Sequence[str] =, concrete: None =) -> weft.base.annotations.Decorator)"
    ),
    "weft.block_until_ready": "def [Tree] (x: Tree) -> Tree",
    "weft.numpy.add": "weft.numpy.universal.ufunc[[A, A], R]",
    "weft.numpy.sin": "def (A) -> R",
    "weft.numpy.sum": (
        "def (a: A, axis: int | typing.Sequence[int] | None =, dtype: D | None =, out: None =, keepdims: bool =,"
        " initial: A | None =, where: A | None =, promote_integers: bool =) -> R"
    ),
    "weft.numpy.mean": (
        "def (a: A, axis: int | typing.Sequence[int] | None =, dtype: D | None =, out: None =, keepdims: bool =, *,"
        " where: A | None =) -> R"
    ),
    "weft.numpy.argmax": "def (a: A, axis: int | None =, out: None =, keepdims: bool | None =) -> R",
    "weft.numpy.zeros": (
        "def (shape: typing.SupportsIndex | weft.base.avals.SymbolicSize | S, dtype: D | None =, *, device:"
        " weft.base.devices.Device | weft.base.mesh.Sharding | None =, out_sharding: O =) -> R"
    ),
    "weft.numpy.reshape": (
        "def (a: A, shape: typing.SupportsIndex | weft.base.avals.SymbolicSize | S, order: str =, *, copy: bool | None"
        " =, out_sharding: O =) -> R"
    ),
    "weft.numpy.where": (
        "Overload(def (A, A, A, *, size: int | None =, fill_value: A | tuple[A, ...] | None =) -> R, def (A, None =,"
        " None =, *, size: int | None =, fill_value: A | tuple[A, ...] | None =) -> tuple[R, ...])"
    ),
    "weft.numpy.concatenate": (
        "def (arrays: R | numpy.ndarray[Any, Any] | typing.Sequence[A], axis: int | None =, dtype: D | None =) -> R"
    ),
    "weft.numpy.dot": (
        "def (a: A, b: A, *, precision: None | str | weft.lax.dots.Precision | tuple[str, str] |"
        " tuple[weft.lax.dots.Precision, weft.lax.dots.Precision] | tuple[D, D, D, int, int, int, bool,"
        " fallback=weft.primitives.dot.DotAlgorithm] | weft.primitives.dot.DotAlgorithmPreset =,"
        " preferred_element_type: D | None =, out_sharding: O =) -> R"
    ),
    "weft.numpy.asarray": (
        "def (a: A | typing.Sequence[Any] | weft.typing.SupportsArray | weft.typing.SupportsJaxArray |"
        " typing_extensions.Buffer, dtype: D | None =, order: str | None =, *, copy: bool | None =, device:"
        " weft.base.devices.Device | weft.base.mesh.Sharding | None =, out_sharding: O =) -> R"
    ),
    "weft.numpy.linspace": (
        "Overload(def (start: A, stop: A, num: typing.SupportsIndex | weft.base.avals.SymbolicSize =, endpoint: bool =,"
        " retstep: Literal[False] =, dtype: D | None =, axis: int =, *, device: weft.base.devices.Device |"
        " weft.base.mesh.Sharding | None =) -> R, def (start: A, stop: A, num: typing.SupportsIndex |"
        " weft.base.avals.SymbolicSize, endpoint: bool, retstep: Literal[True], dtype: D | None =, axis: int =, *,"
        " device: weft.base.devices.Device | weft.base.mesh.Sharding | None =) -> tuple[R, R], def (start: A, stop:"
        " A, num: typing.SupportsIndex | weft.base.avals.SymbolicSize =, endpoint: bool =, *, retstep: Literal[True],"
        " dtype: D | None =, axis: int =, device: weft.base.devices.Device | weft.base.mesh.Sharding | None =) ->"
        " tuple[R, R])"
    ),
    "weft.numpy.cumsum": "def (a: A, axis: int | None =, dtype: D | None =, out: None =) -> R",
    "weft.numpy.float32": "weft.base.dtypes._ScalarType",
    "weft.numpy.nanmax": (
        "def (a: A, axis: int | typing.Sequence[int] | None =, out: None =, keepdims: bool =, initial: A | None =,"
        " where: A | None =) -> R"
    ),
    "weft.numpy.linalg.svd": (
        "Overload(def (a: A, full_matrices: bool =, compute_uv: Literal[True] =, hermitian: bool =, subset_by_index: "
        "tuple[int, int] | None =) -> tuple[R, R, R, fallback=weft.numpy.linalg.decompositions.SVDResult], def (a: "
        "A, full_matrices: bool, compute_uv: Literal[False], hermitian: bool =, subset_by_index: tuple[int, int] | "
        "None =) -> R, def (a: A, full_matrices: bool =, *, compute_uv: Literal[False], hermitian: bool =, "
        "subset_by_index: tuple[int, int] | None =) -> R)"
    ),
    "weft.numpy.linalg.solve": "def (a: A, b: A) -> R",
    "weft.numpy.fft.fft": "def (a: A, n: int | None =, axis: int =, norm: str | None =) -> R",
    "weft.numpy.fft.rfft2": "def (a: A, s: S | None =, axes: typing.Sequence[int] | None =, norm: str | None =) -> R",
    "weft.lax.add": "def (x: A, y: A) -> R",
    "weft.lax.exp": (
        "def (x: A, *, accuracy: weft.primitives.transcendental.AccuracyMode | tuple[float, float, int,"
        " fallback=weft.primitives.transcendental.Tolerance] | None =) -> R"
    ),
    "weft.lax.neg": "def (x: A) -> R",
    "weft.lax.scan": (
        "def [_C, _X, _Y] (f: def (_C, _X) -> tuple[_C, _Y], init: _C, xs: _X | None =, length: int | None =, reverse:"
        " bool =, unroll: int | bool =, _split_transpose: bool =) -> tuple[_C, _Y]"
    ),
    "weft.lax.while_loop": (
        "def [Result] (cond_fun: def (Result) -> A, body_fun: def (Result) -> Result, init_val: Result) -> Result"
    ),
    "weft.lax.fori_loop": (
        "def [Result] (lower: A, upper: A, body_fun: def (Any, Result) -> Result, init_val: Result, *, unroll: int |"
        " bool | None =) -> Result"
    ),
    "weft.lax.cond": (
        "def [Result] (pred: A, true_fun: def (*Any, **Any) -> Result, false_fun: def (*Any, **Any) -> Result,"
        " *operands: object, operand: object =) -> Result"
    ),
    "weft.lax.dot_general": (
        "def (lhs: A, rhs: A, dimension_numbers: tuple[tuple[typing.Sequence[int], typing.Sequence[int]],"
        " tuple[typing.Sequence[int], typing.Sequence[int]]], precision: None | str | weft.lax.dots.Precision |"
        " tuple[str, str] | tuple[weft.lax.dots.Precision, weft.lax.dots.Precision] | tuple[D, D, D, int, int, int,"
        " bool, fallback=weft.primitives.dot.DotAlgorithm] | weft.primitives.dot.DotAlgorithmPreset =,"
        " preferred_element_type: D | None =, *, out_sharding: O =) -> R"
    ),
    "weft.lax.scatter_add": (
        "def (operand: A, scatter_indices: A, updates: A, dimension_numbers: tuple[tuple[int, ...], tuple[int, ...],"
        " tuple[int, ...], tuple[int, ...], tuple[int, ...], fallback=weft.primitives.gather.ScatterDimensionNumbers],"
        " *, indices_are_sorted: bool =, unique_indices: bool =, mode: str | weft.primitives.gather.GatherScatterMode |"
        " None =) -> R"
    ),
    "weft.lax.sort": (
        "Overload(def (operand: A, dimension: int =, is_stable: bool =, num_keys: int =) -> R, def (operand:"
        " typing.Sequence[A], dimension: int =, is_stable: bool =, num_keys: int =) -> tuple[R, ...])"
    ),
    "weft.lax.psum": (
        "def [Tree] (x: Tree, axis_name: typing.Hashable | tuple[typing.Hashable, ...], *, axis_index_groups:"
        " typing.Sequence[typing.Sequence[int]] | None =) -> Tree"
    ),
    "weft.lax.reduce_max": "def (operand: A, axes: typing.Sequence[int]) -> R",
    "weft.lax.add_p": "weft.core.primitive.Primitive",
    "weft.lax.linalg.cholesky": "def (x: A, *, symmetrize_input: bool =) -> R",
    "weft.random.key": (
        "def (seed: int | A, *, impl: str | weft.base.dtypes.KeyDType | None =, dtype: str | weft.base.dtypes.KeyDType"
        " | None =) -> R"
    ),
    "weft.random.normal": "def (key: A, shape: S =, dtype: D | None =, *, out_sharding: O =) -> R",
    "weft.random.split": "def (key: A, num: int | tuple[int, ...] =) -> R",
    "weft.random.exponential": "def (key: A, shape: S =, dtype: D | None =, *, out_sharding: O =) -> R",
    "weft.random.gamma": "def (key: A, a: A, shape: S | None =, dtype: D | None =, *, out_sharding: O =) -> R",
    "weft.nn.relu": "weft.higher_order.custom_jvp.custom_jvp[[x: A], R]",
    "weft.nn.gelu": "def (x: A, approximate: bool =) -> R",
    "weft.nn.softmax": "def (x: A, axis: int | typing.Sequence[int] | None =, where: A | None =) -> R",
    "weft.nn.one_hot": (
        "def (x: A, num_classes: int, *, dtype: D | None =, axis: int | typing.Hashable | tuple[typing.Hashable, ...]"
        " =) -> R"
    ),
    "weft.nn.initializers.he_normal": (
        "def (in_axis: int | typing.Sequence[int] =, out_axis: int | typing.Sequence[int] =, batch_axis: int |"
        " typing.Sequence[int] =, dtype: D | None =) -> weft.nn.initializers.Initializer"
    ),
    "weft.device_put": (
        "Overload(def (x: A, device: weft.base.devices.Device | weft.base.mesh.Sharding | None |"
        " weft.base.spec.PartitionSpec | object =, *, src: weft.base.devices.Device | weft.base.mesh.Sharding | None"
        " | object =, donate: bool | object =, may_alias: bool | None | object =) -> R, def (x: object, device:"
        " weft.base.devices.Device | weft.base.mesh.Sharding | None | weft.base.spec.PartitionSpec | object =, *,"
        " src: weft.base.devices.Device | weft.base.mesh.Sharding | None | object =, donate: bool | object =,"
        " may_alias: bool | None | object =) -> Any)"
    ),
    "weft.pure_callback": (
        "Overload(def (callback: def (*Any, **Any) -> Any, result_shape_dtypes: weft.base.avals.ShapeDtypeStruct | R,"
        " *args: object, sharding: weft.base.mesh.SingleDeviceSharding | None =, vmap_method: str | None =, **kwargs:"
        " object) -> R, def (callback: def (*Any, **Any) -> Any, result_shape_dtypes: object, *args: object, sharding:"
        " weft.base.mesh.SingleDeviceSharding | None =, vmap_method: str | None =, **kwargs: object) -> Any)"
    ),
    "weft.numpy.finfo": "def (dtype: D) -> weft.base.limits.finfo",
    "weft.numpy.iinfo": "def (int_type: D | int) -> weft.base.limits.iinfo",
    "weft.numpy.array": (
        "def (object: A | typing.Sequence[Any] | weft.typing.SupportsArray | weft.typing.SupportsJaxArray |"
        " typing_extensions.Buffer, dtype: D | None =, *args: object, copy: bool =, order: str | None =, ndmin: int =,"
        " device: weft.base.devices.Device | weft.base.mesh.Sharding | None =, out_sharding: O =) -> R"
    ),
    "weft.numpy.einsum": (
        "def (str | A, *operands: A | typing.Sequence[Any], out: None =, optimize: str | bool |"
        " typing.Sequence[tuple[int, ...]] =, precision: None | str | weft.lax.dots.Precision | tuple[str, str] |"
        " tuple[weft.lax.dots.Precision, weft.lax.dots.Precision] | tuple[D, D, D, int, int, int, bool,"
        " fallback=weft.primitives.dot.DotAlgorithm] | weft.primitives.dot.DotAlgorithmPreset =,"
        " preferred_element_type: D | None =, _dot_general: (def (*Any, **Any) -> R) | None =, out_sharding: O =) -> R"
    ),
    "weft.numpy.linalg.eigh": (
        "def (a: A, UPLO: str | None =, symmetrize_input: bool =) -> tuple[R, R,"
        " fallback=weft.numpy.linalg.decompositions.EighResult]"
    ),
    "weft.lax.custom_root": (
        "Overload(def [_Tree] (f: def (_Tree) -> _Tree, initial_guess: _Tree, solve: def (def (_Tree) -> _Tree, _Tree)"
        " -> _Tree, tangent_solve: def (def (_Tree) -> _Tree, _Tree) -> _Tree, has_aux: Literal[False] =) -> _Tree, def"
        " [_Tree, _Aux] (f: def (_Tree) -> _Tree, initial_guess: _Tree, solve: def (def (_Tree) -> _Tree, _Tree) ->"
        " tuple[_Tree, _Aux], tangent_solve: def (def (_Tree) -> _Tree, _Tree) -> _Tree, has_aux: Literal[True]) ->"
        " tuple[_Tree, _Aux])"
    ),
    "weft.lax.custom_linear_solve": (
        "Overload(def [_Tree] (matvec: def (_Tree) -> _Tree, b: _Tree, solve: def (def (_Tree) -> _Tree, _Tree) ->"
        " _Tree, transpose_solve: (def (def (_Tree) -> _Tree, _Tree) -> _Tree) | None =, symmetric: bool =, has_aux:"
        " Literal[False] =) -> _Tree, def [_Tree, _Aux] (matvec: def (_Tree) -> _Tree, b: _Tree, solve: def (def"
        " (_Tree) -> _Tree, _Tree) -> tuple[_Tree, _Aux], transpose_solve: (def (def (_Tree) -> _Tree, _Tree) ->"
        " tuple[_Tree, _Aux]) | None =, symmetric: bool =, *, has_aux: Literal[True]) -> tuple[_Tree, _Aux])"
    ),
    "weft.lax.reduce": (
        "Overload(def (operands: A, init_values: A, computation: def (R, R) -> A, dimensions: typing.Sequence[int],"
        " out_sharding: O =) -> R, def (operands: object, init_values: object, computation: def (Any, Any) -> Any,"
        " dimensions: typing.Sequence[int], out_sharding: O =) -> Any)"
    ),
    "weft.lax.all_gather": (
        "def [Tree] (x: Tree, axis_name: typing.Hashable | tuple[typing.Hashable, ...], *, axis_index_groups:"
        " typing.Sequence[typing.Sequence[int]] | None =, axis: int =, tiled: bool =, to: str =) -> Tree"
    ),
    "weft.nn.logsumexp": (
        "Overload(def (a: A, axis: int | typing.Sequence[int] | None =, b: A | None =, keepdims: bool =, return_sign:"
        " Literal[False] =, where: A | None =) -> R, def (a: A, axis: int | typing.Sequence[int] | None =, b: A | None"
        " =, keepdims: bool =, *, return_sign: Literal[True], where: A | None =) -> tuple[R, R], def (a: A, axis: int |"
        " typing.Sequence[int] | None, b: A | None, keepdims: bool, return_sign: bool, where: A | None =) -> R |"
        " tuple[R, R])"
    ),
    "weft.nn.tanh": "def (A) -> R",
}


def public() -> list[str]:
    found = []
    for name in MODULES:
        module = importlib.import_module(name)
        names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
        found += [
            f"{name}.{n}" for n in names if not isinstance(getattr(module, n), types.ModuleType | __future__._Feature)
        ]
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
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", "--no-error-summary", str(source)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    found = {}
    for line, text in re.findall(r"names\.py:(\d+): (?:note|error): (.*)", run.stdout):
        found.setdefault(
            names[int(line) - 1 - len(imports)], short(text.removeprefix('Revealed type is "').removesuffix('"'))
        )
    assert len(found) == len(names), run.stdout + run.stderr
    return found


@pytest.mark.parametrize("name", EXPECTED)
def test_the_type_of(revealed, name):
    assert revealed[name] == EXPECTED[name]


def test_every_name_has_a_type(revealed):
    unseen = {
        name: text
        for name, text in revealed.items()
        if text == "Any" or "has no attribute" in text or "explicitly export" in text
    }
    assert not unseen, f"a checker does not know {unseen}"


def test_every_function_has_parameters_and_a_result(revealed):
    bare = {name: text for name, text in revealed.items() if text.startswith("def (*Any, **Any)")}
    assert not bare, f"the parameters of these are lost: {bare}"


# Results of which nothing is known, and why.
UNKNOWN = {
    "a pytree of the structure of what the user's function returns, or of an argument": (
        "device_get",
        "device_put",
        "device_put_replicated",
        "device_put_sharded",
        "eval_shape",
        "jvp",
        "linearize",
        "make_array_from_process_local_data",
        "pure_callback",
        "tree_map",
        "vjp",
        "lax.reduce",
        "lax.reduce_window",
    ),
    "what a file holds": ("numpy.load",),
}
# Parameters that are what another library's function takes.
PASSED_ON = (
    "numpy.load",
    "numpy.pad",
    "numpy.printoptions",
    "numpy.set_printoptions",
    "numpy.flexible",
    "numpy.generic",
    "numpy.object_",
)


def pieces(text: str) -> list[str]:
    """What stands between the commas of a list, not inside any brackets."""
    found, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += letter in "([" or -(letter in ")]")
        if letter == "," and not depth:
            found.append(text[start:at].strip())
            start = at + 1
    return [*found, text[start:].strip()]


def signatures(text: str) -> list[tuple[list[str], str]]:
    """The parameters and the result of each overload that the checker reveals; none of what is no function."""
    found = []
    for one in pieces(text.removeprefix("Overload(").removesuffix(")")) if text.startswith("Overload(") else [text]:
        if one.startswith("def "):
            start = one.index("(")
            depth, end = 0, start
            for end in range(start, len(one)):
                depth += one[end] in "([" or -(one[end] in ")]")
                if not depth:
                    break
            found.append((pieces(one[start + 1 : end]), one[end + 1 :].removeprefix(" -> ")))
    return found


def test_what_is_revealed_is_taken_apart():
    text = (
        "Overload(def [T] (x: def (Any, int) -> Any, *, y: Any =) -> Any, def (T, **k: dict[str, Any]) -> tuple[T,"
        " Any])"
    )
    assert signatures(text) == [
        (["x: def (Any, int) -> Any", "*", "y: Any ="], "Any"),
        (["T", "**k: dict[str, Any]"], "tuple[T, Any]"),
    ]
    assert signatures("int") == []


def test_parameters_and_results_have_types(revealed):
    results = {f"weft.{name}" for names in UNKNOWN.values() for name in names}
    untyped, known = {}, set()
    for name, text in revealed.items():
        for parameters, result in signatures(text):
            bare = [
                p
                for p in parameters
                if p.partition(": ")[2].removesuffix(" =") == "Any" or p.removesuffix(" =") == "Any"
            ]
            if bare and name.removeprefix("weft.") not in PASSED_ON:
                untyped[name] = bare
            if result == "Any" and name not in results:
                untyped[name] = [*untyped.get(name, []), "its result"]
            known |= {name} if result == "Any" else set()
    assert not untyped, f"parameters or results without a type: {untyped}"
    assert results <= known, f"these have types: {results - known}"


def test_every_function_has_a_docstring():
    bare = []
    for name in public():
        module, _, attribute = name.rpartition(".")
        value = getattr(importlib.import_module(module), attribute)
        if (
            callable(value)
            and not isinstance(value, types.GenericAlias)
            and type(value).__module__ != "typing"
            and not (value.__doc__ or "").strip()
        ):
            bare.append(name)
    assert not bare, f"an editor has nothing to say of {bare}"
