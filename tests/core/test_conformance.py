"""The conformance suite: our backends pass it, backends with one fault each do not, and its programs have every
primitive that a program can have.
"""

import contextlib
import importlib
import pkgutil
import time

import numpy as np
import platforms
import pytest
import weft
from weft.core.primitive import registry
from weft.errors import BackendError
from weft.runtime import device
from weft.runtime.array import BufferArray
from weft.runtime.backend import Capabilities
from weft.runtime.dispatch import program_for
from weft.runtime.reference import ReferenceBackend, ReferenceDevice, ReferenceExecutable
from weft.testing.backend import Subject, main, used
from weft.testing.cases import cases


@pytest.mark.parametrize("platform", platforms.under_test())
def test_our_backends_pass(platform):
    """All checks, and every twelfth program: the catalogue's are run elsewhere."""
    platforms.first_device(platform)
    subject = Subject(platform)
    quick = list(subject.checks(quick=True))
    programs = [check for check in quick if check[0].startswith("programs: ") and "(" in check[0]]
    assert len(programs) > 100
    for name, check in [c for c in quick if c not in programs] + programs[::12]:
        result = subject.outcome(name, check)
        assert result.outcome != "failed", f"{name}: {result.why}"


@contextlib.contextmanager
def registered(cls):
    """A faulty reference backend, as the platform "faulty"."""
    cls.name, cls.platforms, cls.__module__ = "faulty", ("faulty",), ReferenceBackend.__module__
    device.register_backend(cls, "faulty")
    try:
        made = device.backend_for("faulty")
        made._devices = [type("FaultyDevice", (ReferenceDevice,), {"platform": "faulty"})(made)]
        yield Subject("faulty")
    finally:
        device.forget_backend(device.backend_for("faulty"))
        del device._factories["faulty"]


class Sound(ReferenceBackend):
    """None."""


class KeepsHostMemory(ReferenceBackend):
    """arrays: host memory that changes"""

    def put(self, value, aval, device, committed):
        return BufferArray(aval, np.asarray(value, aval.dtype), device, committed)


class ForgetsSigns(ReferenceBackend):
    """arrays: float32"""

    def put(self, value, aval, device, committed):
        made = super().put(value, aval, device, committed)
        made.handle = made.handle + 0 if made.handle.dtype == np.float32 else made.handle
        return made


class ForgetsCommitment(ReferenceBackend):
    """arrays: int32"""

    def put(self, value, aval, device, committed):
        return super().put(value, aval, device, False)


class ClaimsTooLittle(ReferenceBackend):
    """arrays: int8"""

    capabilities = Capabilities(dtypes=ReferenceBackend.capabilities.dtypes - {"int8"})


class ReleasesTwice(ReferenceBackend):
    """arrays: released once"""

    def is_ready(self, handle):
        return True

    def compile(self, jaxpr, device, options):
        made = ReferenceExecutable(self, jaxpr, device)
        execute = made.execute

        def twice(args):
            outs = execute(args)
            for x in outs:
                self.release(x.handle)
            return outs

        made.execute = twice
        return made


class Rounds(ReferenceBackend):
    """programs: sin(f32[2,3])"""

    def compile(self, jaxpr, device, options):
        made = ReferenceExecutable(self, jaxpr, device)
        execute = made.execute

        def rounded(args):
            outs = execute(args)
            for x in outs:
                if x.handle.dtype == np.float32:
                    x.handle = np.round(x.handle, 3)
            return outs

        made.execute = rounded
        return made


class CompilesOnce(ReferenceBackend):
    """programs: new data"""

    def compile(self, jaxpr, device, options):
        made = ReferenceExecutable(self, jaxpr, device)
        execute, kept = made.execute, []
        made.execute = lambda args: kept if kept else kept.extend(execute(args)) or kept
        return made


class ShowsAnyStage(ReferenceBackend):
    """programs: texts"""

    def compile(self, jaxpr, device, options):
        made = ReferenceExecutable(self, jaxpr, device)
        made.as_text = lambda stage=None: str(jaxpr)
        return made


class LacksMoreThanItSays(ReferenceBackend):
    """programs: sort(f32[2,5])"""

    def compile(self, jaxpr, device, options):
        if "sort" in used(jaxpr)[0]:
            raise BackendError("this backend has no sort")
        return super().compile(jaxpr, device, options)


class RefusesWithoutAName(ReferenceBackend):
    """programs: sort(f32[2,5])"""

    capabilities = Capabilities(lacks=frozenset(["sort"]))

    def compile(self, jaxpr, device, options):
        if "sort" in used(jaxpr)[0]:
            raise BackendError("this backend does not have that")
        return super().compile(jaxpr, device, options)


