"""`import weft.as_jax` and the stand-in for jax's distribution. Each program runs in a process of its own, since it
changes the process.
"""

import hashlib
import os
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode

import pytest
from platforms import need

from weft.compat import standin

# What chex, diffrax, distrax, equinox, flax, haiku, lineax, numpyro, optimistix, blackjax and tensorflow_probability
# take beyond jax's public modules.
USED = """
__version__ __version_info__ _src.ad_util.stop_gradient_p _src.checkify.checkify _src.checkify.user_checks
_src.core.ShapedArray _src.core.physical_aval _src.core.trace_state_clean _src.compiler _src.dispatch.wait_for_tokens
_src.dtypes.DType _src.dtypes.ExtendedDType _src.dtypes.TypePromotionError _src.dtypes.extended _src.dtypes.finfo
_src.dtypes.supports_inf _src.flatten_util.ravel_pytree _src.literals.TypedNdArray _src.state.types.AbstractRef
_src.traceback_util._exclude_paths.append _src.traceback_util._exclude_paths.remove _src.traceback_util.api_boundary
_src.traceback_util.include_frame _src.traceback_util.register_exclusion _src.tree_util._registry
_src.xla_bridge._backends core.AbstractValue core.Atom core.DropVar core.ShapedArray core.Trace core.Tracer
core.eval_jaxpr core.find_top_trace core.get_opaque_trace_state core.pytype_aval_mappings core.valid_jaxtype
extend.core.ClosedJaxpr extend.core.DropVar extend.core.Effect extend.core.Jaxpr extend.core.JaxprEqn
extend.core.Literal extend.core.Primitive extend.core.TraceTag extend.core.Var extend.core.find_top_trace
extend.core.get_opaque_trace_state extend.core.jaxpr_as_fun extend.core.mapped_aval extend.core.primitives.call_p
extend.core.primitives.closed_call_p extend.core.primitives.jit_p extend.core.set_current_trace
extend.core.take_current_trace extend.core.unmapped_aval extend.core.valid_jaxtype extend.linear_util.transformation
extend.linear_util.wrap_init extend.source_info_util.register_exclusion interpreters.ad.JVPTracer
interpreters.ad.UndefinedPrimal interpreters.ad.Zero interpreters.ad.instantiate_zeros
interpreters.ad.is_undefined_primal interpreters.ad.primitive_jvps interpreters.ad.primitive_transposes
interpreters.batching.axis_primitive_batchers interpreters.batching.primitive_batchers
interpreters.mlir.emit_python_callback interpreters.mlir.lower_fun interpreters.mlir.register_lowering
interpreters.partial_eval.PartialVal.known interpreters.partial_eval.PartialVal.unknown
interpreters.partial_eval.trace_to_jaxpr_nounits interpreters.xla.canonicalize_dtype_handlers core.Jaxpr
core.ClosedJaxpr core.JaxprEqn core.Literal core.Var core.Primitive lib.xla_extension.XlaRuntimeError
api_util.flatten_fun api_util.debug_info extend.core.primitives.sin_p extend.core.primitives.remat_p
extend.core.primitives.custom_jvp_call_p extend.core.primitives.add_jaxvals_p extend.random.define_prng_impl
extend.backend.get_backend extend.mlir.dialects.stablehlo extend.source_info_util.current lib.__version__
extend.sharding.get_hlo_sharding_from_serialized_proto extend.backend.get_compile_options
extend.core.primitives.linear_solve_p extend.core.primitives.scatter_add_p extend.source_info_util.NameStack
"""


def run(program: str, *, python=(sys.executable,), **env) -> str:
    done = subprocess.run([*python, "-c", program], capture_output=True, text=True, env={**os.environ, **env})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_libraries_find_their_names():
    """As attributes, and by import where they are modules."""
    program = f"""
import importlib, weft.as_jax, jax
missing = []
for name in {USED.split()!r}:
    found, parts = jax, name.split(".")
    try:
        for part in parts:
            found = getattr(found, part)
    except AttributeError as e:
        missing.append((name, str(e)))
assert not missing, missing
modules = "core extend.core extend.core.primitives extend.linear_util interpreters.ad _src.core lib.xla_extension"
modules += " api_util _src.lib.mlir.dialects experimental.layout experimental.hijax test_util"
for name in modules.split():
    importlib.import_module("jax." + name)
from jax import core, linear_util
from jax.extend import core as same
from jax.interpreters import ad, batching, mlir, partial_eval, pxla, xla
from jax.extend.core.primitives import scan_p
assert core is same and core.Tracer is weft.core.Tracer and scan_p is jax.lax.scan_p
assert jax.numpy is weft.numpy and ad.Zero is weft.core.primitive.Zero
for module, name in ((jax, "no_name"), (jax._src, "no_module"), (jax.interpreters.pxla, "no_name")):
    try:
        getattr(module, name)
    except AttributeError as e:
        assert "weft, which replaces jax here" in str(e), e
    else:
        raise SystemExit(name)
"""
    run(program)


