"""weft.ffi: a function compiled from C by the test, and a kernel that jaxlib brings."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
from platforms import need

import weft
import weft.numpy as jnp
from weft import ffi
from weft.errors import BackendError

SOURCE = r"""
#include "xla/ffi/api/c_api.h"

/* y = times * x, elementwise on float32; `times` is the one attribute, an i32. Counts its calls. */
int calls = 0;

XLA_FFI_Error* Scale(XLA_FFI_CallFrame* frame) {
  for (XLA_FFI_Extension_Base* e = frame->extension_start; e; e = e->next)
    if (e->type == XLA_FFI_Extension_Metadata) {
      XLA_FFI_Metadata* m = ((XLA_FFI_Metadata_Extension*)e)->metadata;
      m->api_version.major_version = XLA_FFI_API_MAJOR;
      m->api_version.minor_version = XLA_FFI_API_MINOR;
      return 0;
    }
  XLA_FFI_Buffer* x = frame->args.args[0];
  XLA_FFI_Buffer* y = frame->rets.rets[0];
  int times = *(int*)((XLA_FFI_Scalar*)frame->attrs.attrs[0])->value;
  long n = 1;
  for (long d = 0; d < x->rank; d++) n *= x->dims[d];
  for (long i = 0; i < n; i++) ((float*)y->data)[i] = times * ((float*)x->data)[i];
  calls++;
  return 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    need("cc")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    folder = tmp_path_factory.mktemp("ffi")
    (folder / "scale.c").write_text(SOURCE)
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-I", ffi.include_dir(), "-o", folder / "scale.so", folder / "scale.c"],
        check=True,
    )
    loaded = ctypes.CDLL(str(folder / "scale.so"))
    ffi.register_ffi_target("weft_test_scale", ffi.pycapsule(loaded.Scale))
    return loaded


def scale(x, times=3, **options):
    return ffi.ffi_call("weft_test_scale", weft.ShapeDtypeStruct(x.shape, x.dtype), **options)(x, times=np.int32(times))


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_eager_and_compiled(library):
    np.testing.assert_array_equal(scale(jnp.asarray(X)), 3 * X)
    np.testing.assert_array_equal(weft.jit(lambda x: scale(x, -2) + 1)(X), -2 * X + 1)


@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]
)
def test_vmap(library, method):
    batched = weft.vmap(lambda x: scale(x, vmap_method=method), in_axes=1, out_axes=1)
    np.testing.assert_array_equal(weft.jit(batched)(X), 3 * X)


def test_a_call_with_a_side_effect_is_kept(library):
    counter = ctypes.c_int.in_dll(library, "calls")

    def f(x, effect):
        scale(x, has_side_effect=effect)
        return x

    before = counter.value
    weft.jit(f, static_argnums=1)(X, False).block_until_ready()
    assert counter.value == before
    weft.jit(f, static_argnums=1)(X, True).block_until_ready()
    weft.effects_barrier()
    assert counter.value == before + 1


def test_layouts_reach_the_function(library):
    """A function that scales element by element doesn't see the order; its result in another order is the same
    array.
    """
    call = ffi.ffi_call(
        "weft_test_scale", weft.ShapeDtypeStruct(X.shape, X.dtype), input_layouts=[(1, 0)], output_layouts=(1, 0)
    )
    np.testing.assert_array_equal(weft.jit(lambda x: call(x, times=np.int32(2)))(X), 2 * X)
    # reads columns, writes rows
    crossed = ffi.ffi_call("weft_test_scale", weft.ShapeDtypeStruct((2, 3), X.dtype), input_layouts=[(1, 0)])
    np.testing.assert_array_equal(weft.jit(lambda x: crossed(x, times=np.int32(1)))(X), X.T.reshape(2, 3))


def test_a_kernel_of_jaxlib_through_ffi():
    """LAPACK's Cholesky factorisation: column-major, two results, an attribute of one byte."""
    jnp.linalg.cholesky(jnp.eye(2))  # LAPACK is ready
    a = np.array([[4.0, 2.0], [2.0, 5.0]], np.float32)
    call = ffi.ffi_call(
        "lapack_spotrf_ffi",
        [weft.ShapeDtypeStruct((2, 2), "float32"), weft.ShapeDtypeStruct((), "int32")],
        input_layouts=[(1, 0)],
        output_layouts=[(1, 0), None],
        input_output_aliases={0: 0},
    )
    factor, info = weft.jit(lambda x: call(x, uplo=np.uint8(ord("L"))))(a)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(a), rtol=1e-6)
    assert int(info) == 0