class LacksWhatThereIsNot(ReferenceBackend):
    """errors: what is refused is named"""

    capabilities = Capabilities(lacks=frozenset(["sortt"]))


class TakesTheWrongArgument(ReferenceBackend):
    """donation: compiled for it"""

    def compile(self, jaxpr, device, options):
        made = ReferenceExecutable(self, jaxpr, device)
        execute = made.execute

        def spoil(args):
            outs = execute(args)
            if options.donated and any(options.donated):
                args[-1].handle[...] = 0
            return outs

        made.execute = spoil
        return made


class ReusesResults(ReferenceBackend):
    """order: arrays that live on"""

    def compile(self, jaxpr, device, options):
        made = ReferenceExecutable(self, jaxpr, device)
        execute, last = made.execute, []

        def reuse(args):
            outs = execute(args)
            for old, new in zip(last, outs):
                old.handle = (
                    new.handle if old.handle is not None and old.handle.shape == new.handle.shape else old.handle
                )
            last[:] = outs
            return outs

        made.execute = reuse
        return made


class HasOneOfMany(ReferenceBackend):
    """interface: devices"""

    def devices(self, platform=None):
        return [*self._devices, *self._devices]


class HasAnything(ReferenceBackend):
    """interface: an unknown platform"""

    def devices(self, platform=None):
        return self._devices


class SharesItsArguments(ReferenceBackend):
    """threads: programs and arrays of their own"""

    def compile(self, jaxpr, device, options):
        made = ReferenceExecutable(self, jaxpr, device)
        execute = made.execute

        def racing(args):
            self.arguments = args
            time.sleep(0.002)
            return execute(self.arguments)

        made.execute = racing
        return made


FAULTS = [
    c
    for c in list(globals().values())
    if isinstance(c, type) and issubclass(c, ReferenceBackend) and c not in (ReferenceBackend, Sound)
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda c: c.__name__)
def test_a_fault_is_found(fault):
    name = fault.__doc__
    with registered(fault) as subject:
        failed = [
            n for n, check in subject.checks(quick=True) if n == name and subject.outcome(n, check).outcome == "failed"
        ]
    with registered(Sound) as subject:
        passed = [
            n for n, check in subject.checks(quick=True) if n == name and subject.outcome(n, check).outcome == "passed"
        ]
    assert failed == passed == [name]


def test_the_programs_have_every_primitive():
    """But for those that others become before a backend sees them, and those of checks of their own."""
    for module in pkgutil.walk_packages(weft.__path__, "weft."):
        if "__main__" not in module.name:
            importlib.import_module(module.name)
    become = {
        "geqrf",
        "geqp3",
        "remat_opt",
        "custom_lin",
        "dce_sink",
        "device_put",
        "stage",
        "dim_as_value",
        "after_all",
        "create_token",
        "addupdate",
        "empty_ref",
        "free_ref",
        "todense",
        "call_exported",
    }
    elsewhere = {
        "all_gather",
        "all_gather_invariant",
        "all_to_all",
        "axis_index",
        "pbroadcast",
        "pmax",
        "pmin",
        "ppermute",
        "psum",
        "pvary",
        "reduce_scatter",
        "layout_constraint",
        "pallas_call",
        "reshard",
        "shard_alike",
        "shard_map",
        "sharding_constraint",
        "transfer",
        "debug_callback",
        "debug_report",
        "remote_callback",
        "io_callback",
        "pure_callback",
        "inspect_sharding",
        "rng_uniform",
        "check",
        "ffi_call",
        "xla_metadata_value",
    }
    found = set()
    with weft.enable_x64(True):
        for case in cases():
            closed = weft.make_jaxpr(case.fun)(*case.sample())
            has = used(closed.jaxpr)[0] | used(program_for(closed, "reference", ("cpu",))[0])[0]
            assert case.primitive in has, f"{case.id} has {sorted(has)}"
            found |= has
    ours = {name for name, p in registry.items() if p.abstract.__module__.startswith("weft.")}
    assert ours - found - become - elsewhere == set()
    assert not (become | elsewhere) & found and len({c.id for c in cases()}) == len(cases())


def test_on_the_command_line(capsys):
    assert main(["reference", "--only", "interface", "-v"]) == 0
    out = capsys.readouterr().out
    assert "PASSED interface: devices" in out and "reference: 3 passed, 0 failed, 0 left out" in out
    assert main(["reference", "--only", "no such check"]) == 1
    assert main(["no such platform"]) == 2
    assert "unknown platform 'no such platform'" in capsys.readouterr().err
    with registered(HasAnything):
        assert main(["faulty", "--only", "interface"]) == 1
    out = capsys.readouterr().out
    assert (
        "FAILED interface: an unknown platform\n  AssertionError: no BackendError was raised\n  at " in out
        and "2 passed, 1 failed" in out
    )