def test_real_jax_is_refused(tmp_path):
    (tmp_path / "jax.py").write_text("__version__ = '0'")
    program = "import jax\ntry:\n    import weft.as_jax\nexcept ImportError as e:\n    print(e)"
    assert "real jax is imported in this process already" in run(program, PYTHONPATH=str(tmp_path))


def test_the_distribution_in_memory():
    program = """
import importlib.metadata as m, sys
import weft.as_jax
assert m.version("jax") == "0.10.2" and "weft" in m.requires("jax")
assert [d.version for d in m.distributions() if d.name == "jax"] == ["0.10.2"]
assert m.version("jaxlib") == "0.10.2" and "weft" not in (m.metadata("jaxlib")["Summary"] or "")
assert not list(m.distributions(name="jax", path=["/no/such/folder"]))
try:
    m.version("no-such-distribution")
except m.PackageNotFoundError:
    print("fine")
"""
    assert run(program) == "fine\n"


def test_a_page_gets_jaxlib_too(monkeypatch):
    monkeypatch.setattr(standin.sys, "platform", "emscripten")
    monkeypatch.setattr(standin, "_on_path", lambda name: False)
    assert {d.metadata["Name"] for d in standin.distributions(None, sys.path)} == {"jax", "jaxlib"}
    assert next(standin.distributions("jaxlib", sys.path)).version == standin.VERSION


def test_the_wheel(tmp_path):
    with zipfile.ZipFile(standin.write_wheel(str(tmp_path))) as wheel:
        assert wheel.namelist()[-1] == "jax-0.10.2.dist-info/RECORD" and "jax/__init__.py" in wheel.namelist()
        for row in wheel.read("jax-0.10.2.dist-info/RECORD").decode().splitlines()[:-1]:
            path, digest, size = row.split(",")
            data = wheel.read(path)
            assert (
                len(data) == int(size)
                and digest == "sha256=" + urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            )


def test_installing(tmp_path):
    install = [sys.executable, "-m", "weft.as_jax", "install", str(tmp_path)]
    assert subprocess.run(install, capture_output=True, text=True).stdout.strip() == str(
        tmp_path / "jax-0.10.2.dist-info"
    )
    assert standin.write_into(str(tmp_path)) == str(tmp_path / "jax-0.10.2.dist-info")  # again is fine
    program = (
        "import jax, jax.numpy as jnp, sys\nassert 'weft.as_jax' in sys.modules\nprint(jax.__version__,"
        " jax.grad(jnp.sin)(0.0))"
    )
    assert run(program, PYTHONPATH=str(tmp_path)) == "0.10.2 1.0\n"
    (tmp_path / "jax-0.10.2.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: jax\nVersion: 0.10.2\nSummary: another\n"
    )
    with pytest.raises(SystemExit, match="jax 0.10.2 is installed.*pip uninstall jax"):
        standin.main(["install", str(tmp_path)])
    with pytest.raises(SystemExit, match="usage: python -m weft.as_jax install"):
        standin.main(["remove"])


@pytest.mark.parametrize("first", ["errors", "as_jax"])
def test_the_runtimes_own_error_is_known_early(first):
    """Libraries name the class in `except` before any program has run."""
    need("cpu")
    program = (
        f"import weft.{first}\n"
        + """
import weft
from weft.errors import JaxRuntimeError
def fail(x):
    raise ZeroDivisionError("inside")
try:
    weft.jit(lambda x: weft.pure_callback(fail, x, x))(1.0).block_until_ready()
except JaxRuntimeError as e:
    assert "inside" in str(e)
    print("caught")
"""
    )
    assert run(program, WEFT_PLATFORMS="cpu") == "caught\n"
