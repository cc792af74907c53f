"""Checks whether a backend conforms to `weft.runtime.backend`: `python -m weft.testing.backend PLATFORM`.

Arrays of every dtype that it declares, programs with every primitive, what it refuses, donation, order, several
devices, threads. Results are compared with the primitives' reference rules. Each check stands alone, under a name that
`--only` picks.

Exit status: 0 where all hold, 1 where some do not (each is named), 2 where the platform has no device.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Callable, NamedTuple

import weft
import weft.numpy as jnp
from weft.base import dtypes, limits
from weft import lax
from weft.core.interpret import interpret
from weft.core.jaxpr import Jaxpr, subjaxprs
from weft.core.primitive import registry
from weft.base.errors import BackendError
from weft.experimental import io_callback
from weft.base.host import np
from weft.runtime.array import BufferArray
from weft.runtime.backend import MEMBERS, Backend, Capabilities, CompileOptions
from weft.runtime.device import backend_for
from weft.runtime.dispatch import program_for
from weft.sharding import Mesh, NamedSharding, P

from .cases import TOLERANCE, Case, cases

Check = Callable[[], None]
THREADS, ROUNDS = 4, 5


class Result(NamedTuple):
    """The outcome of one check."""

    name: str
    outcome: str  # "passed", "failed", "left out"
    why: str = ""


class LeftOut(Exception):
    """Raised, with the reason, by a check that does not apply to this backend."""


def check_backend(platform: str, *, quick: bool = False, only: str = "") -> Iterator[Result]:
    """Checks a backend, one result after the other.

    Args:
        platform: one of its platforms.
        quick: one case for each primitive, instead of all.
        only: a text that the names of the checks contain.

    Raises:
        BackendError: if the platform has no device.

    Example:
        >>> from weft.testing.backend import check_backend
        >>> [r.outcome for r in check_backend("reference", only="interface: devices")]
        ['passed']
    """
    subject = Subject(platform)
    for name, check in subject.checks(quick):
        if only in name:
            yield subject.outcome(name, check)


class Subject:
    """A backend under test, on the first device of one of its platforms."""

    def __init__(self, platform: str):
        self.platform = platform
        self.devices = weft.devices(platform)
        if not self.devices:
            raise BackendError(f"the platform {platform!r} has no device.")
        self.device = self.devices[0]
        self.backend: Backend = backend_for(platform)
        self.able: Capabilities = self.backend.capabilities
        self.wide = {"int64", "uint64", "float64", "complex128"} <= self.able.dtypes

    def outcome(self, name: str, check: Check) -> Result:
        try:
            with self.here():
                check()
        except LeftOut as e:
            return Result(name, "left out", str(e))
        except Exception as e:
            frames = traceback.extract_tb(e.__traceback__)[1:]
            here = [f for f in frames if f.filename == __file__ and f.name not in ("close", "exactly", "raises")]
            return Result(
                name,
                "failed",
                "\n  ".join(
                    [
                        f"{type(e).__name__}: {e}".rstrip(),
                        *dict.fromkeys(f"at {f.filename}:{f.lineno}: {f.line}" for f in here[-1:] + frames[-1:]),
                    ]
                ),
            )
        return Result(name, "passed")

    @contextlib.contextmanager
    def here(self, device: Any = None) -> Iterator[None]:
        """64-bit dtypes where the backend has them, and values on the device, in this thread."""
        with weft.enable_x64(self.wide), weft.default_device(self.device if device is None else device):
            yield

    def checks(self, quick: bool) -> Iterator[tuple[str, Check]]:
        """(name, check) pairs."""
        yield "interface: members", self.members
        yield "interface: devices", self.are_devices
        yield "interface: an unknown platform", self.unknown_platform
        for name in sorted(dtypes.NAMES, key=lambda n: (n not in self.able.dtypes, n)):
            yield f"arrays: {name}", partial(self.holds, name)
        yield "arrays: host memory that changes", self.copies
        yield "arrays: host memory with gaps", self.strided
        yield "arrays: put from other backends", self.foreign
        yield "arrays: deleted", self.deleted
        yield "arrays: released once", self.released
        yield "arrays: memory comes back", self.comes_back
        known: set[str] = set()
        for case in cases():
            if not quick or case.primitive not in known and case.dtypes() <= self.able.dtypes:
                known.add(case.primitive)
                yield f"programs: {case.id}", partial(self.runs, case, eager=not quick)
        yield "programs: eager and compiled", self.eager
        yield "programs: texts", self.texts
        yield "programs: new data", self.new_data
        for name in CALLBACKS:
            yield f"callbacks: {name}", partial(self.calls_back, name)
        yield "errors: what is refused is named", self.refuses
        yield "errors: work goes on after one", self.goes_on
        yield "donation: the argument is gone and the result right", self.donates
        yield "donation: results that are arguments", self.donates_through
        yield "donation: compiled for it", self.donates_below
        yield "order: a chain of programs", self.chain
        yield "order: arrays that live on", self.live_on
        yield "devices: each runs programs", self.each_device
        yield "devices: between them", self.between_devices
        yield "devices: shardings", self.shardings
        yield "threads: one program", self.one_program
        yield "threads: programs and arrays of their own", self.own_programs

    # the interface --------------------------------------------------------------------------------------------------

    def members(self) -> None:
        lacking = [name for name in MEMBERS if name not in dir(self.backend)]
        assert not lacking, f"the backend has no {', '.join(lacking)}"
        assert isinstance(self.able, Capabilities), (
            f"its capabilities are {self.able!r}, no weft.runtime.backend.Capabilities"
        )
        assert self.platform in self.backend.platforms, f"its platforms are {self.backend.platforms}"
        unknown = self.able.dtypes - dtypes.NAMES
        assert not unknown, f"it declares dtypes that there are not: {', '.join(sorted(unknown))}"
        assert {
            "bool",
            "int32",
            "uint32",
            "float32",
        } <= self.able.dtypes, "it lacks one of bool, int32, uint32 and float32, without which little runs"

    def are_devices(self) -> None:
        found = self.backend.devices(self.platform)
        assert all(a == b for a, b in zip(found, self.backend.devices(self.platform), strict=True)), (
            "devices() gives others each time"
        )
        for d in found:
            assert d.platform == self.platform and d.backend is self.backend, (
                f"{d!r} is on {d.platform!r}, with the backend {d.backend!r}"
            )
            assert (
                isinstance(d.id, int)
                and isinstance(d.process_index, int)
                and isinstance(d.device_kind, str)
                and repr(d)
                and hash(d) == hash(d)
            )
        assert len({d.id for d in found}) == len(found) == len(set(found)), (
            "devices of one platform differ in their ids"
        )

    def unknown_platform(self) -> None:
        raises(BackendError, lambda: self.backend.devices("no such platform"))

    # arrays ---------------------------------------------------------------------------------------------------------

    def holds(self, name: str) -> None:
        """Arrays of one dtype come back as they went, alone and through programs; one that is not declared is
        refused by name.
        """
        numbers = values(name)
        if name not in self.able.dtypes:
            with weft.enable_x64(True):
                raises(
                    BackendError,
                    lambda: np.asarray(weft.jit(lambda x: x[::-1])(weft.device_put(numbers, self.device))),
                    name,
                )
            return
        for shape in ((), (1,), (5,), (2, 3), (0,), (3, 0, 2), (2, 1, 2, 1, 2, 2), (257,)):
            host = np.resize(numbers, shape) if np.prod(shape) else np.zeros(shape, numbers.dtype)
            x = weft.device_put(host, self.device)
            assert (x.shape, x.dtype, x.ndim, x.size) == (
                shape,
                host.dtype,
                len(shape),
                host.size,
            ), f"{x.aval} for {host.dtype}{shape}"
            assert x.devices() == {self.device} and x.committed and not x.is_deleted()
            assert x.block_until_ready() is x and x.is_ready()
            exactly(x, host)
        turned = weft.jit(lambda x: x[::-1])(x)
        assert turned.dtype == host.dtype and turned.devices() == {self.device}
        exactly(turned, host[::-1])

    def copies(self) -> None:
        host = np.arange(1000, dtype=np.float32)
        x = weft.device_put(host, self.device)
        y = weft.jit(lambda x: x + 1)(x)
        host[:] = -1
        exactly(x, np.arange(1000, dtype=np.float32))
        exactly(y, np.arange(1, 1001, dtype=np.float32))

    def strided(self) -> None:
        host = np.arange(24, dtype=np.int32).reshape(4, 6)
        for view in (host[::-1, ::2], host.T, np.broadcast_to(host[:1], (3, 6)), np.asfortranarray(host)):
            exactly(weft.device_put(view, self.device), view)
            exactly(weft.jit(lambda x: x * 2)(view), view * 2)

    def foreign(self) -> None:
        elsewhere = weft.device_put(np.arange(4, dtype=np.float32), weft.devices("reference")[0])
        moved = weft.device_put(elsewhere, self.device)
        assert moved.devices() == {self.device}
        exactly(moved, np.arange(4, dtype=np.float32))
        exactly(weft.device_put(moved * 2, elsewhere.device), np.arange(0, 8, 2, dtype=np.float32))

    def deleted(self) -> None:
        x = weft.device_put(np.ones(3, np.float32), self.device)
        x.delete()
        x.delete()
        assert x.is_deleted()
        raises(RuntimeError, lambda: np.asarray(x), "deleted")
        raises(RuntimeError, lambda: np.asarray(weft.jit(lambda x: x + 1)(x)), "deleted")

    def released(self) -> None:
        if not issubclass(self.able.array_type, BufferArray):
            raise LeftOut("its arrays are not BufferArrays")
        backend: Any = self.backend
        seen: list[Any] = []
        kept = backend.release

        def release(handle: Any) -> None:
            seen.append(handle)
            kept(handle)

        backend.release = release
        try:
            x: Any = weft.device_put(np.ones(3, np.float32), self.device)
            y: Any = weft.jit(lambda x: x + 1)(x)
            handles = [x.handle, y.handle]
            x.delete()
            del x, y
            gc.collect()
        finally:
            backend.release = kept
        for handle in handles:
            count = sum(handle is h or type(handle) is int and handle == h for h in seen)
            assert count == 1, f"release was called {count} times for the handle {handle!r}"

    def comes_back(self) -> None:
        host, twice = np.ones((256, 1024), np.float32), weft.jit(lambda x: x * 2)
        for _ in range(300):  # 600 MB if they were kept
            x = twice(weft.device_put(host, self.device))
        assert float(x[3, 7]) == 2

    # programs -------------------------------------------------------------------------------------------------------

    def runs(self, case: Case, eager: bool) -> None:
        missing = case.dtypes() - self.able.dtypes
        if missing:
            raise LeftOut(f"it has no {', '.join(sorted(missing))}")
        args = case.sample()
        closed = weft.make_jaxpr(case.fun)(*args)
        lacking = used(closed.jaxpr)[0] & self.able.lacks
        if lacking:
            raises(BackendError, lambda: ready(weft.jit(case.fun)(*self.put(args))), *sorted(lacking))
            return
        program, consts = program_for(closed, "reference", ("cpu",))
        missing = used(program)[1] - self.able.dtypes
        if missing:
            raise LeftOut(f"it has no {', '.join(sorted(missing))}")
        want = interpret(program, [*map(np.asarray, consts), *args])
        compiled = weft.jit(case.fun)
        for f in (compiled, compiled, case.fun) if eager else (compiled, compiled):
            close(weft.tree_util.tree_leaves(f(*self.put(args))), want, case.looser)

    def put(self, args: Sequence[Any]) -> list[Any]:
        return [weft.device_put(a, self.device) for a in args]

    def eager(self) -> None:
        x = jnp.arange(6.0, dtype="float32").reshape(2, 3)
        f = lambda x: (jnp.sin(x) + 1, x @ x.T, x.at[0].set(3), x > 2, 2 * x.sum(), jnp.where(x > 1, x, -1))
        for a, b in zip(f(x), weft.jit(f)(x)):
            assert a.dtype == b.dtype and a.devices() == b.devices() == {self.device}
            close([a], [np.asarray(b)], 1)
        assert (x + 1).weak_type is False and jnp.asarray(2.0).weak_type is True

    def texts(self) -> None:
        lowered = weft.jit(lambda x: jnp.tanh(x) + 1).lower(np.ones(3, np.float32))
        compiled = lowered.compile()
        assert (
            isinstance(compiled.as_text(), str)
            and compiled.as_text()
            and isinstance(lowered.as_text("jaxpr" if self.able.lowered_text is None else None), str)
        )
        raises(ValueError, lambda: compiled.as_text("no such stage"))
        assert (
            isinstance(compiled.cost_analysis(), dict)
            and isinstance(dict(compiled.memory_analysis()), dict)
            and compiled.runtime_executable() is not None
        )
        exactly(compiled(np.zeros(3, np.float32)), np.ones(3, np.float32))

    def new_data(self) -> None:
        f = weft.jit(lambda x, n: lax.fori_loop(0, n, lambda i, v: v + x * i, x))
        for k in range(ROUNDS):
            host, n = np.arange(7, dtype=np.float32) + k, k
            close([f(host, n)], [host * (1 + sum(range(n)))], 1)

    def calls_back(self, name: str) -> None:
        seen: list[Any] = []
        program, check = CALLBACKS[name]
        f = weft.jit(lambda x: program(x, seen))
        if name in self.able.lacks:
            raises(BackendError, lambda: ready(f(np.arange(3, dtype=np.float32))))
            return
        ready(f(np.arange(3, dtype=np.float32)))
        weft.effects_barrier()
        assert check(seen), f"the calls were {seen}"

    # errors ---------------------------------------------------------------------------------------------------------

    def refuses(self) -> None:
        """Every name that the backend declares as lacking is a primitive."""
        for name in sorted(self.able.lacks):
            assert name in registry, f"its capabilities lack {name!r}, which is not a primitive"

    def goes_on(self) -> None:
        f = weft.jit(lambda x: x * 2)
        x = f(np.ones(3, np.float32))
        for wrong in (
            lambda: f("no array"),
            lambda: x @ jnp.ones((2, 2)),
            lambda: weft.jit(lambda x: 1 / 0)(x),
            lambda: self.backend.devices("no such platform"),
        ):
            raises(Exception, wrong)
        gone = weft.device_put(np.ones(3, np.float32), self.device)
        gone.delete()
        raises(RuntimeError, lambda: np.asarray(f(gone)))
        exactly(f(x), np.full(3, 4, np.float32))

    # donation -------------------------------------------------------------------------------------------------------

    def donates(self) -> None:
        f = weft.jit(lambda x, y: (x.at[1].set(7.0) * 2, y + x), donate_argnums=0)
        x, y = self.put([np.arange(4, dtype=np.float32), np.ones(4, np.float32)])
        first, second = f(x, y)
        assert x.is_deleted() and not y.is_deleted(), "a donated argument is deleted, and no other"
        raises(RuntimeError, lambda: np.asarray(x), "deleted|donated")
        exactly(first, np.array([0, 14, 4, 6], np.float32))
        exactly(second, np.arange(1, 5, dtype=np.float32))
        exactly(y, np.ones(4, np.float32))

    def donates_through(self) -> None:
        x = weft.device_put(np.arange(4, dtype=np.float32), self.device)
        f = weft.jit(lambda x, y: (y, x, x + y), donate_argnums=0)
        y = weft.device_put(np.ones(4, np.float32), self.device)
        a, b, c = f(x, y)
        for out, want in ((a, np.ones(4)), (b, np.arange(4)), (c, np.arange(1, 5))):
            exactly(out, want.astype(np.float32))
        a.delete()
        exactly(y, np.ones(4, np.float32))

    def donates_below(self) -> None:
        """Donation as the core requests it: the backend may reuse the memory, and need not."""
        closed = weft.make_jaxpr(lambda x, y: [x * 2 + y])(np.ones(4, np.float32), np.ones(4, np.float32))
        jaxpr, consts = program_for(closed, self.platform, self.able.branches_of)
        executable = self.backend.compile(
            jaxpr, self.device, CompileOptions("f", (False,) * len(consts) + (True, False))
        )
        for k in range(ROUNDS):
            x, y = self.put([np.full(4, k, np.float32), np.ones(4, np.float32)])
            (out,) = executable.execute([*self.put(consts), x, y])
            exactly(out, np.full(4, 2 * k + 1, np.float32))
            exactly(y, np.ones(4, np.float32))

    # order ----------------------------------------------------------------------------------------------------------

    def chain(self) -> None:
        f = weft.jit(lambda x, k: (x * 3 + k) % 1001)
        x, want = weft.device_put(np.arange(5, dtype=np.int32), self.device), np.arange(5, dtype=np.int64)
        for k in range(100):
            x, want = f(x, np.int32(k)), (want * 3 + k) % 1001
        exactly(x, want.astype(np.int32))

    def live_on(self) -> None:
        f = weft.jit(lambda x: (x + 1, x * 2, x[::-1]))
        arrays = [weft.device_put(np.arange(8, dtype=np.float32), self.device)]
        wants = [np.arange(8, dtype=np.float32)]
        for k in range(10):
            arrays += f(arrays[k])
            wants += [wants[k] + 1, wants[k] * 2, wants[k][::-1]]
            if k % 3 == 0:  # freed memory must not belong to an array that is still in use
                junk = weft.device_put(np.full(8, -5, np.float32), self.device)
                del junk
        for x, want in zip(arrays, wants):
            exactly(x, want)

    # devices --------------------------------------------------------------------------------------------------------

    def each_device(self) -> None:
        f = weft.jit(lambda x: jnp.cumsum(x) * 2)
        for k, device in enumerate(self.devices):
            x = weft.device_put(np.arange(4, dtype=np.float32) + k, device)
            y = f(x)
            assert x.devices() == y.devices() == {device}, f"a program on {device} left its result on {y.devices()}"
            exactly(y, np.cumsum(np.arange(4, dtype=np.float32) + k) * 2)
            with weft.default_device(weft.devices("reference")[0]):
                z = f(y) * 2
                assert y.committed and z.devices() == {device}, (
                    "results of committed arguments are committed, too, so that what is computed from them stays with"
                    " them"
                )
                assert not f(np.ones(3, np.float32)).committed
            with self.here(device):
                assert (jnp.ones(2) + 1).devices() == {device}

    def between_devices(self) -> None:
        if len(self.devices) < 2:
            raise LeftOut("it has one device")
        one, other = self.devices[:2]
        x = weft.device_put(np.arange(4, dtype=np.float32), one)
        y = weft.device_put(x, other)
        assert y.devices() == {other}
        raises(ValueError, lambda: x + y, "incompatible devices")
        x.delete()
        exactly(y, np.arange(4, dtype=np.float32))

    def shardings(self) -> None:
        host = np.arange(4 * len(self.devices), dtype=np.float32)
        one = NamedSharding(Mesh([self.device], ("x",)), P("x"))
        whole = weft.make_array_from_single_device_arrays(host.shape, one, [weft.device_put(host, self.device)])
        exactly(whole, host)
        if len(self.devices) < 2:
            return
        over = NamedSharding(Mesh(list(self.devices), ("x",)), P("x"))
        if self.able.spread is None:
            raises(BackendError, lambda: weft.device_put(host, over), "one device")
            return
        x = weft.device_put(host, over)
        assert x.devices() == set(self.devices) and len(x.addressable_shards) == len(self.devices)
        exactly(x, host)
        for shard in x.addressable_shards:
            assert shard.data.devices() == {shard.device} and shard.data.shape == (4,)
        exactly(weft.jit(lambda x: x * 2 + x.sum())(x), host * 2 + host.sum())
        exactly(
            weft.make_array_from_single_device_arrays(host.shape, over, [s.data for s in x.addressable_shards]), host
        )

    # threads --------------------------------------------------------------------------------------------------------

    def one_program(self) -> None:
        f = weft.jit(lambda x: jnp.sin(x).sum() + lax.fori_loop(0, 5, lambda i, v: v * 1.5 + i, x[0]))
        want = np.asarray(f(np.arange(6, dtype=np.float32)))
        again = weft.jit(lambda x: jnp.sin(x).sum() + lax.fori_loop(0, 5, lambda i, v: v * 1.5 + i, x[0]))

        def work(k: int) -> None:
            for _ in range(ROUNDS):
                close([again(np.arange(6, dtype=np.float32))], [want], 1)

        self.in_threads(work)

    def own_programs(self) -> None:
        def work(k: int) -> None:
            f = weft.jit(lambda x: x * k + jnp.cumsum(x))
            for n in range(1, ROUNDS):
                host = np.arange(n * 3, dtype=np.float32)
                x = weft.device_put(host, self.device)
                y = f(x)
                x.delete()
                close([y, y + 1], [host * k + np.cumsum(host), host * k + np.cumsum(host) + 1], 1)

        self.in_threads(work)

    def in_threads(self, work: Callable[[int], None]) -> None:
        errors: list[BaseException] = []
        start = threading.Barrier(THREADS)

        def run(k: int) -> None:
            try:
                with self.here():
                    start.wait(60)
                    work(k)
            except BaseException as e:  # raised again below, in the checking thread
                errors.append(e)

        threads = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if errors:
            raise errors[0]


def _ordered(x: Any, seen: list[Any]) -> Any:
    for k in range(3):
        weft.debug.callback(lambda v, k=k: seen.append((k, float(v))), x[k], ordered=True)
    return x + 1


def _pure(x: Any, seen: list[Any]) -> Any:
    def twice(v: Any) -> Any:
        seen.append(np.asarray(v).tolist())
        return np.asarray(v) * 2

    return weft.pure_callback(twice, weft.ShapeDtypeStruct(x.shape, x.dtype), x) + 1


def _io(x: Any, seen: list[Any]) -> Any:
    def same(v: Any) -> Any:
        seen.append(np.asarray(v).tolist())
        return np.asarray(v)

    return io_callback(same, weft.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=True)


# primitive -> (a program that calls back, what its calls must have been)
CALLBACKS: dict[str, tuple[Callable[[Any, list[Any]], Any], Callable[[list[Any]], bool]]] = {
    "debug_callback": (_ordered, lambda seen: seen == [(0, 0.0), (1, 1.0), (2, 2.0)]),
    "pure_callback": (_pure, lambda seen: bool(seen) and all(s == [0.0, 1.0, 2.0] for s in seen)),
    "io_callback": (_io, lambda seen: seen == [[0.0, 1.0, 2.0]]),
}


def used(jaxpr: Jaxpr) -> tuple[set[str], set[str]]:
    """(the primitives, the dtypes) of a program and of those inside it."""
    primitives, found = set(), {dtypes.name(v.aval.dtype) for v in jaxpr.invars}
    for eqn in jaxpr.eqns:
        primitives.add(eqn.primitive.name)
        found |= {dtypes.name(a.aval.dtype) for a in (*eqn.invars, *eqn.outvars)}
        for sub in subjaxprs(eqn.params):
            inner = used(sub)
            primitives |= inner[0]
            found |= inner[1]
    return primitives, found


def values(name: str) -> Any:
    """Numbers of one dtype, the unusual ones among them."""
    dtype = dtypes.dtype(name)
    if dtypes.is_bool(dtype):
        return np.array([True, False, False, True, True])
    if dtypes.kind(dtype) in "iu":
        low, high = int(limits.iinfo(dtype).min), int(limits.iinfo(dtype).max)
        return np.array(
            [low, high, 0, max(low, -1), min(high, 1), max(high - 1, 0)], np.int64 if low < 0 else np.uint64
        ).astype(dtype)
    if dtypes.is_complex(dtype):
        return np.array([0, -0.0, 1.5 - 2j, complex(float("inf"), -1), complex(float("nan"), 3)]).astype(dtype)
    info = limits.finfo(dtype)
    special = [float("inf"), float("-inf"), float("nan"), -0.0, 0.0] if dtypes.bits(dtype) > 8 else []
    return np.array(
        [1, 0.5, float(info.max), float(info.tiny), *special, *([float(info.smallest_subnormal)] if special else [])]
    ).astype(dtype)


def exactly(x: Any, want: Any) -> None:
    """Checks that an array has exactly these bits."""
    got = np.asarray(x)
    assert got.dtype == want.dtype and got.shape == want.shape, f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    assert got.tobytes() == np.ascontiguousarray(want).tobytes(), f"{got.tolist()} for {want.tolist()}"


def close(got: Sequence[Any], want: Sequence[Any], looser: float) -> None:
    """Checks that arrays have these types, and these values up to rounding."""
    assert len(got) == len(want), f"{len(got)} results for {len(want)}"
    for x, w in zip(got, want):
        g = np.asarray(x)
        assert g.dtype == w.dtype and g.shape == w.shape, f"a result of {g.dtype}{g.shape} for {w.dtype}{w.shape}"
        tolerance = TOLERANCE.get(w.dtype.name, 0) * looser
        wide = np.complex128 if dtypes.is_complex(w.dtype) else np.float64 if dtypes.is_float(w.dtype) else w.dtype
        np.testing.assert_allclose(g.astype(wide), w.astype(wide), rtol=tolerance, atol=tolerance)


def ready(out: Any) -> None:
    """Waits until a result is there, or its error."""
    for x in weft.tree_util.tree_leaves(out):
        np.asarray(x)


def raises(kind: type[Exception], call: Callable[[], Any], *names: str) -> None:
    """Checks that a call raises an error of a kind whose text has each of the names (or one of several, separated by
    |).
    """
    try:
        call()
    except kind as e:
        for name in names:
            assert any(part in str(e) for part in name.split("|")), f"the error does not name {name}: {e}"
        return
    raise AssertionError(f"no {kind.__name__} was raised" + (f" that names {', '.join(names)}" if names else ""))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m weft.testing.backend",
        description="Checks whether a backend keeps what weft.runtime.backend promises.",
    )
    parser.add_argument("platform", help="one of its platforms, such as wasm")
    parser.add_argument("--quick", action="store_true", help="one case for each primitive")
    parser.add_argument("--only", default="", metavar="TEXT", help="the checks whose names contain TEXT")
    parser.add_argument(
        "--import",
        action="append",
        default=[],
        dest="modules",
        metavar="MODULE",
        help="import a module first, such as one that registers the backend",
    )
    parser.add_argument("--verbose", "-v", action="store_true", help="name what holds, too")
    options = parser.parse_args(argv)
    for module in options.modules:
        importlib.import_module(module)
    start, counts = time.perf_counter(), {"passed": 0, "failed": 0, "left out": 0}
    try:
        for result in check_backend(options.platform, quick=options.quick, only=options.only):
            counts[result.outcome] += 1
            if result.outcome == "failed" or options.verbose:
                print(
                    f"{result.outcome.upper()} {result.name}" + (f"\n  {result.why}" if result.why else ""), flush=True
                )
    except BackendError as e:
        print(e, file=sys.stderr)
        return 2
    print(
        f"{options.platform}: {', '.join(f'{n} {what}' for what, n in counts.items())},"
        f" {time.perf_counter() - start:.1f} s"
    )
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
