"""Encoder, artifact container, allocator and the wasmtime device."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_harness import compile_program
from weft_wasm.binary import encode
from weft_wasm.runtimes import wasmtime_device
from weft_wasm.artifact import Artifact, ArtifactError
from weft_wasm.binary.encode import I32, OP, Module
from weft_wasm.ir.nodes import Buffer, Fail, For, HostCall, If, Kernel, Program, Store, Var, f32, ge, gt, i32
from weft_wasm.runtimes.memory import FIRST, Allocator, DeviceMemoryError
from weft_wasm.runtimes.wasmtime_device import ProgramError, WasmtimeDevice


def decode_signed(data: bytes) -> int:
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
    return value - (1 << shift) if data[-1] & 64 else value


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_leb128(value):
    data = encode.signed(value)
    assert decode_signed(data) == value and all(b & 128 for b in data[:-1]) and not data[-1] & 128


@given(st.integers(0, 2**32 - 1))
def test_unsigned_leb128(value):
    data = encode.unsigned(value)
    assert sum((b & 127) << (7 * k) for k, b in enumerate(data)) == value and len(data) <= 5


def test_opcodes_from_the_specification():
    expected = {
        "i32.add": "6a",
        "i64.mul": "7e",
        "f32.nearest": "90",
        "f64.copysign": "a6",
        "i32.extend16_s": "c1",
        "select": "1b",
        "i64.trunc_sat_f64_u": "fc07",
        "v128.const": "fd0c",
        "i32x4.splat": "fd11",
        "f32x4.add": "fde401",
        "i64x2.mul": "fdd501",
        "f32x4.relaxed_madd": "fd8502",
        "v128.any_true": "fd53",
        "f64x2.promote_low_f32x4": "fd5f",
        "i32x4.trunc_sat_f32x4_s": "fdf801",
        "f64x2.convert_low_i32x4_u": "fdff01",
        "v128.store32_lane": "fd5a",
        "i64x2.ge_s": "fddb01",
        "f32x4.nearest": "fd6a",
        "f64x2.pmax": "fdf701",
        "i32x4.relaxed_laneselect": "fd8b02",
    }
    assert {name: OP[name].hex() for name in expected} == expected


def test_module_keeps_equal_functions_once():
    m = Module()
    body = OP["local.get"] + b"\0"
    assert m.function([I32], [I32], [], body) == m.function([I32], [I32], [], body) != m.function([I32], [], [], b"")


def doubling(n: int = 4, **options) -> Program:
    x, out, i = Buffer("x", "f32", (n,), "input"), Buffer("out", "f32", (n,), "output"), Var("i")
    return Program(
        "double", [x], [out], [], [Kernel("k", [For(i, n, [Store(out, i, x[i] * 2.0)], "parallel")])], **options
    )


def test_container_round_trip_and_bad_bytes():
    artifact = compile_program(doubling())
    data = artifact.to_bytes()
    assert Artifact.from_bytes(data) == artifact and Artifact.from_bytes(data).hash == artifact.hash
    assert artifact.metadata["inputs"] == [{"dtype": "f32", "shape": [4], "bytes": 16}]
    assert artifact.metadata["outputs"] == [{"dtype": "f32", "shape": [4], "bytes": 16, "alias": None}]
    for bad, message in (
        (b"", "it has 0 bytes"),
        (b"\0asm", "begins with b'.x00asm'"),
        (data[:-1], "truncated"),
        (data + b"x", "truncated"),
        (b"weft\x01" + data[5:], "an artifact of version 1, this runtime reads version 2: compile the program again"),
        (b"weft\x03" + data[5:], "not a weft artifact of version 2"),
        (data.replace(b'"abi":1', b'"abi":9'), "damaged artifact: .*checksum"),
        (data[:60] + b"x" + data[61:], "damaged"),
        (
            Artifact(artifact.metadata | {"abi": 9}, artifact.code).to_bytes(),
            "abi must be 1, which this runtime has; got 9",
        ),
        (
            Artifact(artifact.metadata | {"scratch": 1 << 32}, artifact.code).to_bytes(),
            "scratch must be 0, as its code says; got 4294967296",
        ),
        (
            Artifact(artifact.metadata | {"scratch": (1 << 32) + 1}, artifact.code).to_bytes(),
            "scratch must be at most 4294967296, the size of a memory",
        ),
    ):
        with pytest.raises(ArtifactError, match=message):
            Artifact.from_bytes(bad)


def test_constants_are_kept_once():
    data = np.arange(5, dtype=np.float32).tobytes()
    a, b = (Buffer(n, "f32", (5,), "constant", data) for n in "ab")
    out, i = Buffer("out", "f32", (5,), "output"), Var("i")
    program = Program("c", [], [out], [], [Kernel("k", [For(i, 5, [Store(out, i, a[i] + b[i])], "parallel")])])
    artifact = compile_program(program)
    assert len(artifact.constants) == 64 and Artifact.from_bytes(artifact.to_bytes()) == artifact
    device = WasmtimeDevice()
    (p,) = device.run(device.load(artifact), [])
    np.testing.assert_array_equal(np.frombuffer(device.read(p, 20), np.float32), np.arange(5) * 2)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5000)), max_size=80))
def test_allocator_never_overlaps(steps):
    grown = []
    allocator = Allocator(grown.append, limit=FIRST + 200_000)
    live: dict[int, int] = {}
    for free, n in steps:
        if free and live:
            address = sorted(live)[n % len(live)]
            allocator.free(address)
            del live[address]
        else:
            try:
                address = allocator.alloc(n)
            except DeviceMemoryError:
                assert sum(live.values()) > 20_000
                continue
            assert address % 64 == 0 and address >= FIRST
            assert all(address >= a + size or a >= address + max(n, 1) for a, size in live.items())
            assert address + n <= (grown[-1] if grown else 0)
            live[address] = -(-max(n, 1) // 64) * 64
    for address in list(live):
        allocator.free(address)
    assert allocator.allocated == 0


def test_allocator_reuses_and_reports():
    device = WasmtimeDevice()
    assert device.stats()["allocated"] == 0
    p = device.alloc(1000)
    device.free(p)
    assert device.alloc(1000) == p and device.stats()["allocated"] >= 1000 and device.stats()["peak"] >= 1000
    with pytest.raises(ValueError, match="freed twice"):
        device.free(p + 64)
    with pytest.raises(DeviceMemoryError, match="4294967296"):
        device.alloc(1 << 32)


@pytest.mark.parametrize(
    "data", [b"abcdefgh", bytearray(b"abcdefgh"), np.arange(2, dtype=np.int32), memoryview(b"xxabcdefgh")[2:]]
)
def test_write_takes_buffers(data):
    device = WasmtimeDevice()
    p = device.alloc(8)
    device.write(p, data)
    assert device.read(p, 8) == bytes(memoryview(data).cast("B")) == bytes(device.view(p, 8))
    with pytest.raises(ValueError, match="outside"):
        device.read(p, 1 << 31)


def test_run_donates_and_frees():
    device = WasmtimeDevice()
    loaded = device.load(compile_program(doubling(donated={0: 0})).to_bytes())
    p = device.alloc(16)
    device.write(p, np.arange(4, dtype=np.float32))
    (kept,) = device.run(loaded, [p])
    assert kept != p
    (same,) = device.run(loaded, [p], donated={0})
    assert same == p and np.frombuffer(device.read(p, 16), np.float32).tolist() == [0, 2, 4, 6]
    device.free(kept)
    device.free(p)
    with pytest.raises(ValueError, match="takes 1 inputs"):
        device.run(loaded, [])
    device.unload(loaded)
    assert device.stats()["allocated"] == 0


def test_fail_raises_its_text_and_frees_outputs():
    x, out = Buffer("x", "i32", (), "input"), Buffer("out", "i32", (), "output")
    program = Program(
        "checked",
        [x],
        [out],
        [],
        [If(gt(x[0], 5), [Fail(7)], []), Kernel("k", [Store(out, i32(0), x[0])])],
        errors={7: "x is too large"},
    )
    device = WasmtimeDevice()
    loaded = device.load(compile_program(program))
    p = device.alloc(4)
    device.write(p, np.int32(9))
    before = device.stats()["allocated"]
    with pytest.raises(ProgramError, match="error 7: x is too large"):
        device.run(loaded, [p])
    assert device.stats()["allocated"] == before
    device.write(p, np.int32(3))
    (q,) = device.run(loaded, [p])
    assert device.read(q, 4) == b"\3\0\0\0"


def test_nothing_that_follows_a_failure_is_read():
    """Where an index would be outside of the memory the program fails before, and a loop must not read ahead what
    each of its iterations would read there.
    """
    n, x, out = Buffer("n", "i32", (), "input"), Buffer("x", "i32", (4,), "input"), Buffer("out", "i32", (), "output")
    k, t = Var("k"), Var("t")
    body = [
        If(ge(k, n[0]), [Fail(7)]),
        If(gt(x[k * k * (1 << 28)], 0), [Kernel("k", [Store(out, i32(0), out[0] + t)])]),
    ]
    loops = For(k, 2, [For(t, 3, body)])
    program = Program(
        "checked",
        [n, x],
        [out],
        [],
        [Kernel("zero", [Store(out, i32(0), i32(0))]), loops],
        errors={7: "n is too small"},
    )
    device = WasmtimeDevice()
    p, q = device.alloc(4), device.alloc(16)
    device.write(p, np.int32(1))
    device.write(q, np.arange(4, dtype=np.int32))
    with pytest.raises(ProgramError, match="error 7: n is too small"):
        device.run(device.load(compile_program(program)), [p, q])


def test_many_buffers_grow_the_table():
    inputs = [Buffer(f"x{k}", "f32", (), "input") for k in range(300)]
    out = Buffer("out", "f32", (300,), "output")
    body = [Kernel("k", [Store(out, i32(k), b[0])]) for k, b in enumerate(inputs)]
    device = WasmtimeDevice()
    pointers = [device.alloc(4) for _ in inputs]
    for k, p in enumerate(pointers):
        device.write(p, np.float32(k))
    (q,) = device.run(device.load(compile_program(Program("many", inputs, [out], [], body))), pointers)
    np.testing.assert_array_equal(np.frombuffer(device.read(q, 1200), np.float32), np.arange(300))


def mappings() -> int:
    return sum(1 for _ in open("/proc/self/maps"))


def adding(k: int) -> Program:
    x, out = Buffer("x", "f32", (4,), "input"), Buffer("out", "f32", (4,), "output")
    i = Var("i")
    return Program(
        "adding", [x], [out], [], [Kernel("k", [For(i, 4, [Store(out, i, x[i] + f32(float(k)))], kind="parallel")])]
    )


def test_a_device_holds_more_than_ten_thousand_programs():
    """Which is what wasmtime allows a store where nothing else is said."""
    device, artifact = WasmtimeDevice(), compile_program(adding(1))
    for _ in range(10_001):
        loaded = device.load(artifact)
    p = device.alloc(16)
    device.write(p, np.arange(4, dtype=np.float32))
    assert np.frombuffer(device.read(*device.run(loaded, [p]), 16), np.float32).tolist() == [1, 2, 3, 4]
    assert device.stores == 1


@pytest.mark.parametrize("threads,memory64", [(1, False), (2, False), (1, True)])
def test_unloaded_programs_leave_nothing_and_loaded_ones_go_on(threads, memory64, monkeypatch):
    """A store of wasmtime keeps what is loaded into it."""
    monkeypatch.setattr(wasmtime_device, "STALE", 100)
    device = WasmtimeDevice(threads=threads, memory64=memory64)
    features = {"simd128", *(("memory64",) if memory64 else ())}
    artifacts = [compile_program(adding(k), features) for k in range(8)]
    kept = device.load(artifacts[0])
    p = device.alloc(16)
    device.write(p, np.arange(4, dtype=np.float32))
    first = None
    for k in range(1000):
        device.unload(device.load(artifacts[1 + k % 7]))
        if k % 200 == 199:
            (q,) = device.run(kept, [p])
            assert np.frombuffer(device.read(q, 16), np.float32).tolist() == [0, 1, 2, 3]
            device.free(q)
            first = first or mappings()
    assert device.stores > 5 and device.instances < 210 and mappings() < first + 50
    device.free(p)
    device.unload(kept)
    assert device.stats()["allocated"] == 0


def test_a_running_program_may_have_many_others_compiled(monkeypatch):
    """What a program calls of the host may compile and run programs: the store that it runs in stays."""
    monkeypatch.setattr(wasmtime_device, "STALE", 100)
    device, artifact = WasmtimeDevice(), compile_program(adding(1))

    def more(addresses):
        for _ in range(250):
            device.unload(device.load(artifact))
        device.write(addresses[1], device.read(addresses[0], 16))

    x, out = Buffer("x", "f32", (4,), "input"), Buffer("out", "f32", (4,), "output")
    table = Buffer("table", "i32", (4,), "temp")
    calling = Program(
        "calling", [x], [out], [table], [HostCall(0, table, [x], [out])], calls=[SimpleNamespace(ins=[x], outs=[out])]
    )
    loaded = device.load(compile_program(calling), [more])
    p = device.alloc(16)
    device.write(p, np.arange(4, dtype=np.float32))
    stores = device.stores
    (q,) = device.run(loaded, [p])
    assert device.stores == stores and np.frombuffer(device.read(q, 16), np.float32).tolist() == [0, 1, 2, 3]
    device.unload(device.load(artifact))
    assert device.stores == stores + 1
    assert np.frombuffer(device.read(*device.run(loaded, [p]), 16), np.float32).tolist() == [0, 1, 2, 3]


def test_unknown_features_are_refused():
    with pytest.raises(ValueError, match="unknown features"):
        compile_program(doubling(), {"avx512"})
