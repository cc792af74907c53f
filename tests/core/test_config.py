"""The configuration: values, names, contexts, threads, environment variables, and what each option does."""

import json
import logging
import os
import pathlib
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from platforms import need

import weft
import weft.numpy as jnp
from weft.base.config import NO_EFFECT, config


@pytest.fixture
def restored():
    before = {o.name: o.default for o in config._options.values()}
    yield
    for name, value in before.items():
        if config._options[name].default != value:
            config.update(name, value)


def test_an_option_is_read_by_all_its_names(restored):
    config.update("jax_numpy_rank_promotion", "warn")
    assert (
        config.jax_numpy_rank_promotion
        == config.numpy_rank_promotion
        == config.read("jax_numpy_rank_promotion")
        == "warn"
    )
    assert config.values["jax_numpy_rank_promotion"] == "warn" and "jax_enable_x64" in dir(config)
    assert config.x64_enabled is False


@pytest.mark.parametrize(
    "name, value, says",
    [
        ("jax_enable_x64", "yes", "takes True or False"),
        ("jax_numpy_rank_promotion", "never", "'allow', 'warn', 'raise'"),
        ("jax_default_matmul_precision", "exact", "'highest'.* or None"),
        ("jax_compilation_cache_max_size", 1.5, "takes an int"),
        ("jax_persistent_cache_min_compile_time_secs", "1", "takes a number"),
        ("jax_compilation_cache_dir", 3, "takes a string or None"),
        ("jax_log_compiles", None, "takes True or False"),
        ("jax_num_cpu_devices", True, "takes an int"),
    ],
)
def test_a_value_that_an_option_does_not_take(name, value, says):
    before = config.read(name)
    with pytest.raises(ValueError, match=f"(?s){name}.*{says}.*test_config.py"):
        config.update(name, value)
    assert config.read(name) == before


def test_values_that_options_take_in_other_forms(restored):
    config.update("jax_debug_nans", 0)
    assert config.debug_nans is False
    config.update("jax_debug_nans", np.bool_(False))
    config.update("jax_persistent_cache_min_compile_time_secs", 0)
    config.update("jax_default_matmul_precision", None)


def test_unknown_names():
    with pytest.raises(AttributeError, match="(?s)'jax_enable_x65'.*Did you mean 'jax_enable_x64'.*test_config.py"):
        config.update("jax_enable_x65", True)
    with pytest.raises(AttributeError):
        config.jax_nothing_like_it
    with pytest.raises(AttributeError, match="config.update"):
        config.jax_enable_x64 = True


def test_contexts_are_of_the_thread(restored):
    seen = []
    with weft.enable_x64(True), weft.numpy_dtype_promotion("strict"):
        assert jnp.arange(2).dtype == np.int64
        thread = threading.Thread(
            target=lambda: seen.append((config.enable_x64, config.numpy_dtype_promotion, jnp.arange(2).dtype))
        )
        thread.start(), thread.join()
        with weft.enable_x64(False):
            assert jnp.arange(2).dtype == np.int32
        config.update("jax_enable_x64", False)  # the default, which the context hides
        assert config.jax_enable_x64 is True
    assert seen == [(False, "standard", np.int32)] and config.enable_x64 is False


def test_parameters_of_contexts_are_those_of_jax():
    with (
        weft.enable_x64(new_val=True),
        weft.disable_jit(disable=True),
        weft.debug_nans(),
        weft.log_compiles(new_val=False),
    ):
        assert config.enable_x64 and config.disable_jit and config.debug_nans and not config.log_compiles
    with pytest.raises(TypeError, match="takes the new value"):
        with weft.numpy_rank_promotion():
            pass
    with pytest.raises(ValueError, match="'warn'"):
        with weft.numpy_rank_promotion("never"):
            pass


def test_a_context_is_left_by_an_error():
    with pytest.raises(ZeroDivisionError):
        with weft.enable_x64(True):
            1 / 0
    assert not config.enable_x64


def child(code: str, **env) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "JAX_PLATFORMS": "reference", **env},
        capture_output=True,
        text=True,
    )


