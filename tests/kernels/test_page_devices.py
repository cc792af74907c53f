"""The runtimes of a page, over stand-ins for what the page and Pyodide give to Python (web/CONTRACT.md)."""

import importlib
import sys
import types
from types import SimpleNamespace

import numpy as np
import pytest
from kernel_harness import compile_program
from weft.errors import BackendError
from weft_wasm.ir.nodes import Buffer, For, Kernel, Program, Store, Var
from weft_wasm.runtimes.interface import DeviceLost
from weft_wasm.runtimes.wasmtime_device import WasmtimeDevice


class JsException(Exception):
    message = property(lambda self: str(self))


class Results:
    """The fixed array of a program's results; nothing but an array of the same numbers takes them."""

    def __init__(self, kind: str):
        self.kind, self.values = kind, []

    def assign_to(self, there):
        assert (there.typecode, len(there)) == (self.kind, len(self.values))
        there[:] = type(there)(self.kind, self.values)


class Programs:
    """What the devices of a page have of programs. run(program, handles): the handles of the results."""

    def __init__(self, load, run, kind):
        self.load_, self.run, self.kind, self.programs = load, run, kind, []
        self.adapter, self.lost, self.first = "a software adapter", None, 1

    def load(self, data, host=None, made=False):
        self.programs.append((self.load_(data), Results(self.kind)))
        return len(self.programs) - 1

    def entry(self, number):
        program, results = self.programs[number]

        def call(*handles):
            results.values = self.run(program, list(handles))
            return results.values[0] if results.values else 0

        return call

    def results(self, number):
        return self.programs[number][1]

    def isAsync(self, number):
        return False

    def unload(self, number):
        self.programs[number] = None


@pytest.fixture
def page(monkeypatch):
    """The module that a page gives to Python."""
    ffi, js, page = types.ModuleType("pyodide.ffi"), types.ModuleType("js"), types.ModuleType("_weft_page")
    ffi.JsException, ffi.can_run_sync, ffi.run_sync = JsException, lambda: True, lambda value: value
    ffi.create_proxy = ffi.to_js = lambda value: value
    js.Uint8Array = bytearray
    core = types.ModuleType("pyodide_js")
    core.checkInterrupt = lambda: None
    for name, module in {
        "pyodide": types.ModuleType("pyodide"),
        "pyodide.ffi": ffi,
        "js": js,
        "pyodide_js": core,
        "_weft_page": page,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    names = ("weft_wasm.runtimes.page", "weft_wasm.runtimes.page_gpu")
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield page
    for name in names:
        sys.modules.pop(name, None)


def adding(count: int) -> Program:
    """x + 1, x + 2, …"""
    x, i = Buffer("x", "i32", (4,), "input"), Var("i")
    outs = [Buffer(f"out{k}", "i32", (4,), "output") for k in range(count)]
    return Program(
        "adding",
        [x],
        outs,
        [],
        [Kernel("k", [For(i, 4, [Store(out, i, x[i] + (k + 1)) for k, out in enumerate(outs)], "parallel")])]
        if outs
        else [],
    )


@pytest.mark.parametrize("count", [0, 1, 2, 3])
@pytest.mark.parametrize("memory64", [False, True])
def test_wasm(page, count, memory64):
    features = ("simd128", *(("memory64",) if memory64 else ()))
    device = WasmtimeDevice(memory64=memory64)
    page.features = SimpleNamespace(to_py=lambda: features)
    programs = Programs(device.load, device.run, "d" if memory64 else "I")
    page.device = SimpleNamespace(
        small=SimpleNamespace(assign_to=None),
        view=None,
        fetch=None,
        alloc=device.alloc,
        free=device.free,
        load=programs.load,
        entry=programs.entry,
        results=programs.results,
        unload=programs.unload,
    )
    call = (
        importlib.import_module("weft_wasm.runtimes.page")
        .PyodideRuntime()
        .load(compile_program(adding(count), set(features)))
    )
    p = device.alloc(16)
    for start in (0, 10):
        device.write(p, np.arange(start, start + 4, dtype=np.int32))
        found = call([p])
        assert all(type(q) is int for q in found)
        assert [np.frombuffer(device.read(q, 16), np.int32).tolist() for q in found] == [
            list(range(start + k, start + k + 4)) for k in range(1, count + 1)
        ]


def test_wasm_that_calls_functions_of_the_host(page):
    """What they raise is raised where the program was called, and no later than that."""
    hosts, calls = [], []

    def run(number, handles, donated):
        if hosts[number](0, SimpleNamespace(to_py=lambda: [float(h) for h in handles])) != 0:
            raise JsException("a function of the host failed")
        return SimpleNamespace(to_py=lambda: [handles[0] + 1, *donated])

    def function(addresses):
        calls.append(addresses)
        if addresses[0] < 0:
            raise KeyError("negative")

    def load(data, host, made_here):
        assert made_here  # its checksum is not computed again
        hosts.append(host)
        host.destroy = lambda: None
        return len(hosts) - 1

    page.features = SimpleNamespace(to_py=lambda: ("simd128",))
    page.device = SimpleNamespace(
        small=SimpleNamespace(assign_to=None),
        view=None,
        fetch=None,
        alloc=None,
        free=None,
        load=load,
        run=run,
        unload=lambda number: None,
    )
    runtime = importlib.import_module("weft_wasm.runtimes.page").PyodideRuntime()
    call = runtime.load(SimpleNamespace(name="calling", to_bytes=lambda: b""), (3,), (function,))
    assert call([5, 6]) == [6, 3] and calls == [[5, 6]]
    for _ in range(2):
        with pytest.raises(KeyError, match="negative"):
            call([-1])
    assert call([7]) == [8, 3]


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_webgpu(page, count):
    """Of a program only the handles are asked for: `e2e/` runs some on the device of a browser."""
    artifact = SimpleNamespace(name="adding", to_bytes=lambda: b"", metadata={"outputs": [{}] * count})
    page.gpu = Programs(lambda data: None, lambda program, handles: [handles[0] + k for k in range(1, count + 1)], "I")
    page.gpu.limits = SimpleNamespace(to_py=dict)
    page.gpu.alloc = page.gpu.free = page.gpu.write = page.gpu.read = None
    call = importlib.import_module("weft_wasm.runtimes.page_gpu").PyodideGpu().load(artifact)
    for first in (7, 20):
        assert call([first]) == [first + k for k in range(1, count + 1)]


def test_a_lost_webgpu_device(page):
    """A call says that the device is lost, and `renew` takes the page's new one."""

    def gone(program, handles):
        page.gpu.lost = "driver reset"
        raise JsException("the WebGPU device was lost")

    def device(run, first):
        made = Programs(lambda data: None, run, "I")
        made.first, made.limits = first, SimpleNamespace(to_py=dict)
        made.alloc = made.free = made.write = made.read = None
        return made

    def renewed():
        page.gpu = device(lambda program, handles: [handles[0] + 1], 50)
        return True

    page.gpu, page.renewGpu = device(gone, 1), renewed
    runtime = importlib.import_module("weft_wasm.runtimes.page_gpu").PyodideGpu()
    artifact = SimpleNamespace(name="adding", to_bytes=lambda: b"", metadata={"outputs": [{}]})
    call = runtime.load(artifact)
    with pytest.raises(DeviceLost, match=r"lost \(driver reset\)"):
        call([7])
    assert runtime.first == 1
    runtime.renew()
    assert runtime.first == 50 and runtime.load(artifact)([60]) == [61]
    page.renewGpu = lambda: False
    with pytest.raises(BackendError, match="gives no other one"):
        runtime.renew()
