"""Tangents and cotangents have the types of what they belong to: a dtype, a shape or a structure of another kind is
refused, not converted.
"""

import numpy as np
import pytest

import weft
import weft.numpy as jnp

FLOAT0 = weft.dtypes.float0
NOTHING = np.zeros((), FLOAT0)
PRIMALS = {
    "float32": jnp.float32(2),
    "float16": jnp.float16(2),
    "complex64": jnp.complex64(2),
    "int32": jnp.int32(2),
    "bool": jnp.bool_(True),
    "2.0": 2.0,
    "3": 3,
    "key": weft.random.key(0),
}
# dtypes, where other than the primal's
TANGENT = {"2.0": "float32", "3": FLOAT0, "int32": FLOAT0, "bool": FLOAT0, "key": FLOAT0}
VALUES = [
    1,
    1.0,
    True,
    1j,
    jnp.int32(1),
    np.int32(1),
    jnp.float32(1),
    np.float64(1),
    jnp.float16(1),
    jnp.bfloat16(1),
    jnp.complex64(1),
    jnp.bool_(True),
    jnp.asarray(1.0),
    NOTHING,
    weft.random.key(1),
]
WRONG_SHAPE = {name: np.zeros((3,), TANGENT.get(name, name)) for name in PRIMALS}


def dtype_of(x):
    if getattr(x, "dtype", None) == FLOAT0:
        return FLOAT0
    return (
        {"bool": jnp.bool_, "int": jnp.int32, "float": jnp.float32, "complex": jnp.complex64}[type(x).__name__]
        if isinstance(x, (bool, int, float, complex)) and not isinstance(x, np.generic)
        else weft.eval_shape(lambda: x).dtype
    )


def right(name):
    """A tangent of the type that a primal's has."""
    return NOTHING if TANGENT.get(name, name) == FLOAT0 else jnp.ones((), TANGENT.get(name, name))


def fits(name, value):
    return dtype_of(value) == TANGENT.get(name, name)


def identity(x):
    return x


def with_tangent(value):
    """The identity by a rule that gives `value` as the tangent of its result."""
    fun = weft.custom_jvp(lambda x: x)
    fun.defjvp(lambda primals, tangents: (primals[0], value))
    return fun


# name: (a function of a primal's name and a tangent, the error for a dtype of another kind)
FORWARD = {
    "jvp": (
        lambda name, t: weft.jvp(identity, (PRIMALS[name],), (t,)),
        TypeError,
        "primal and tangent arguments to jvp do not match; dtypes must be equal",
    ),
    "jvp in jit": (
        lambda name, t: weft.jit(lambda x: weft.jvp(identity, (x,), (t,)))(PRIMALS[name]),
        TypeError,
        "primal and tangent arguments to jvp do not match",
    ),
    "linearize": (
        lambda name, t: weft.linearize(identity, PRIMALS[name])[1](t),
        ValueError,
        "linearized function called on tangent values inconsistent",
    ),
    "custom_jvp": (
        lambda name, t: weft.jvp(with_tangent(t), (PRIMALS[name],), (right(name),)),
        TypeError,
        "must produce primal and tangent outputs with corresponding",
    ),
    "custom_jvp in jit": (
        lambda name, t: weft.jvp(weft.jit(with_tangent(t)), (PRIMALS[name],), (right(name),)),
        TypeError,
        "must produce primal and tangent outputs",
    ),
    "custom_jvp in vmap": (
        lambda name, t: weft.vmap(lambda _: weft.jvp(with_tangent(t), (PRIMALS[name],), (right(name),)))(jnp.ones(2)),
        TypeError,
        "must produce primal and tangent outputs",
    ),
}


# along nothing, rules are not asked
CASES = [
    (name, way)
    for way in FORWARD
    for name in PRIMALS
    if not way.startswith("custom_jvp") or TANGENT.get(name) != FLOAT0
]


@pytest.mark.parametrize("name,way", CASES)
def test_dtypes_of_tangents(name, way):
    run, error, message = FORWARD[way]
    accepted = 0
    for value in VALUES:
        if fits(name, value):
            run(name, value)
            accepted += 1
        else:
            with pytest.raises(error, match=message):
                run(name, value)
    assert accepted == {"float32": 4, "2.0": 4, "complex64": 2}.get(name, 1)


@pytest.mark.parametrize("name,way", CASES)
def test_shapes_of_tangents(name, way):
    run, error, _ = FORWARD[way]
    with pytest.raises(ValueError if way.startswith("jvp") else error, match="shape|inconsistent"):
        run(name, WRONG_SHAPE[name])