def test_environment_variables():
    show = (
        "import weft; c = weft.config; print(c.enable_x64, c.persistent_cache_min_compile_time_secs,"
        " c.compilation_cache_max_size, c.numpy_rank_promotion, c.check_vma)"
    )
    out = child(
        show,
        JAX_ENABLE_X64="on",
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0.25",
        JAX_COMPILATION_CACHE_MAX_SIZE="77",
        JAX_NUMPY_RANK_PROMOTION="warn",
        CHECK_VMA="1",
    ).stdout
    assert out.split() == ["True", "0.25", "77", "warn", "True"]
    assert child(show, JAX_ENABLE_X64="0", WEFT_ENABLE_X64="1").stdout.split()[0] == "True"
    for variable, value in (
        ("JAX_ENABLE_X64", "perhaps"),
        ("JAX_COMPILATION_CACHE_MAX_SIZE", "big"),
        ("JAX_NUMPY_RANK_PROMOTION", "x"),
    ):
        error = child("import weft", **{variable: value}).stderr
        assert "ValueError" in error and variable in error and repr(value) in error


def test_flags_of_the_command_line():
    code = (
        "import sys; sys.argv += ['--jax_enable_x64', '--nojax_log_compiles', '--jax_numpy_rank_promotion=raise',"
        " '--mine=3']; import weft; weft.config.parse_flags_with_absl(); print(weft.config.enable_x64,"
        " weft.config.log_compiles, weft.config.numpy_rank_promotion)"
    )
    assert child(code).stdout.split() == ["True", "False", "raise"]


def test_all_options_of_jax_are_known_with_their_defaults():
    expected = json.loads((pathlib.Path(__file__).parent / "config_of_jax.json").read_text())
    assert set(expected) <= set(config.values)
    environment = {"jax_platforms", "jax_platform_name", "jax_num_cpu_devices", "jax_enable_checks"}
    defaults = {name: o.default for name in expected for o in [config._find(name)] if name not in environment}
    assert {n: v for n, v in defaults.items() if v != expected[n]} == {}


def test_options_without_effect_say_so_and_why():
    with pytest.warns(
        UserWarning, match="'jax_pprint_use_color' has no effect in weft: jaxprs are printed without colours"
    ):
        config.update("jax_pprint_use_color", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        config.update("jax_pprint_use_color", config._find("jax_pprint_use_color").default)
    config._options.pop("pprint_use_color")
    assert all(reason for _, _, reason in NO_EFFECT.values())


def test_contexts_without_effect_say_so_too():
    with pytest.warns(UserWarning, match="'jax_softmax_custom_jvp' has no effect"), weft.softmax_custom_jvp(True):
        assert config.softmax_custom_jvp
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with weft.debug_key_reuse(False), weft.auto_pcast():
            pass


# what options do -----------------------------------------------------------------------------------------------------


def test_rank_promotion():
    a, b = jnp.ones((2, 3)), jnp.ones(3)
    with weft.numpy_rank_promotion("raise"), pytest.raises(ValueError, match=r"(?s)\(2, 3\), \(3,\).*test_config.py"):
        a + b
    with weft.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="numpy_rank_promotion"):
        np.testing.assert_array_equal(a + b, 2 * np.ones((2, 3)))
    with weft.numpy_rank_promotion("raise"):
        a + 1.0, a + a


def test_default_matmul_precision_reaches_the_program():
    f = weft.jit(lambda x: x @ x)
    with weft.default_matmul_precision("highest"):
        assert (
            "HIGHEST" in str(weft.make_jaxpr(f)(jnp.ones((2, 2)))) and "HIGHEST" in f.lower(jnp.ones((2, 2))).as_text()
        )
    assert "HIGHEST" not in str(weft.make_jaxpr(f)(jnp.ones((2, 2))))


def test_default_device():
    with weft.default_device(weft.devices("reference")[0]):
        assert jnp.ones(2).device.platform == "reference"
    with weft.default_device("wasm"):
        assert jnp.ones(2).device.platform == "wasm"


