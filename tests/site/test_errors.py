"""Each error class that users may see has a page in the documentation, to which its message in the playground links."""

import importlib
import importlib.util
import inspect
import json
import pathlib
import pkgutil

import pytest
import weft
import weft_native
import weft_remote
import weft_wasm
from weft.base.errors import OwnRuntimeError

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = (weft, weft_remote, weft_wasm, weft_native)

# Classes without a page, and why no program meets them.
INTERNAL = {
    "weft.api.refs.OutsideOfReference": "a ValueError, which pallas_call turns into one that names the block",
    "weft.base.source_info.UnfilteredStackTrace": "the cause of an error, with the frames left out of its traceback",
    "weft_native.executable.CompilationError": "a BackendError that is XLA's too; its page is BackendError's",
    "weft.compat.core.JaxprTypeError": "a name for libraries; what is raised is weft.errors.VerificationError",
    "weft.compat.linear_util.StoreException": "a name for libraries that fill stores of their own",
    "weft.symbolic.specialize.Unsolvable": "caught where sizes are solved for",
    "weft.testing.backend.LeftOut": "how a check of a backend says that it does not apply",
    "weft_native.host.access.AccessError": "the command `weft-host token` prints it",
    "weft_native.host.grants.Denied": "becomes the reason for which a client is refused",
    "weft_native.host.issuer.KeysError": "the host's log and `weft-host check` tell it; clients are refused",
    "weft_native.host.arrivals.Later": "becomes the code with which a connection is closed whose client comes again",
    "weft_native.host.arrivals.Left": "how the queue of a full host hears that a client has gone",
    "weft_native.host.room.Full": "becomes the reason for which a client is refused",
    "weft_native.host.room.Over": "how those who wait for a session hear that it has ended",
    "weft_native.host.front.Refused": "becomes the answer to a client that is refused",
    "weft_native.host.settings.SettingsError": "the command `weft-host` prints it",
    "weft_native.host.store.Inherited": "is the failure of an operand, which the client is told",
    "weft_native.host.control.Closed": "how a process of the host hears that the other one has ended",
    "weft_native.host.inference.errors.RequestError": "becomes the answer to an HTTP request",
    "weft_remote.desktop.ComeAgain": "how a transport hears that it must connect again",
    "weft_wasm.binary.decode.ModuleError": "what the compiler writes is a module: a mistake of the compiler",
    "weft_wasm.emit_wgsl.shader.WgslError": "what the compiler writes is WGSL: a mistake of the compiler",
    "weft_wasm.interpreter.interpret.TooLong": "of the interpreter of the loop IR, which tests use",
    "weft_wasm.interpreter.memory.InterpretError": "of the interpreter of the loop IR, which tests use",
    "weft_wasm.ir.attributes.VerifyError": "the loop IR is well-formed: a mistake of the compiler",
}
NOT_IMPORTED = ("weft.as_jax", "weft_wasm.runtimes.page", "weft_remote.page", "__main__")  # they change the process


def defined() -> set[str]:
    """The exception classes of all modules, without warnings."""
    found = set()
    for package in PACKAGES:
        for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if any(part in info.name for part in NOT_IMPORTED):
                continue
            for value in vars(importlib.import_module(info.name)).values():
                if not inspect.isclass(value) or not issubclass(value, Exception) or issubclass(value, Warning):
                    continue
                if value.__module__.partition(".")[0] in {each.__name__ for each in PACKAGES}:
                    found.add(f"{value.__module__}.{value.__qualname__}")
    return {name for name in found if not name.rpartition(".")[2].startswith("_")}


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, pathlib.Path]:
    """The page of each class."""
    spec = importlib.util.spec_from_file_location("prepare", ROOT / "tools/site/prepare.py")
    prepare = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(prepare)
    target = tmp_path_factory.mktemp("docs")
    prepare.errors(target / "errors")
    listed = json.loads((target / "extra" / "errors.json").read_text())
    return {name: target / page.replace(".html", ".rst") for name, page in listed.items()}


def test_every_error_class_has_a_page_or_a_reason(pages):
    missing = defined() - pages.keys() - INTERNAL.keys()
    assert not missing, f"without a page in tools/site/prepare.py: {sorted(missing)}"


def test_pages_and_reasons_are_of_classes_that_there_are(pages):
    assert INTERNAL.keys() <= defined() and not INTERNAL.keys() & pages.keys()
    assert pages.keys() <= defined() | {"weft.errors.JaxRuntimeError"}  # which a compiled runtime may define


def test_pages_are_files_of_their_own_with_an_example(pages):
    assert len(set(pages.values())) == len(pages)
    for name, page in pages.items():
        assert page.is_file() and page.read_text().startswith(page.stem.rpartition(".")[2]), name
        module, _, short = name.rpartition(".")
        error = getattr(importlib.import_module(module), short)
        text = inspect.cleandoc((OwnRuntimeError if short == "JaxRuntimeError" else error).__doc__ or "")
        assert len(text) > 20, f"{name} is not described"
        assert "\nExample:\n" in text and ">>> " in text, f"{name} has no example"


@pytest.mark.parametrize("name", ["ConnectionLost", "AuthenticationError", "ProtocolError", "LimitError"])
def test_errors_of_hosts_have_pages(pages, name):
    text = pages[f"weft_remote.errors.{name}"].read_text()
    assert "currentmodule:: weft_remote.errors" in text and f"autoexception:: {name}()" in text


def test_classes_of_one_name_have_each_their_own_text(pages):
    core, checks = pages["weft.errors.JaxRuntimeError"], pages["weft.experimental.checkify.JaxRuntimeError"]
    assert "A compiled program failed" in core.read_text() and "A compiled program failed" not in checks.read_text()
