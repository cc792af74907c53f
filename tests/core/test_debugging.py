"""What helps to find mistakes: explanations of recompilation, guards, leak checks, NaN checks, live arrays, what the environment is."""
import logging

import numpy as np
import pytest

import weft
import weft.numpy as jnp


def reasons(f):
    return [(r.phase, r.why) for r in f.explain()]


def test_explain_names_the_argument_that_differed():
    @weft.jit
    def f(params, *rest, flag=None):
        return params["w"][0] + 1
    f({"w": [jnp.ones(3)]})
    f({"w": [jnp.ones(4)]})
    f({"w": [jnp.ones(4)]})
    f({"w": [jnp.ones(4, jnp.int32)]})
    f({"w": [jnp.ones((4, 2), jnp.int32)]})
    f({"w": [1.0]})
    f({"w": [jnp.float32(1)]})
    f({"w": (jnp.ones(3),)})
    f({"w": [jnp.ones(3), 2]})
    f({"w": [jnp.ones(3)]}, flag=1)
    assert reasons(f) == [("traced", (why,)) for why in (
        "the first call",
        "the shape of params['w'][0] changed: it is f32[4] and was f32[3]",
        "the dtype of params['w'][0] changed: it is i32[4] and was f32[4]",
        "the shape of params['w'][0] changed: it is i32[4,2] and was i32[4]",
        "the shape and dtype of params['w'][0] changed: it is f32[] and was i32[4,2]",
        "params['w'][0] (f32[]) is not weakly typed (an array) and was weakly typed (a Python number)",
        "the structure of params is PyTreeDef({'w': (*,)}) and was PyTreeDef({'w': [*]})",
        "params['w'][1] is there and was not",
        "flag is there and was not")]
    text = str(f.explain())
    assert text.startswith("f was not found in its caches 9 times:\n1. traced at ") and text.count("test_debugging.py:") == 9


def test_explain_names_static_arguments_options_and_places():
    class Thing:
        def __repr__(self):
            return "Thing()"
    f = weft.jit(lambda x, n, thing=None: x * n, static_argnums=1, static_argnames="thing")
    f(1.0, 2), f(1.0, 3), f(1.0, 3, thing=Thing()), f(1.0, 3, thing=Thing())
    with weft.numpy_rank_promotion("raise"):
        f(1.0, 3)
    assert [why[0] for _, why in reasons(f)[1:]] == [
        "the static argument n is 3 and was 2", "the static argument thing is given and was not",
        "the static argument thing is Thing() and was Thing(); they are unequal Thing objects that look the same",
        "the config option jax_numpy_rank_promotion is 'raise' and was 'allow'"]
    f.clear_cache()
    f(1.0, 2)
    assert reasons(f)[-1] == ("traced", ("nothing that is kept: clear_cache or clear_caches was called",))


def test_explain_says_that_a_function_is_jitted_again_and_again():
    made = [weft.jit(lambda x: x * 3) for _ in range(2)]
    for f in made:
        f(1.0)
    assert reasons(made[0]) == [("traced", ("the first call",))]
    assert "another with the same code was traced at" in reasons(made[1])[0][1][0] and "test_debugging.py" in reasons(made[1])[0][1][0]


def test_explain_says_where_a_program_was_compiled_again():
    first, second = weft.devices("reference")[0], weft.devices("wasm")[0]
    f = weft.jit(lambda x: x + 1)
    f(weft.device_put(np.ones(2, np.float32), first)), f(weft.device_put(np.ones(2, np.float32), second))
    (phase, (why,)), = reasons(f)[1:]
    assert phase == "compiled" and str(first) in why and str(second) in why


def test_explain_cache_misses_logs_the_same(caplog):
    def scale(x):
        return x * 2
    f = weft.jit(scale)
    with caplog.at_level(logging.WARNING), weft.explain_cache_misses():
        f(1), f(1.0)
    assert "scale was traced at" in caplog.text and "the dtype of x changed: it is f32[] and was i32[]" in caplog.text
    caplog.clear()
    f(np.ones(3))
    assert not caplog.text