def test_a_derivative_is_refused_and_can_be_given(library):
    with pytest.raises(ValueError, match="cannot be differentiated.*custom_jvp"):
        weft.grad(lambda x: scale(x).sum())(jnp.asarray(X))
    f = weft.custom_jvp(lambda x: scale(x))
    f.defjvp(lambda primals, tangents: (scale(*primals), scale(*tangents)))
    np.testing.assert_array_equal(weft.jvp(f, (X,), (X,))[1], 3 * X)


def test_all_kinds_of_attributes_are_written():
    call = ffi.ffi_call("nothing", weft.ShapeDtypeStruct((3,), "float32"))
    text = (
        weft.jit(
            lambda x: call(
                x,
                a=1.5,
                b=2,
                c=True,
                d="text",
                e=np.array([1, 2], np.int16),
                f=(1, "x"),
                g={"h": np.float32(1)},
                i=np.array([True, False]),
                j=np.array([[True, False, True]] * 3),
                k=np.ones((2, 2), bool),
                l=np.zeros((0, 2), bool),
            )
        )
        .lower(jnp.ones(3))
        .as_text()
    )
    for part in (
        "a = 1.500000e+00 : f64",
        "b = 2 : i64",
        "c = true",
        'd = "text"',
        "e = dense<[1, 2]> : tensor<2xi16>",
        'f = [1, "x"]',
        "g = {h = 1.000000e+00 : f32}",
        "i = dense<[true, false]> : tensor<2xi1>",
        "j = dense<[[true, false, true], [true, false, true], [true, false, true]]> : tensor<3x3xi1>",
        "k = dense<true> : tensor<2x2xi1>",
        "l = dense<> : tensor<0x2xi1>",
    ):
        assert part in text, part


def test_a_lowering_rule_that_calls_a_foreign_function(library):
    from weft.core import Primitive
    from weft.core.primitive import registry
    from weft_native.lower.registry import rule, rules

    p = Primitive("test_scale_by_seven", multiple_results=True)
    p.abstract = lambda x: [x]
    rule(p.name)(ffi.ffi_lowering("weft_test_scale", backend_config={"times": np.int32(7)}))
    try:
        np.testing.assert_array_equal(weft.jit(lambda x: p.bind(x)[0])(X), 7 * X)
    finally:
        del registry[p.name], rules[p.name]


@pytest.mark.parametrize(
    "options,error,match",
    [
        (dict(input_layouts=[(0,), (0,)]), ValueError, "1 input arrays and got 2"),
        (dict(input_layouts=[(0, 1)]), ValueError, "not a permutation"),
        (dict(legacy_backend_config="x"), ValueError, "below 4"),
        (dict(vmap_method="loop"), ValueError, "vmap_method must be"),
        (dict(input_output_aliases={3: 0}), ValueError, "input index 3 outside"),
        (dict(custom_call_api_version=2), ValueError, "from custom_call_api_version 4"),
    ],
)
def test_wrong_options(options, error, match):
    with pytest.raises(error, match=match):
        ffi.ffi_call("nothing", weft.ShapeDtypeStruct((3,), "float32"), **options)(jnp.ones(3), n=1)


def test_wrong_attributes_results_and_names():
    spec = weft.ShapeDtypeStruct((3,), "float32")
    with pytest.raises(TypeError, match="n is a object"):
        ffi.ffi_call("nothing", spec)(jnp.ones(3), n=object())
    with pytest.raises(ValueError, match="at position 1"):
        ffi.ffi_call("nothing", [spec, (spec,)])
    with pytest.raises(weft.errors.BackendError, match="No FFI handler registered for nothing"):
        ffi.ffi_call("nothing", spec)(jnp.ones(3)).block_until_ready()
    with pytest.raises(NotImplementedError, match="'nothing' is batched by vmap"):
        weft.vmap(ffi.ffi_call("nothing", spec))(jnp.ones((2, 3)))
    with pytest.raises(weft.errors.JaxRuntimeError, match="[Uu]nsupported|type"):
        ffi.register_ffi_target("nothing", 3)


def test_a_library_without_headers_says_so(monkeypatch, tmp_path):
    (tmp_path / "include").mkdir()
    monkeypatch.setattr("weft_native.foreign.jaxlib.__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(BackendError, match="comes without the headers"):
        ffi.include_dir()
    (tmp_path / "include" / "xla").mkdir()
    assert ffi.include_dir() == str(tmp_path / "include")
