"""The targets of programs: the backends, each in all of its configurations."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import passes
from guarded import guarded_device
from platforms import first_device, need
from weft_wasm.emit_wgsl import WgslError, compile_webgpu
from weft_wasm.routines.gemm import Tile

from .maker import Settings
from .types import KINDS, WIDE

OURS = frozenset(("inspected",))  # compiled programs have no such effect


@dataclass(frozen=True)
class Target:
    """A device, and what differs there while programs are compiled and run."""

    name: str
    device: Callable[[], Any]
    settings: Settings = Settings(left_out=OURS)
    options: dict[str, Any] = field(default_factory=dict)  # of the backend's compiler
    changes: tuple[tuple[str, str, Any], ...] = ()  # module, name, value
    check: Callable[[Any], None] = field(default=lambda device: None)
    flushes: bool = False  # whether zeros may stand for subnormal numbers
    decided_by: Target | None = None  # a program that fails here is wrong if it fails there, too

    @contextlib.contextmanager
    def here(self) -> Iterator[Any]:
        with contextlib.ExitStack() as stack:
            for module, name, value in self.changes:
                stack.enter_context(mock.patch.object(importlib.import_module(module), name, value))
            yield self.device()


# However small a loop is, threads share it, and kernels that share rows become one.
EVERY_LOOP_CUT = tuple(
    (f"weft_wasm.{module}", name, value)
    for module, name, value in [
        ("passes.threads", "WORTH", 0),
        ("passes.threads", "GRAIN", 1),
        ("passes.threads", "UNIT", 2),
        ("routines.gemm", "WORTH", 0),
        ("routines.gemm", "PACKING_WORTH", 0),
        ("routines.gemm", "SHARED_COLUMNS", 1),
        ("passes.kernel_fusion", "WORTH", 0),
    ]
)
# And however small an array is, what is done for large ones is done for it.
EVERYTHING_LARGE = tuple(
    (f"weft_wasm.{module}", name, value)
    for module, name, value in [
        *passes.SMALL,
        ("lower.loop_nests", "BIG_ARRAY", 8),
        ("lower.sequences", "PART", 4),
        ("passes.prefetch", "LONG", 1 << 20),
        ("routines.fft", "FITS", 8),
        ("routines.fft", "TABLE", 16),
        ("routines.fft", "TALL", 4),
        ("routines.gemm", "DEEP", 2),
        ("routines.gemm", "KEPT", 512),
        ("routines.gemm", "KNOWN_PAGES", 4),
        ("routines.gemm", "NARROW", 8),
        ("routines.radix", "DIGIT", 2),
        ("routines.implicit_gemm", "NARROW", 1),
        ("routines.implicit_gemm", "ROWS", 8),
        ("routines.implicit_gemm", "SMALL", 0),
        ("routines.implicit_gemm", "TERMS", 6),
        ("passes.grids", "MOST_PRIVATE", 64),
        ("passes.kernel_fusion", "ROW_BYTES", 64),
        ("passes.kernel_fusion", "BATCH_BYTES", 1024),
    ]
)
# As many panels and blocks as there may be, of a few rows and columns each.
SMALL_TILE = functools.partial(Tile, mr=2, nr=4, kc=8, mc=4, nc=8, unroll=2)
EVERYTHING_LARGE += tuple(
    (f"weft_wasm.{module}", name, value)
    for module, name, value in [
        ("lower.loop_nests", "TILES", (4, 3, 2)),
        ("routines.fft", "LARGEST", 5),
        ("routines.radix", "worth", lambda n, dtype: n > 3),
        ("routines.gemm", "default_tile", lambda dtype, features=frozenset(): SMALL_TILE()),
        ("routines.implicit_gemm", "default_tile", lambda dtype, features=frozenset(): SMALL_TILE()),
    ]
)
SHADERS_LARGE = (
    ("weft_wasm.emit_wgsl.chunks", "LIMIT", 2),
    ("weft_wasm.emit_wgsl.workgroup_reductions", "LONG", 4),
    ("weft_wasm.emit_wgsl.workgroup_reductions", "VERY_LONG", 16),
    # not more than LIMIT: the last part is a loop whose length only the device knows
    ("weft_wasm.lower.sequences", "PART", 2),
    ("weft_wasm.lower.sequences", "LONG", 8),
    ("weft_wasm.routines.register_tiles", "ENOUGH", 2),
)


def within(**less: int) -> tuple[tuple[str, str, Any], ...]:
    """A change: shaders are compiled as for a device with lower limits."""
    compile = lambda program, limits, check=True: compile_webgpu(program, {**limits, **less}, check=check)
    return (("weft_wasm.backends.webgpu", "compile_webgpu", compile),)


def in_small_buffers(program: Any, limits: dict[str, int], check: bool = True) -> Any:
    """Compiles for a device that binds few more bytes than the largest array has: temps have buffers of their own."""
    limits = {**limits, "maxStorageBuffersPerShaderStage": 32}
    for power in range(6, 14):
        with contextlib.suppress(WgslError):
            return compile_webgpu(program, {**limits, "maxStorageBufferBindingSize": 1 << power}, check=check)
    return compile_webgpu(program, limits, check=check)


@functools.cache
def wasm(changes: tuple, relaxed: bool = True, **options: Any) -> Any:
    """A device for each of the configurations."""
    need("wasm")
    device = guarded_device(relaxed=relaxed, **options)
    device.backend.after = passes.Watcher(passes.SHARE)
    return device


def guarded(name: str, changes: tuple = (), **options: Any) -> Target:
    """A Wasm device of its own, whose buffers have edges that nobody may touch."""
    return Target(
        name, lambda: wasm(changes, **options), changes=changes, check=lambda device: device.backend.runtime.check()
    )


def xla(name: str, optimised: bool) -> Target:
    """Programs compile faster where XLA does not optimise. What fails there is run with its optimiser as well: without,
    XLA computes a value twice and rounds a product and a sum once in one place and twice in the other, so that a
    maximum equals none of the numbers that it is the maximum of, and its derivative is NaN.

    XLA's older emitters, which are faster still, compute wrong values: they read the place of an update again after the
    update has written over it, and make NaN of what float8 types without a negative zero would round to one.
    """
    options = {
        "xla_backend_optimization_level": 3 if optimised else 0,
        "xla_llvm_disable_expensive_passes": not optimised,
        "xla_cpu_use_fusion_emitters": True,
    }
    settings = Settings(left_out=frozenset(("wide_product",)))
    decided_by = None if optimised else xla("XLA", optimised=True)
    return Target(name, lambda: first_device("cpu"), settings, options, flushes=True, decided_by=decided_by)


def shaders(name: str, changes: tuple[tuple[str, str, Any], ...] = ()) -> Target:
    """A WebGPU device, which has no numbers of 64 bits."""
    settings = Settings(frozenset(KINDS) - set(WIDE), OURS | {"accurate", "wide_product"})
    return Target(name, lambda: first_device("webgpu"), settings, changes=changes, flushes=True)


TARGETS: dict[str, list[Target]] = {
    "cpu": [xla("XLA", optimised=True), *[xla("XLA that does not optimise", optimised=False)] * 2],
    "wasm": [
        guarded("relaxed SIMD"),
        guarded("plain SIMD", relaxed=False),
        guarded("memory of 64 bits", memory64=True),
        *[
            guarded(f"every loop cut, {n} threads", EVERY_LOOP_CUT, threads=n, relaxed=n != 2, memory64=n == 3)
            for n in (1, 2, 3)
        ],
        *[guarded(f"everything large, {n} threads", EVERYTHING_LARGE, threads=n, relaxed=n == 2) for n in (1, 2, 3)],
    ],
    "webgpu": [
        shaders("shaders"),
        shaders("shaders, everything large", SHADERS_LARGE),
        shaders(
            "shaders, few buffers and workgroups",
            within(maxStorageBuffersPerShaderStage=4, maxComputeWorkgroupsPerDimension=2),
        ),
        shaders(
            "shaders, small buffers",
            (("weft_wasm.backends.webgpu", "compile_webgpu", in_small_buffers),),
        ),
    ],
}


def target_for(platform: str, seed: int) -> Target:
    """The configurations of a platform take turns, at random: each meets programs of all kinds."""
    among = TARGETS[platform]
    return among[(seed * 2654435761 >> 7) % len(among)]
