"""Backends of other packages: found by the platforms that their entry points name."""

import pathlib
import threading
from types import SimpleNamespace

import pytest
import weft
import weft.numpy as jnp
from weft.errors import BackendError
from weft.runtime import device
from weft.runtime.backend import MEMBERS, Backend
from weft.runtime.reference import ReferenceBackend

ABACUS = """
from weft.errors import BackendError
from weft.runtime.reference import ReferenceBackend, ReferenceDevice

class Abacus(ReferenceBackend):
    name, platforms = "abacus", ("abacus", "beads")

    def __init__(self):
        super().__init__()
        self._by_platform = {p: ReferenceDevice(self) for p in self.platforms}
        for platform, found in self._by_platform.items():
            found.platform = platform

    def devices(self, platform=None):
        return [self._by_platform[platform or "abacus"]]

class Broken:
    def __init__(self):
        raise BackendError("the counting frame has no beads")

class Lacking:
    name, platforms = "lacking", ("toy",)

    def devices(self, platform=None):
        return []

class Once(Abacus):
    made = False

    def __init__(self):
        if Once.made:
            raise BackendError("it was unplugged")
        super().__init__()
        Once.made = True

class Misnamed(ReferenceBackend):
    name, platforms = "misnamed", ("slate",)
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """install(name, **entries) has a distribution with these entry points on the path, as pip would leave it there."""
    (tmp_path / "abacus_for_weft.py").write_text(ABACUS)
    monkeypatch.syspath_prepend(tmp_path)

    def install(name: str, **entries: str) -> pathlib.Path:
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(
            "[weft.backends]\n" + "".join(f"{k} = abacus_for_weft:{v}\n" for k, v in entries.items())
        )
        return folder

    before = device.known_backends()
    yield install
    for backend in device.known_backends():
        if backend not in before:
            device.forget_backend(backend)
    device._entries.clear()


def test_a_platform_of_another_package(install):
    install("abacus", abacus="Abacus", beads="Abacus", toy="Broken")
    (beads,), (abacus,) = weft.devices("beads"), weft.devices("abacus")
    assert (beads.platform, abacus.platform) == ("beads", "abacus") and beads.backend is abacus.backend
    with weft.default_device(abacus):
        x = weft.jit(lambda x: jnp.sin(x) * 2)(jnp.arange(3.0))
    assert x.device is abacus
    y = weft.device_put(x, beads) + 1
    assert y.device is beads and y.tolist() == pytest.approx([1, 2 * 0.841471 + 1, 2 * 0.909297 + 1], abs=1e-5)
    assert device.known_platforms()[-4:] == ["abacus", "beads", "remote", "toy"]


def test_it_is_the_default_when_asked_for_and_only_then(install):
    install("abacus", abacus="Abacus", beads="Abacus")
    assert weft.default_backend() != "abacus"
    before = weft.config.platforms
    weft.config.update("jax_platforms", "beads,cpu")
    try:
        assert weft.default_backend() == "beads" and (jnp.ones(2) + 1).device.platform == "beads"
    finally:
        weft.config.update("jax_platforms", before)


def test_one_that_was_forgotten_is_made_again(install):
    """Nothing of it stays: neither for its platforms, nor as the default, nor for operations on its arrays."""
    install("abacus", abacus="Abacus", beads="Abacus")
    before = weft.config.platforms
    weft.config.update("jax_platforms", "beads")
    try:
        first = device.default_device().backend
        assert first is device.backend_for("abacus") and device.default_device().backend is first
        device.forget_backend(first)
        assert first not in device.known_backends()
        again = device.default_device().backend
        assert again is not first and again is device.backend_for("abacus") is device.backend_for("beads")
    finally:
        weft.config.update("jax_platforms", before)


def test_one_that_was_forgotten_and_is_gone_is_the_default_no_more(install):
    install("once", abacus="Once")
    before = weft.config.platforms
    weft.config.update("jax_platforms", "abacus,reference")
    try:
        assert device.default_platform() == "abacus"
        device.forget_backend(device.default_device().backend)
        assert device.default_platform() == "reference"
    finally:
        weft.config.update("jax_platforms", before)


def test_one_that_does_not_start_says_why(install):
    install("toy", toy="Broken")
    with pytest.raises(BackendError, match="no beads"):
        weft.devices("toy")


def test_one_that_does_not_load_says_why(install):
    install("toy", toy="Broken").joinpath("entry_points.txt").write_text("[weft.backends]\ntoy = no_such_module:Toy\n")
    with pytest.raises(BackendError, match="'toy' can't be loaded: No module named 'no_such_module'"):
        weft.devices("toy")


def test_one_that_is_none_says_what_it_lacks(install):
    install("toy", toy="Lacking")
    with pytest.raises(
        BackendError, match="abacus_for_weft.Lacking is not a backend, because it lacks capabilities, put, compile"
    ):
        weft.devices("toy")
    assert set(MEMBERS) == {
        *Backend.__annotations__,
        *[n for n, v in vars(Backend).items() if callable(v) and n[0] != "_"],
    }


def test_an_entry_point_names_a_platform_of_its_backend(install):
    install("toy", toy="Misnamed")
    with pytest.raises(
        BackendError,
        match=(
            "abacus_for_weft:Misnamed of toy is registered for the platform 'toy', but the backend 'misnamed' has the"
            " platforms slate"
        ),
    ):
        weft.devices("toy")


def test_two_backends_for_one_platform(install):
    install("abacus", abacus="Abacus")
    weft.devices("abacus")
    install("frames", abacus="Broken")
    assert weft.devices("abacus")  # what was found stays
    with pytest.raises(
        BackendError,
        match="two installed packages .* 'abacus': .*:(Abacus of abacus|Broken of frames) and .* Uninstall one",
    ):
        weft.devices("nothing")


def test_an_unknown_platform_names_those_there_are(install):
    install("abacus", abacus="Abacus", beads="Abacus")
    with pytest.raises(BackendError, match="unknown platform 'slate'; platforms are tpu, cuda, cpu, .*abacus, beads"):
        weft.devices("slate")


def test_a_backend_is_made_once_among_threads():
    made = []
    release = threading.Event()

    class Slow(ReferenceBackend):
        name, platforms = "slow", ("slow",)
        __module__ = ReferenceBackend.__module__  # so that this file stays the user's

        def __init__(self):
            release.wait(5)
            made.append(self)

    device.register_backend(Slow, "slow")
    try:
        found = []
        threads = [threading.Thread(target=lambda: found.append(device.backend_for("slow"))) for _ in range(4)]
        for t in threads:
            t.start()
        release.set()
        for t in threads:
            t.join()
        assert len(made) == 1 and found == made * 4
    finally:
        device.forget_backend(made[0])
        del device._factories["slow"]


def test_operations_on_arrays_of_one_that_was_forgotten_are_forgotten(monkeypatch):
    """Those of its own arrays, and no others."""
    mine, other = lambda *args: "mine", lambda *args: "other"
    for kept in (mine, other):
        array_type = type("Array", (), {})
        monkeypatch.setitem(device.eager, array_type, kept)
        device.forget_backend(SimpleNamespace(capabilities=SimpleNamespace(apply=mine, array_type=array_type)))
        assert (array_type in device.eager) is (kept is other)
        device.eager.setdefault(array_type, kept)  # what monkeypatch takes away
