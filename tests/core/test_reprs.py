"""The text forms of objects of the language: in error messages, in a debugger, in programs that are printed."""

import re

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from weft import lax
from weft.base.avals import shaped
from weft.higher_order.custom_vjp import CustomVJPPrimal
from weft.effects.foreign import Attribute
from weft.higher_order.policies import Recompute, Saveable
from weft.core.effects import DebugEffect, Effect
from weft.core.jaxpr import DropVar, Literal, TypedScalar, Var
from weft.core.primitive import UndefinedPrimal, Zero

F32 = shaped((2, 3), "float32")
SHOWN = [
    (Zero(F32), "Zero(float32[2,3])"),
    (UndefinedPrimal(F32), "UndefinedPrimal(float32[2,3])"),
    (DropVar(F32), "_"),
    (Literal(2.5, shaped((), "float32")), "2.5:f32[]"),
    (TypedScalar(2.5, shaped((), "float32")), "2.5:f32[]"),
    (lax.sin_p, "sin"),
    (CustomVJPPrimal(3, True), "CustomVJPPrimal(value=3, perturbed=True)"),
    (Attribute(np.array([1, 2], np.int16)), "Attribute([1, 2], int16)"),
    (Saveable, "Saveable"),
    (Recompute, "Recompute"),
    (lax.DotAlgorithmPreset.F32_F32_F32, "DotAlgorithmPreset.F32_F32_F32"),
    (Effect("Its own"), "Its own"),
    (DebugEffect(), "DebugEffect"),
    (DebugEffect("Debug"), "Debug"),
]


@pytest.mark.parametrize("value,text", SHOWN, ids=[text for _, text in SHOWN])
def test_how_objects_are_shown(value, text):
    assert repr(value) == text


@pytest.mark.parametrize(
    "value,text",
    [
        (lax.DotAlgorithmPreset.BF16_BF16_F32, "BF16_BF16_F32"),
        (lax.GatherScatterMode.CLIP, "GatherScatterMode.CLIP"),
        (lax.RandomAlgorithm.RNG_THREE_FRY, "RNG_THREE_FRY"),
    ],
)
def test_names_of_choices(value, text):
    assert str(value) == text


def test_variables_are_shown_by_what_they_are():
    var = Var(F32)
    assert repr(var) == f"Var(id={id(var)}):float32[2,3]"


def test_effects_without_options_have_none():
    assert (Effect("Its own").ordered, Effect("Its own").io) == (False, False)
    assert (Effect("Its own", ordered=True).ordered, Effect("Its own", io=True).io) == (True, True)


def test_values_under_transformation_show_what_they_are():
    seen = []
    weft.jvp(lambda x: seen.append(repr(x)) or x, (jnp.float32(2),), (jnp.float32(3),))
    assert seen == ["GradTracer(primal=2.0, tangent=3.0)"]


def test_values_know_their_sizes_while_they_are_traced():
    seen = []
    look = lambda x: seen.append((x.shape, x.ndim, x.size, x.nbytes, x.is_fully_addressable)) or x
    weft.make_jaxpr(look)(jnp.ones((2, 3), jnp.int16))
    weft.make_jaxpr(look)(jnp.zeros((0, 3)))
    assert seen == [((2, 3), 2, 6, 12, True), ((0, 3), 2, 0, 0, True)]
    scalar = TypedScalar(2.5, shaped((), "float32"))
    assert (scalar.shape, scalar.ndim, scalar.dtype, scalar.weak_type) == ((), 0, np.dtype("float32"), False)


def test_effects_of_programs_are_named():
    assert str(weft.make_jaxpr(lambda x: weft.debug.print("{}", x))(1.0).effects) == "frozenset({Debug})"
    assert (
        str(weft.make_jaxpr(lambda x: weft.debug.print("{}", x, ordered=True))(1.0).effects)
        == "frozenset({OrderedDebug})"
    )


@pytest.mark.parametrize(
    "value,text",
    [
        (jnp.inf, "inf:f32[]"),
        (-jnp.inf, "-inf:f32[]"),
        (jnp.nan, "nan:f32[]"),
        (-0.0, "-0.0:f32[]"),
        (2.0, "2.0:f32[]"),
    ],
)
def test_numbers_in_programs(value, text):
    assert f"mul a {text}" in str(weft.make_jaxpr(lambda x: x * value)(jnp.float32(1)))


def test_programs_of_one_name_are_numbered():
    def adding(k):
        def f(x):
            for _ in range(11):
                x = x + k
            return x

        return weft.jit(f)

    text = str(weft.make_jaxpr(lambda x: [adding(k)(x) for k in range(1, 5)])(1.0))
    assert re.findall(r"let (f\d*) = ", text) == re.findall(r"jaxpr=(f\d*)\]", text) == ["f", "f1", "f2", "f3"]
