"""The XLA backend: arrays, compilation, donation, errors, and C++ dispatch."""

from __future__ import annotations

import gc
import time
import os
import subprocess
import sys
import pathlib
import textwrap
import types
import warnings
import weakref

import numpy as np
import weft
import pytest
from platforms import need

need("cpu")
import ml_dtypes
from conftest_native import compiled, values
from weft.base import dtypes, errors
from weft.base.avals import shaped
from weft.base.config import config, debug_nans, enable_x64
from weft.core.jaxpr import TypedScalar
from weft.core.trace import get_aval
from weft.errors import BackendError
from weft.primitives import elementwise as e, transcendental
from weft.primitives import linear
from weft.primitives.linear import reduce_sum
from weft.runtime.array import Array
from weft.runtime.backend import Backend, CompileOptions, Device, Executable
from weft.runtime.jit import Prepared
from weft_native import client, compat, dispatch
from weft_native.backend import XlaBackend

F32 = dtypes.float32


def put(backend, value, committed=False, device=None):
    value = np.asarray(value)
    return backend.put(value, shaped(value.shape, value.dtype), device or backend.devices("cpu")[0], committed)


def test_it_is_a_backend(backend, cpu):
    assert isinstance(backend, XlaBackend) and isinstance(cpu, Device) and cpu.backend is backend
    assert {n for n in vars(Backend) if not n.startswith("_")} - {"name", "platforms"} <= set(dir(backend))
    exe, _, _ = compiled(backend, lambda x: [transcendental.sin(x)], [shaped((3,), F32)])
    assert {n for n in vars(Executable) if not n.startswith("_")} <= set(dir(exe))