@pytest.mark.parametrize("name", PRIMALS)
def test_cotangents(name):
    """Those of integers say nothing, so any will do that has their shape."""
    _, pull = weft.vjp(identity, PRIMALS[name])
    for value in VALUES:
        if fits(name, value) or TANGENT.get(name) == FLOAT0:
            assert weft.tree.leaves(pull(value))[0].dtype == TANGENT.get(name, name)
        else:
            with pytest.raises(ValueError, match="takes cotangents of the types of the results"):
                pull(value)
    with pytest.raises(ValueError, match="takes cotangents of the types of the results"):
        pull(WRONG_SHAPE[name])
    with pytest.raises(TypeError, match="not an array or a number"):
        pull("one")


def test_linear_transposes():
    for name in ("float32", "float16", "complex64", "int32"):
        transposed = weft.linear_transpose(identity, PRIMALS[name])
        for value in VALUES:
            if dtype_of(value) == name:
                assert transposed(value)[0].dtype == name
            else:
                with pytest.raises(TypeError, match="cotangent type does not match function output"):
                    transposed(value)
    for fun, argument in (
        (identity, True),
        (identity, weft.random.key(0)),
        (lambda x: x.astype(int), 1.0),
        (lambda x: x.astype(float), jnp.int32(1)),
    ):
        with pytest.raises(
            TypeError,
            match=(
                "linear_transpose takes functions from floats and complex numbers to such, or from integers to integers"
            ),
        ):
            weft.linear_transpose(fun, argument)(1)


@pytest.mark.parametrize(
    "tangents", [(NOTHING,), [(1.0,)], ((1.0, 1.0),), ((),), ({"a": 1.0},), (None,), [1.0], (1.0,), ((1,),)]
)
def test_structures_of_tangents(tangents):
    with pytest.raises(
        TypeError, match="jvp takes a tangent for each primal, in the same tree structure|dtypes must be equal"
    ):
        weft.jvp(identity, ((2.0,),), tangents)


# what a rule gives instead of a float32 scalar
OTHER_RESULTS = {
    "a narrower dtype": lambda x: x.astype("float16"),
    "another shape": lambda x: jnp.stack([x, x]),
    "an integer": lambda x: x.astype(int),
    "a pair": lambda x: (x, x),
}


@pytest.mark.parametrize("what", OTHER_RESULTS)
def test_results_of_rules(what):
    """Where the function was traced, its rules must give what it gives: the program goes on with those types."""
    change = OTHER_RESULTS[what]
    forward, both = weft.custom_jvp(lambda x: x * 2), weft.custom_vjp(lambda x: x * 2)
    forward.defjvp(lambda primals, tangents: weft.jvp(change, primals, tangents))
    both.defvjp(lambda x: (change(x), None), lambda _, ct: (1.0,))
    with pytest.raises(TypeError, match=r"The jvp rule of .* gives results of types .* and .* itself \(float32\[\]\)"):
        weft.jvp(weft.jit(forward), (jnp.float32(1),), (jnp.float32(1),))
    with pytest.raises(TypeError, match=r"The jvp rule of .* gives results of types"):
        weft.jvp(weft.jit(weft.vmap(forward)), (jnp.ones(2),), (jnp.ones(2),))
    with pytest.raises(TypeError, match=r"The fwd rule of .* gives results of types"):
        weft.grad(lambda x: jnp.sum(weft.jit(both)(x)))(jnp.float32(1))


@pytest.mark.parametrize("wrap", [identity, weft.jit, lambda f: weft.vmap(f, axis_size=2, in_axes=None)])
@pytest.mark.parametrize(
    "given,message",
    [
        (
            lambda ct: np.zeros(3, FLOAT0),
            r"cotangent of type float0\[3\] for an argument of type f32\[\]; the shapes must be equal",
        ),
        (
            lambda ct: jnp.stack([ct, ct]),
            r"cotangent of type f32\[2\] for an argument of type f32\[\]; the shapes must be equal",
        ),
        (lambda ct: ct * 1j, r"cotangent of type c64\[\] for an argument of type f32\[\]; take its real part"),
        (lambda ct: "one", "gives a str as the cotangent of an argument of type float32"),
        (lambda ct: (ct,), "gives a cotangent of another structure than the argument's"),
    ],
)
def test_cotangents_of_rules(given, message, wrap):
    fun = weft.custom_vjp(lambda x: x * 1)
    fun.defvjp(lambda x: (x * 1, None), lambda _, ct: (given(ct),))
    with pytest.raises((TypeError, ValueError), match=message):
        wrap(weft.grad(fun))(jnp.float32(2))


def test_cotangents_of_other_floats_are_converted():
    fun = weft.custom_vjp(lambda x: x * 1)
    fun.defvjp(lambda x: (x * 1, None), lambda _, ct: ((ct * 3).astype("float16"),))
    assert weft.grad(fun)(jnp.float32(2)).dtype == "float32" and float(weft.grad(fun)(2.0)) == 3.0