def test_generators_and_seeds(restored):
    with weft.default_prng_impl("rbg"):
        assert weft.random.key_impl(weft.random.key(0)) == "rbg"
    plain = weft.random.key_data(weft.random.key(5))
    config.update("jax_random_seed_offset", 2)
    np.testing.assert_array_equal(weft.random.key_data(weft.random.key(3)), plain)
    with weft.legacy_prng_key("error"), pytest.raises(ValueError, match="(?s)raw uint32.*test_config.py"):
        weft.random.normal(weft.random.PRNGKey(0))
    with weft.legacy_prng_key("warn"), pytest.warns(FutureWarning, match="raw uint32"):
        weft.random.normal(weft.random.PRNGKey(0))


def test_sums_in_16_bits_can_be_forbidden():
    x = jnp.ones(3, jnp.float16)
    assert weft.lax.reduce(x, np.float16(0), weft.lax.add, (0,)) == 3  # which is not remembered
    with weft.allow_f16_reductions(False):
        assert jnp.sum(x) == 3
        with pytest.raises(ValueError, match=r"(?s)f16\[3\].*test_config.py"):
            weft.lax.reduce(x, np.float16(0), weft.lax.add, (0,))


def test_log_levels(restored):
    config.update("jax_logging_level", "ERROR")
    assert logging.getLogger("weft").level == logging.ERROR
    config.update("jax_debug_log_modules", "weft.compile")
    assert logging.getLogger("weft.compile").level == logging.DEBUG
    logging.getLogger("weft.compile").setLevel("NOTSET")


def test_programs_are_dumped_and_optimised_as_asked(restored, tmp_path):
    need("cpu")
    config.update("jax_dump_ir_to", str(tmp_path))
    config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    config.update("jax_disable_most_optimizations", True)
    config.update("jax_optimization_level", "O1")
    config.update("jax_memory_fitting_effort", 0.5)

    def dumped(x):
        return x * 3

    with weft.default_device(weft.devices("cpu")[0]):
        assert weft.jit(dumped)(2.0) == 6
    (file,) = [p for p in tmp_path.iterdir() if "jit_dumped" in p.name]
    assert "stablehlo.multiply" in file.read_text() and '"test_config.py"' in file.read_text()


def test_large_constants_warn(restored):
    big = jnp.ones(1000)
    config.update("jax_captured_constants_warn_bytes", 4000)
    with pytest.warns(UserWarning, match="(?s)4,000 bytes.*Pass them as arguments"):
        weft.jit(lambda x: x + big)(1.0)


def test_contexts_of_the_users_are_part_of_what_is_traced():
    context, traced = weft.make_user_context(default_value=1), []
    f = weft.jit(lambda x: traced.append(context.value) or x * context.value)
    assert [int(f(2)), int(f(2))] == [2, 2]
    with context(3):
        assert [int(f(2)), int(f(2)), context.value, context.get_global()] == [6, 6, 3, 1]
    context.set_global(5)
    assert [int(f(2)), context.value, traced] == [10, 5, [1, 3, 5]]


def test_blocks_that_end_out_of_order_restore_their_own_option():
    x64, promotion = weft.enable_x64(True), weft.numpy_rank_promotion("raise")
    x64.__enter__()
    promotion.__enter__()
    x64.__exit__(None, None, None)
    assert not weft.config.jax_enable_x64 and weft.config.jax_numpy_rank_promotion == "raise"
    promotion.__exit__(None, None, None)
    assert weft.config.jax_numpy_rank_promotion == "allow"


def test_other_threads_see_the_default():
    seen = []
    with weft.numpy_rank_promotion("raise"):
        thread = threading.Thread(
            target=lambda: seen.append((weft.config.jax_numpy_rank_promotion, weft.config.trace_context()))
        )
        thread.start()
        thread.join()
        here = weft.config.trace_context()
    assert seen[0][0] == "allow" and seen[0][1] != here and seen[0][1] == weft.config.trace_context()