@pytest.mark.parametrize(
    "dt",
    [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        "float8_e4m3fn",
        "float8_e5m2",
        "int4",
        "uint4",
    ],
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
def test_values_come_back(backend, dt, shape):
    value = np.arange(int(np.prod(shape))).reshape(shape).astype(dtypes.dtype(dt))
    array = put(backend, value)
    assert isinstance(array, Array) and array.shape == shape and array.dtype == value.dtype and array.size == value.size
    assert (
        array.ndim == len(shape) and array.nbytes == value.size * dtypes.itemsize(value.dtype) and not array.weak_type
    )
    first, again = array._host(), array._host()
    assert np.array_equal(first, value) and not first.flags.writeable
    assert first.ctypes.data == again.ctypes.data or not value.size  # no copies
    assert np.array_equal(np.asarray(array), value)


def test_reading_a_value_runs_no_python_of_others(backend):
    """jaxlib's own way tries an import for each array, and swallows the KeyboardInterrupt that Python raises in it."""
    seen = []
    for dt in ("float32", "int8", "complex64", "float16", "uint64"):
        with enable_x64(True):
            x = weft.block_until_ready(weft.numpy.ones(3, dt) + weft.numpy.ones(3, dt))
        sys.setprofile(lambda frame, event, _: seen.append(frame.f_code.co_filename))
        try:
            value = x.tolist()
        finally:
            sys.setprofile(None)
        assert value == np.full(3, 2, dt).tolist()
    assert seen and not [f for f in seen if "importlib" in f]


@pytest.mark.parametrize("dt", ["float32", "bool", "bfloat16", "int4"])
def test_a_value_that_was_read_keeps_no_array(backend, dt):
    x = weft.numpy.ones(3, dt)
    value, read, gone = x._host(), x.tolist(), weakref.ref(x)
    del x
    if dt in ("float32", "bool"):  # the value is a view of the array
        assert gone() is not None
    del value
    assert gone() is None and read == [1, 1, 1]


def test_host_memory_may_change_after_put(backend):
    raw = np.empty(4096 + 64, np.uint8)
    aligned = raw[-raw.ctypes.data % 64 :][:4096].view(np.float32)
    aligned[:] = 1
    array = put(backend, aligned)
    aligned[:] = 2
    assert (array._host() == 1).all()


def test_scalars_and_views(backend, cpu):
    assert float(backend.put(2.5, get_aval(2.5), cpu, False)._host()) == 2.5
    assert backend.put(2.5, get_aval(2.5), cpu, False).weak_type
    assert (
        backend.put(
            TypedScalar(3, shaped((), dtypes.dtype("int8"))), shaped((), dtypes.dtype("int8")), cpu, False
        ).dtype
        == np.int8
    )
    strided = np.arange(12.0, dtype=np.float32).reshape(3, 4).T
    assert np.array_equal(put(backend, strided)._host(), strided)


def test_protocols(backend):
    x = put(backend, np.arange(6, dtype=np.float32).reshape(2, 3))
    assert np.array_equal(np.from_dlpack(x), x._host()) and x.__dlpack_device__() == (1, 0)
    assert memoryview(x).shape == (2, 3)
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    (shard,) = x.addressable_shards
    assert shard.data is x and shard.device == x.device and x.devices() == {x.device}
    assert x.block_until_ready() is x and x.is_ready() and not x.is_deleted()
    x.delete()
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        x._host()


@pytest.mark.parametrize("dtype", ["float32", "bool", "bfloat16", "int4", "complex128"])
def test_a_deleted_array_has_no_value_even_if_it_was_read(backend, dtype):
    """Of dtypes that Python's buffers do not have, what was read is kept."""
    x = put(backend, np.ones((2, 3)).astype(dtypes.dtype(dtype)))
    assert x._host().shape == (2, 3) and x._host().dtype == dtypes.dtype(dtype)
    x.delete()
    for read in (x._host, lambda: np.asarray(x), x.tolist):
        with pytest.raises(RuntimeError, match="deleted"):
            read()


def test_arrays_from_dlpack(backend):
    raw = np.empty(4096 + 64, np.uint8)
    host = raw[-raw.ctypes.data % 64 :][:4096].view(np.float32).reshape(4, -1)
    host[:] = 3
    x = backend.from_dlpack(host)
    assert (
        x.shape == host.shape
        and x.dtype == host.dtype
        and x.unsafe_buffer_pointer() == host.ctypes.data
        and (x._host() == 3).all()
    )
    assert backend.apply(e.add_p, (x, x), {})._host()[0, 0] == 6


def test_more_devices_can_be_asked_for():
    script = """
        import numpy as np
        from weft.base.config import config
        config.update("num_cpu_devices", 3)
        from weft.base.avals import shaped
        from weft_native.backend import XlaBackend
        backend = XlaBackend()
        devices = backend.devices("cpu")
        assert len(devices) == 3
        aval = shaped((2,), np.dtype("float32"))
        x = backend.put(np.ones(2, np.float32), aval, devices[0], False)
        y = backend.put(x, aval, devices[2], True)
        assert y.device == devices[2] and y.committed and not x.committed and (y._host() == 1).all()
        z = backend.put(x, aval, devices[0], True)
        assert z.committed
        try:
            backend.placement([y, z])
        except ValueError as e:
            assert "incompatible devices" in str(e)
        else:
            raise AssertionError
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True)
    flags = dict(os.environ, XLA_FLAGS="--xla_force_host_platform_device_count=2", JAX_NUM_CPU_DEVICES="0")
    subprocess.run(
        [
            sys.executable,
            "-c",
            "from weft_native.backend import XlaBackend; assert len(XlaBackend().devices('cpu')) == 2",
        ],
        check=True,
        env=flags,
    )


def test_jax_is_never_imported(tmp_path):
    """With a `jax` on the path that says so when it is imported, nothing says so."""
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("raise RuntimeError('jax was imported')")
    script = """
        import sys
        import numpy as np
        from weft.base.avals import shaped
        from weft.primitives import elementwise as e
        from weft.runtime.device import backend_for
        backend = backend_for("cpu")
        x = backend.put(np.ones(2, np.float32), shaped((2,), np.dtype("float32")), backend.devices("cpu")[0], False)
        y = backend.apply(e.add_p, (x, x), {})
        y._arrays, np.asarray(y), np.from_dlpack(y)
        assert not any(m == "jax" or m.startswith("jax.") and sys.modules[m] for m in sys.modules)
    """
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), *[p for p in sys.path if p]]))
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, env=env)


# programs ------------------------------------------------------------------------------------------------------------


def test_texts_and_analyses(backend):
    exe, _, _ = compiled(backend, lambda x: [transcendental.sin(x)], [shaped((16,), F32)], name="my_program")
    assert "stablehlo.sine" in exe.as_text("stablehlo") and "@jit_my_program" in exe.as_text("stablehlo")
    assert exe.as_text().startswith("HloModule") and exe.as_text("hlo") == exe.as_text()
    with pytest.raises(ValueError, match="stablehlo"):
        exe.as_text("wat")
    assert exe.cost_analysis()["bytes accessed"] > 0
    assert exe.memory_analysis()["argument_size_in_bytes"] == 64


def test_texts_before_compilation(backend, cpu):
    jaxpr, f = compiled(backend, lambda x: [transcendental.sin(x)], [shaped((16,), F32)])[2], CompileOptions("f")
    assert "stablehlo.sine" in backend.lowered_text(jaxpr, cpu, f) and "@jit_f" in backend.lowered_text(
        jaxpr, cpu, f, "stablehlo"
    )
    assert "sine" in backend.lowered_text(jaxpr, cpu, f, "hlo") and "HloModule" in backend.lowered_text(
        jaxpr, cpu, f, "hlo"
    )
    assert "test_xla_backend.py" in backend.lowered_text(jaxpr, cpu, f, debug_info=True)
    with pytest.raises(ValueError, match="'hlo'"):
        backend.lowered_text(jaxpr, cpu, f, "mhlo")


def test_source_lines_reach_the_program(backend):
    exe, _, _ = compiled(backend, lambda x: [e.integer_pow(transcendental.sin(x), 5)], [shaped((16,), F32)])
    assert "test_xla_backend.py" in exe.as_text() and "weft_native" not in exe.as_text()


def test_unused_arguments_are_not_passed(backend):
    exe, _, _ = compiled(
        backend, lambda x, y, z: [e.neg(z), z], [shaped((2,), F32), shaped((3,), F32), shaped((4,), F32)]
    )
    assert exe.kept == (False, False, True)
    out, same = exe.execute([put(backend, np.ones(n, np.float32)) for n in (2, 3, 4)])
    assert (out._host() == -1).all() and (same._host() == 1).all()
    kept, _, _ = compiled(backend, lambda x, y: [e.neg(y)], [shaped((2,), F32)] * 2, options=(("keep_unused", True),))
    assert kept.kept == (True, True)


def test_results_are_committed_as_arguments_are(backend):
    exe, _, _ = compiled(backend, lambda x: [e.neg(x)], [shaped((2,), F32)])
    assert exe.execute([put(backend, np.ones(2, np.float32), True)])[0].committed
    assert not exe.execute([put(backend, np.ones(2, np.float32), False)])[0].committed


def test_donated_buffers_are_reused(backend):
    exe, _, _ = compiled(backend, lambda x, y: [e.add(x, y)], [shaped((1024,), F32)] * 2, donated=(True, False))
    x, y = put(backend, np.ones(1024, np.float32)), put(backend, np.ones(1024, np.float32))
    where = x.unsafe_buffer_pointer()
    (out,) = exe.execute([x, y])
    assert x.is_deleted() and not y.is_deleted() and out.unsafe_buffer_pointer() == where and (out._host() == 2).all()
    with pytest.raises(RuntimeError, match="deleted"):
        x._host()
    with pytest.raises((ValueError, RuntimeError), match="deleted"):
        exe.execute([x, y])


def test_unusable_donations_warn(backend):
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[3,2\]"):
        exe, _, _ = compiled(
            backend,
            lambda x, y: [e.add(reduce_sum(x, (0, 1)), y)],
            [shaped((3, 2), F32), shaped((), F32)],
            donated=(True, True),
        )
    x = put(backend, np.ones((3, 2), np.float32))
    assert float(exe.execute([x, put(backend, np.float32(1))])[0]._host()) == 7 and not x.is_deleted()
    with warnings.catch_warnings():  # an argument that the program does not take is nothing to warn of
        warnings.simplefilter("error")
        compiled(backend, lambda x: [linear.full((), 2, F32)], [shaped((3,), F32)], donated=(True,))


def test_constants_of_inner_programs_are_embedded(backend):
    from weft.higher_order.scan import scan
    from weft.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var

    table = values((3,), "bfloat16")
    c, i, o = Var(shaped((3,), table.dtype)), Var(shaped((3,), table.dtype)), Var(shaped((3,), table.dtype))
    closed = ClosedJaxpr(Jaxpr([c], [i], [o], [JaxprEqn([c, i], [o], e.add_p, {})]), [table])
    from weft.higher_order.call import bind_jit

    exe, _, _ = compiled(
        backend,
        lambda x: [bind_jit(closed, [x], "add_table")[0], scan(lambda s, _: (e.neg(s), None), x, None, length=2)[0]],
        [i.aval],
    )
    x = np.ones(3, ml_dtypes.bfloat16)
    out, _ = exe.execute([put(backend, x)])
    assert np.array_equal(out._host(), x + table)


def test_compiler_options(backend):
    jaxpr = compiled(backend, lambda x: [transcendental.sin(x)], [shaped((3,), F32)])[2]
    cpu = backend.devices("cpu")[0]
    assert backend.compile(jaxpr, cpu, CompileOptions(options=(("xla_cpu_enable_fast_math", True),))).execute(
        [put(backend, np.ones(3, np.float32))]
    )
    with pytest.raises(BackendError, match="no_such_flag"):
        backend.compile(jaxpr, cpu, CompileOptions(options=(("no_such_flag", True),)))


def test_x64(backend):
    with enable_x64(True):
        exe, _, _ = compiled(backend, lambda x: [transcendental.sin(x)], [shaped((3,), dtypes.float64)])
        x = np.array([0.1, 0.2, 0.3])
        out = exe.execute([put(backend, x)])[0]
        assert out.dtype == np.float64 and np.allclose(out._host(), np.sin(x), rtol=1e-15)


# errors --------------------------------------------------------------------------------------------------------------


def test_missing_platforms_say_what_to_install(backend):
    if client._package_folder("jax_plugins.xla_cuda13") is None:
        for platform in ("cuda", "gpu"):
            with pytest.raises(BackendError, match=r'pip install "weft\[cuda13\]".*"jax-cuda13-plugin\[with-cuda\]=='):
                backend.devices(platform)
    with pytest.raises(BackendError, match=r'pip install "weft\[tpu\]"'):
        backend.devices("tpu")
    with pytest.raises(BackendError, match="abacus"):
        backend.devices("abacus")


@pytest.mark.parametrize("majors, want", [(("13",), "13"), (("12",), "12"), (("12", "13"), "13")])
def test_the_newest_cuda_plugin_is_found(monkeypatch, tmp_path, majors, want):
    for major in majors:
        folder = tmp_path / "jax_plugins" / f"xla_cuda{major}"
        folder.mkdir(parents=True)
        (folder / "xla_cuda_plugin.so").touch()
    (tmp_path / "jax_plugins" / "xla_cuda13").mkdir(exist_ok=True)  # what a package leaves that was removed
    monkeypatch.setattr(client, "_package_folder", lambda name: tmp_path.joinpath(*name.split(".")))
    assert client._cuda_plugin() == (want, tmp_path / "jax_plugins" / f"xla_cuda{want}" / "xla_cuda_plugin.so")


def test_what_the_cuda_plugin_brings_is_registered(monkeypatch):
    """Of a plugin that isn't there: its types, and the calls of every library, before the client is made."""
    done = []
    note = lambda name: lambda *args, **options: done.append((name, *args, *sorted(options.items()))) or name
    extension = types.SimpleNamespace(
        register_custom_type=lambda *args: None,
        register_custom_call_target=lambda *args: None,
        ffi_types=lambda: {"a_type": 1},
        ffi_handlers=lambda: {"a_handler": 2, "another": 3},
    )
    modules = {
        "jax_cuda13_plugin.cuda_plugin_extension": extension,
        "jaxlib._profiler": types.SimpleNamespace(register_plugin_profiler=note("profiler")),
    }
    for k, family in enumerate(("gpu_solver", "gpu_sparse", "gpu_prng", "gpu_linalg")):
        calls = (
            {"registrations": lambda family=family, k=k: {"CUDA": [(family, k, 1)], "ROCM": [(f"{family}_rocm", k, 0)]}}
            if family != "gpu_prng"
            else {}
        )
        modules[f"jaxlib.{family}"] = types.SimpleNamespace(**calls)
    names = (
        "register_custom_type_handler",
        "register_custom_call_handler",
        "register_custom_type",
        "register_custom_call_target",
        "initialize_pjrt_plugin",
        "make_c_api_client",
    )
    xc = types.SimpleNamespace(
        **{name: note(name) for name in names},
        load_pjrt_plugin_dynamically=note("load"),
        pjrt_plugin_initialized=lambda name: False,
        generate_pjrt_gpu_plugin_options=lambda: {"memory": 7},
    )
    monkeypatch.setattr(client, "xc", xc)
    monkeypatch.setattr(client, "importlib", types.SimpleNamespace(import_module=modules.__getitem__))
    monkeypatch.setattr(client, "_cuda_plugin", lambda: ("13", pathlib.Path("plugin.so")))
    monkeypatch.setattr(client, "_preload_nvidia_libraries", lambda major: None)
    monkeypatch.setattr(client, "cuda_data_folder", "before")
    assert client.cuda_client() == "make_c_api_client" and client.cuda_data_folder is None
    assert done[:2] == [("load", "cuda", "plugin.so"), ("profiler", "load")] and done[-2:] == [
        ("initialize_pjrt_plugin", "cuda"),
        ("make_c_api_client", "cuda", {"memory": 7}, None),
    ]
    assert [d[0] for d in done[2:4]] == ["register_custom_type_handler", "register_custom_call_handler"]
    assert done[4] == ("register_custom_type", "a_type", 1, ("platform", "CUDA"))
    targets = [
        (name, value, dict(rest)) for what, name, value, *rest in done[5:-2] if what == "register_custom_call_target"
    ]
    assert len(targets) == len(done) - 7 and targets == [
        (name, value, {"platform": platform, "api_version": version})
        for name, value, platform, version in (
            ("a_handler", 2, "CUDA", 1),
            ("another", 3, "CUDA", 1),
            ("gpu_solver", 0, "CUDA", 1),
            ("gpu_solver_rocm", 0, "ROCM", 0),
            ("gpu_sparse", 1, "CUDA", 1),
            ("gpu_sparse_rocm", 1, "ROCM", 0),
            ("gpu_linalg", 3, "CUDA", 1),
            ("gpu_linalg_rocm", 3, "ROCM", 0),
        )
    ]


def test_a_platform_that_is_missing_keeps_nothing_of_its_callers():
    class Held:
        pass

    def call():
        held = Held()
        try:
            client.client_for("tpu")
        except BackendError:
            return weakref.ref(held)

    for _ in range(2):  # the first failure, and one that is remembered
        kept = call()
        gc.collect()
        assert kept() is None


def test_releases():
    for good in ((0, 10, 2), (0, 11, 2), (0, 12, 0)):
        compat.check_release(good)
    for bad in ((0, 4, 38), (0, 10, 1), (0, 13, 0), (1, 0, 0)):
        with pytest.raises(BackendError, match="jaxlib"):
            compat.check_release(bad)


def test_handlers_of_both_interfaces(backend, monkeypatch):
    seen = []
    monkeypatch.setattr(compat.xc, "array_result_handler", lambda *a, **k: seen.append((len(a), k)))
    for release, extra in (((0, 10, 2), {"_skip_checks": True}), ((0, 12, 0), {})):
        monkeypatch.setattr(compat, "_HANDLER_ARGS", {"_skip_checks": True} if release < (0, 11) else {})
        compat.result_handler(None, None, True)
        assert seen.pop() == (3, extra)


def test_runtime_errors_are_wefts(backend):
    from jaxlib import _jax

    assert errors.JaxRuntimeError is _jax.JaxRuntimeError


# dispatch ------------------------------------------------------------------------------------------------------------


def counted_jit(backend, fun, static_argnums=(), static_argnames=()):
    """A jit as the language makes it, over flat array arguments; returns (callable, list of misses)."""
    misses = []

    def miss(*args, **kw):
        misses.append(args)
        fixed = {i: a for i, a in enumerate(args) if i in static_argnums}
        arrays = [a for i, a in enumerate(args) if i not in fixed]
        avals = [get_aval(a) for a in arrays]
        exe, consts, _ = compiled(backend, lambda *xs: [_merged(fun, fixed, xs, kw)], avals)
        device, committed = backend.placement(arrays)
        consts = [backend.put(c, get_aval(c), device, False) for c in consts]
        (out,) = exe.execute([*consts, *[backend.array(a, v, device) for a, v in zip(arrays, avals)]], committed)

        return out, Prepared(exe, consts, None, None, device)

    return backend.jit(fun, miss, static_argnums, static_argnames, "counted").call, misses


def _merged(fun, fixed, xs, kw):
    rest = iter(xs)
    return fun(*[fixed[i] if i in fixed else next(rest) for i in range(len(fixed) + len(xs))], **kw)


def test_second_call_stays_in_cpp(backend):
    f, misses = counted_jit(backend, lambda x: e.add(x, linear.full((), 1, F32)))
    x = put(backend, np.arange(4, dtype=np.float32))
    for _ in range(3):
        assert f(x)._host().tolist() == [1, 2, 3, 4]
    assert len(misses) == 1
    f(put(backend, np.ones(5, np.float32)))
    assert len(misses) == 2
    f(np.arange(4, dtype=np.float32))
    f(np.arange(4, dtype=np.float32))
    assert len(misses) <= 3


def test_constants_lead_and_unused_arguments_are_skipped(backend):
    table = put(backend, np.full(4, 10, np.float32))
    f, misses = counted_jit(backend, lambda x, y: e.mul(y, table))
    for _ in range(3):
        out = f(np.zeros((2, 2), np.float32), put(backend, np.arange(4, dtype=np.float32)))
        assert out._host().tolist() == [0, 10, 20, 30]
    assert len(misses) == 1


def test_static_arguments(backend):
    f, misses = counted_jit(backend, lambda x, n, **kw: e.integer_pow(x, n + kw.get("more", 0)), (1,), ("more",))
    x = put(backend, np.full(2, 2, np.float32))
    for n, want in ((3, 8), (3, 8), (4, 16), (3, 8)):
        assert f(x, n)._host()[0] == want
    assert len(misses) == 2
    assert f(x, 3, more=1)._host()[0] == 16 and f(x, 3, more=1)._host()[0] == 16
    assert len(misses) == 3


def test_configuration_is_part_of_the_key(backend):
    f, misses = counted_jit(backend, lambda x: e.neg(x))
    x = put(backend, np.ones(2, np.float32))
    f(x), f(x)
    with enable_x64(True):
        f(x), f(x)
        assert len(misses) == 2
    f(x)
    assert len(misses) == 2
    with debug_nans(True):  # each result is looked at: no call stays in C++
        f(x), f(x)
        assert len(misses) == 4
    before = config.default_matmul_precision
    config.update("default_matmul_precision", "highest")
    try:
        f(x), f(x)
        assert len(misses) == 5
    finally:
        config.update("default_matmul_precision", before)
    f(x)
    assert len(misses) == 5


def test_calls_come_to_python_while_tracing(backend):
    from weft.core.trace import Trace, tracing

    f, misses = counted_jit(backend, lambda x: e.neg(x))
    x = put(backend, np.ones(2, np.float32))
    f(x), f(x)
    with tracing(Trace()):
        assert dispatch.bootstrap.tracing.value is True
    assert dispatch.bootstrap.tracing.value is False and len(misses) == 1


def test_pytrees_of_registered_classes(backend):
    from weft.base import tree

    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    tree._register(tree.NodeType(Pair, lambda p: ((p.a, p.b), "aux"), lambda aux, children: Pair(*children), None))
    leaves, treedef = dispatch.registry.flatten({"p": Pair(1, [2, None]), "t": (3,)})
    assert leaves == [1, 2, 3]
    back = treedef.unflatten(leaves)
    assert isinstance(back["p"], Pair) and back["p"].b == [2, None] and back["t"] == (3,)


def test_random_keys_are_nodes_to_cpp(backend):
    from weft.primitives.random_bits import FRY
    from weft.runtime.array import KeyArray

    raw = put(backend, np.zeros((3, 2), np.uint32))
    leaves, treedef = dispatch.registry.flatten(KeyArray(shaped((3,), FRY), raw))
    assert leaves == [raw]
    back = treedef.unflatten(leaves)
    assert isinstance(back, KeyArray) and back.shape == (3,) and back.dtype == FRY


def test_eager_primitives(backend):
    x = put(backend, np.arange(4, dtype=np.float32))
    assert backend.apply(e.add_p, (x, x), {})._host().tolist() == [0, 2, 4, 6]
    one = TypedScalar(1.0, shaped((), F32))
    out = backend.apply(e.add_p, (x, one), {})
    assert out._host().tolist() == [1, 2, 3, 4] and not out.committed
    assert backend.apply(e.add_p, (np.ones(4, np.float32), x), {})._host().tolist() == [1, 2, 3, 4]
    zero, minus_zero = (backend.apply(e.mul_p, (x, TypedScalar(v, shaped((), F32))), {})._host() for v in (0.0, -0.0))
    assert not np.signbit(zero).any() and np.signbit(minus_zero).all()
    assert backend.apply(e.integer_pow_p, (x,), {"y": 2})._host().tolist() == [0, 1, 4, 9]
    assert backend.apply(e.add_p, (2.0, 3.0), {}).weak_type


def test_eager_primitives_of_random_keys(backend):
    from weft.primitives.random_bits import FRY, random_bits_p, random_seed_p, random_split_p
    from weft.primitives.shape import concatenate_p

    for _ in range(2):
        key = backend.apply(random_seed_p, (np.uint32(7),), {"impl": FRY})
        assert key.dtype == FRY and key.raw._host().tolist() == [0, 7]
        keys = backend.apply(random_split_p, (key,), {"shape": (2,)})
        both = backend.apply(concatenate_p, (keys, keys), {"dimension": 0})
        assert both.shape == (4,) and both.raw._host()[:2].tolist() == keys.raw._host().tolist()
        assert backend.apply(random_bits_p, (keys,), {"bit_width": 8, "shape": (3,)}).shape == (2, 3)


def test_nothing_keeps_arrays_alive(backend):
    import weakref

    x = put(backend, np.ones(1000, np.float32))
    y = backend.apply(e.neg_p, (x,), {})
    refs = [weakref.ref(x), weakref.ref(y)]
    del x, y
    for _ in range(100):  # what runs may hold its arguments a little longer
        gc.collect()
        if not any(r() is not None for r in refs):
            return
        time.sleep(0.02)
    raise AssertionError([[type(h) for h in gc.get_referrers(r())] for r in refs if r() is not None])


def test_another_backends_default_device_is_respected(backend):
    """With the reference interpreter as default device, uncommitted arrays compute there, in operators and
    primitives.
    """
    import weft

    x = put(backend, np.arange(4, dtype=np.float32))
    assert type(backend.apply(e.add_p, (x, x), {})) is type(x)
    reference = weft.devices("reference")[0]
    with weft.default_device(reference):
        assert backend.apply(e.add_p, (x, x), {}).device is reference
        assert backend.apply(e.add_p, (x, TypedScalar(1.0, shaped((), F32))), {}).device is reference
    assert type(backend.apply(e.add_p, (x, x), {})) is type(x)
    other = weft.device_put(np.ones(4, np.float32), reference)
    assert backend.apply(e.add_p, (x, other), {}).device is reference


@pytest.mark.parametrize("known", [False, True], ids=["first call", "known call"])
def test_a_call_after_an_inner_trace_belongs_to_the_outer_one(known):
    """C++, which answers known calls, hears when a trace ends: the outer one goes on, and wants the call."""
    g = weft.jit(lambda x: x * 3.0)
    two = weft.device_put(np.float32(2.0), weft.devices("cpu")[0])
    if known:
        g(two), g(two)

    def outer(y):
        slope = weft.grad(lambda x: x * x)(y)
        return slope + g(two)

    assert str(weft.make_jaxpr(outer)(1.0)).count("jit[") == 1
