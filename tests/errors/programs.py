"""Programs that go wrong, one for each error that users meet. A program's name is its entry in messages.json."""

import numpy as np

import weft
import weft.numpy as jnp
from weft import lax
from weft.experimental import checkify

F = jnp.ones(3)
PROGRAMS: dict = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


# jit ------------------------------------------------------------------------------------------------------------------


@program
def jit_if_on_a_traced_value():
    def absolute(x):
        return x if x > 0 else -x

    weft.jit(absolute)(1.0)


@program
def jit_while_on_a_computed_value():
    def halve(x):
        y = x * 2
        while y > 1:
            y = y / 2
        return y

    weft.jit(halve)(8.0)


@program
def jit_range_of_a_traced_value():
    weft.jit(lambda n: [i for i in range(n)])(3)


@program
def jit_traced_index_of_a_list():
    weft.jit(lambda i: [10, 20, 30][i])(1)


@program
def jit_traced_shape():
    weft.jit(lambda n: jnp.zeros(n))(3)


@program
def jit_float_of_a_traced_value():
    weft.jit(lambda p: float(p["w"][0]))({"w": [1.0]})


@program
def jit_int_of_a_traced_value():
    weft.jit(lambda x: int(x))(1.0)


@program
def jit_numpy_function_of_a_traced_value():
    weft.jit(lambda x: np.sin(x))(1.0)


@program
def jit_argument_that_is_no_array():
    weft.jit(lambda params, name: params)({"w": [1.0, "two"]}, 3)


@program
def jit_result_that_is_no_array():
    weft.jit(lambda x: {"out": (x, "text")})(1.0)


@program
def jit_static_argument_that_does_not_hash():
    weft.jit(lambda x, sizes: x, static_argnums=1)(1.0, [3, 4])


@program
def jit_static_argnums_out_of_range():
    weft.jit(lambda x: x, static_argnums=2)


@program
def jit_static_argnames_unknown():
    weft.jit(lambda x: x, static_argnames="sizes")


@program
def jit_of_no_function():
    weft.jit(3)


@program
def jit_of_a_generator():
    def numbers(x):
        yield x

    weft.jit(numbers)


@program
def jit_leaked_value():
    kept = []
    weft.jit(lambda x: kept.append(x * 2))(1.0)
    kept[0] + 1


@program
def jit_leak_that_is_looked_for():
    kept = []
    with weft.checking_leaks():
        weft.jit(lambda x: kept.append(x * 2))(1.0)


@program
def jit_donated_argument_used_again():
    x = jnp.arange(3.0)
    weft.jit(lambda x: x + 1, donate_argnums=0)(x)
    weft.jit(lambda p: p["x"] + p["y"])({"y": F, "x": x})


@program
def jit_without_tracing():
    f = weft.jit(lambda x: x + 1)
    with weft.no_tracing():
        f(1.0)


# ahead of time --------------------------------------------------------------------------------------------------------


@program
def aot_called_with_another_type():
    weft.jit(lambda p: p["w"] * 2).lower({"w": F}).compile()({"w": jnp.ones(4)})


@program
def aot_called_with_another_structure():
    weft.jit(lambda p: p["w"] * 2).lower({"w": F}).compile()({"v": F})


@program
def aot_under_a_transformation():
    compiled = weft.jit(lambda x: x * 2).lower(1.0).compile()
    weft.grad(lambda x: compiled(x))(1.0)


@program
def aot_unknown_dialect():
    weft.jit(lambda x: x * 2).lower(1.0).as_text("fortran")


# derivatives ----------------------------------------------------------------------------------------------------------


@program
def grad_of_an_array():
    weft.grad(lambda x: x * 2)(F)


@program
def grad_of_an_integer_argument():
    weft.grad(lambda x: x * 2.0)(3)


@program
def grad_of_a_complex_result():
    weft.grad(lambda x: x * 1j)(1.0)


@program
def grad_of_a_string():
    weft.grad(lambda x: 1.0)("text")


@program
def grad_argnums_out_of_range():
    weft.grad(lambda x: x, argnums=2)(1.0)


@program
def grad_has_aux_without_a_pair():
    weft.grad(lambda x: x, has_aux=True)(1.0)


@program
def grad_of_a_result_that_is_a_tuple():
    weft.grad(lambda x: (x, x))(1.0)


@program
def jvp_tangent_of_another_shape():
    weft.jvp(lambda x: x * 2, (F,), (jnp.ones(4),))


@program
def jvp_tangent_of_another_dtype():
    weft.jvp(lambda x: x * 2, (F,), (jnp.ones(3, jnp.int32),))


@program
def jvp_tangent_of_another_structure():
    weft.jvp(lambda p: p["a"], ({"a": 1.0},), ({"b": 1.0},))


@program
def vjp_cotangent_of_another_shape():
    _, pull = weft.vjp(lambda x: x * 2, F)
    pull(jnp.ones(4))


@program
def vjp_cotangent_of_another_structure():
    _, pull = weft.vjp(lambda x: {"y": x}, F)
    pull((F,))


@program
def grad_of_a_while_loop():
    weft.grad(lambda x: lax.while_loop(lambda v: v < 10, lambda v: v * 2, x))(1.0)


@program
def jacfwd_of_an_integer_argument():
    weft.jacfwd(lambda x: x * 2)(3)


# custom rules ---------------------------------------------------------------------------------------------------------


@program
def custom_jvp_without_a_rule():
    @weft.custom_jvp
    def square(x):
        return x * x

    weft.grad(square)(1.0)


@program
def custom_vjp_without_rules():
    @weft.custom_vjp
    def square(x):
        return x * x

    weft.grad(square)(1.0)


@program
def custom_jvp_tangent_of_another_shape():
    @weft.custom_jvp
    def square(x):
        return x * x

    square.defjvp(lambda primals, tangents: (square(*primals), jnp.ones(2)))
    weft.jvp(square, (F,), (F,))


@program
def custom_jvp_rule_that_returns_no_pair():
    @weft.custom_jvp
    def square(x):
        return x * x

    square.defjvp(lambda primals, tangents: square(*primals))
    weft.jvp(square, (F,), (F,))


@program
def custom_vjp_cotangents_of_another_number():
    @weft.custom_vjp
    def scale(x, y):
        return x * y

    scale.defvjp(lambda x, y: (x * y, (x, y)), lambda res, g: (g * res[1],))
    weft.grad(scale)(1.0, 2.0)


@program
def custom_vjp_cotangent_of_another_shape():
    @weft.custom_vjp
    def total(x):
        return jnp.sum(x)

    total.defvjp(lambda x: (jnp.sum(x), None), lambda res, g: (g,))
    weft.grad(total)(F)


@program
def custom_vjp_forward_without_residuals():
    @weft.custom_vjp
    def square(x):
        return x * x

    square.defvjp(lambda x: x * x, lambda res, g: (g,))
    weft.grad(square)(1.0)


# vmap -----------------------------------------------------------------------------------------------------------------


@program
def vmap_of_different_sizes():
    weft.vmap(lambda x, p: x + p["w"])(F, {"w": jnp.ones(4)})


@program
def vmap_of_a_scalar():
    weft.vmap(lambda x: x)(1.0)


@program
def vmap_axis_out_of_range():
    weft.vmap(lambda x: x, in_axes=2)(jnp.ones((2, 3)))


@program
def vmap_in_axes_of_another_structure():
    weft.vmap(lambda p: p["a"], in_axes=({"b": 0},))({"a": F})


@program
def vmap_nothing_mapped():
    weft.vmap(lambda x: x, in_axes=None)(F)


@program
def vmap_out_axes_none_for_a_batched_result():
    weft.vmap(lambda x: x, out_axes=None)(F)


@program
def vmap_unknown_axis_name():
    weft.vmap(lambda x: lax.psum(x, "j"), axis_name="i")(F)


# control flow ---------------------------------------------------------------------------------------------------------


@program
def scan_carry_of_another_type():
    lax.scan(lambda c, x: ({"sum": c["sum"] + x, "n": c["n"] + F}, x), {"sum": 0.0, "n": 0}, F)


@program
def scan_carry_of_another_structure():
    lax.scan(lambda c, x: ((c, x), x), 0.0, F)


@program
def scan_body_that_returns_no_pair():
    lax.scan(lambda c, x: c + x, 0.0, F)


@program
def scan_of_different_lengths():
    lax.scan(lambda c, x: (c, x[0]), 0.0, (F, jnp.ones(4)))


@program
def scan_length_that_disagrees():
    lax.scan(lambda c, x: (c, x), 0.0, F, length=5)


@program
def while_condition_that_is_no_bool():
    lax.while_loop(lambda v: v, lambda v: v - 1.0, 3.0)


@program
def while_carry_of_another_type():
    lax.while_loop(lambda v: v < 10, lambda v: jnp.stack([v, v]), 1.0)


@program
def cond_branches_of_different_types():
    lax.cond(True, lambda x: x, lambda x: x.astype(jnp.int32), F)


@program
def cond_branches_of_different_structures():
    lax.cond(True, lambda x: {"a": x}, lambda x: (x, x), F)


@program
def cond_predicate_that_is_no_scalar():
    lax.cond(F > 0, lambda x: x, lambda x: x, F)


@program
def switch_without_branches():
    lax.switch(0, [], F)


@program
def fori_loop_carry_of_another_shape():
    lax.fori_loop(0, 3, lambda i, x: x[:2], F)


# shapes, dtypes, axes ------------------------------------------------------------------------------------------------


@program
def lax_shapes_that_differ():
    lax.add(F, jnp.ones(4))


@program
def lax_dtypes_that_differ():
    lax.add(F, jnp.ones(3, jnp.int32))


@program
def numpy_shapes_that_do_not_broadcast():
    F + jnp.ones(4)


@program
def numpy_matmul_of_unfitting_shapes():
    jnp.ones((2, 3)) @ jnp.ones((2, 3))


@program
def numpy_reshape_of_another_size():
    jnp.reshape(F, (2, 2))


@program
def numpy_axis_out_of_range():
    jnp.sum(F, axis=1)


@program
def numpy_axis_twice():
    jnp.sum(jnp.ones((2, 3)), axis=(0, 0))


@program
def numpy_concatenate_of_unfitting_shapes():
    jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 4))], axis=0)


@program
def numpy_argument_that_is_a_list():
    jnp.sin([1.0, 2.0])


@program
def numpy_argument_that_is_a_string():
    jnp.sum("text")


@program
def numpy_unknown_dtype():
    jnp.zeros(3, "float33")


@program
def numpy_bool_of_an_array():
    bool(F > 0)


@program
def einsum_unfitting_sizes():
    jnp.einsum("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((4, 5)))


@program
def lax_conv_of_unfitting_channels():
    lax.conv(jnp.ones((1, 3, 8, 8)), jnp.ones((4, 2, 3, 3)), (1, 1), "SAME")


@program
def strict_dtype_promotion():
    with weft.numpy_dtype_promotion("strict"):
        F + jnp.arange(3)


@program
def rank_promotion_raises():
    with weft.numpy_rank_promotion("raise"):
        jnp.ones((2, 3)) + F


# indexing -------------------------------------------------------------------------------------------------------------


@program
def indexing_with_a_traced_mask():
    weft.jit(lambda x: x[x > 0])(F)


@program
def indexing_with_too_many_indices():
    F[0, 0]


@program
def indexing_with_a_float():
    F[1.5]


@program
def indexing_with_a_list():
    F[[0, 1]]


@program
def assigning_to_an_element():
    F[0] = 2.0


@program
def slicing_with_a_traced_bound():
    weft.jit(lambda x, n: x[:n])(F, 2)


@program
def setting_values_of_another_shape():
    F.at[:2].set(jnp.ones(3))


# random ---------------------------------------------------------------------------------------------------------------


@program
def random_with_a_seed_instead_of_a_key():
    weft.random.normal(0, (3,))


@program
def random_shape_that_is_no_tuple():
    weft.random.normal(weft.random.key(0), (2.5,))


@program
def random_key_in_arithmetic():
    weft.random.key(0) + 1


@program
def random_unknown_generator():
    weft.random.key(0, impl="dice")


@program
def random_split_of_a_batch_of_keys():
    weft.random.split(weft.random.split(weft.random.key(0), 3))


# pytrees --------------------------------------------------------------------------------------------------------------


@program
def tree_map_of_different_structures():
    weft.tree.map(lambda x, y: x, {"a": 1, "b": [2]}, {"a": 1, "b": (2,)})


@program
def tree_unflatten_with_too_few_leaves():
    weft.tree.unflatten(weft.tree.structure([1, 2, 3]), [1, 2])


@program
def tree_node_registered_twice():
    class Pair:
        pass

    for _ in range(2):
        weft.tree_util.register_pytree_node(Pair, lambda p: ((), None), lambda aux, children: Pair())


# configuration, devices, transfers -----------------------------------------------------------------------------------


@program
def config_unknown_option():
    weft.config.update("jax_enable_x65", True)


@program
def config_value_that_is_not_allowed():
    weft.config.update("jax_numpy_rank_promotion", "sometimes")


@program
def config_value_of_another_type():
    weft.config.update("jax_enable_x64", "sometimes")


@program
def devices_of_an_unknown_platform():
    weft.devices("abacus")


@program
def device_put_of_a_string():
    weft.device_put({"a": "text"})


@program
def devices_that_differ():
    a, b = weft.device_put(F, weft.devices("cpu")[0]), weft.device_put(F, weft.devices("reference")[0])
    a + b


@program
def transfer_to_the_device_disallowed():
    with weft.transfer_guard("disallow"):
        jnp.sin(np.ones(3))


# effects and checks --------------------------------------------------------------------------------------------------


@program
def checkify_user_check():
    error, _ = checkify.checkify(lambda x: (checkify.check(x > 0, "x must be positive, got {x}", x=x), x)[1])(-1.0)
    error.throw()


@program
def checkify_check_without_checkify():
    weft.jit(lambda x: (checkify.check(x > 0, "x must be positive"), x)[1])(-1.0)


@program
def checkify_nan():
    error, _ = checkify.checkify(lambda x: jnp.log(x), errors=checkify.nan_checks)(-1.0)
    error.throw()


@program
def checkify_index_out_of_bounds():
    error, _ = checkify.checkify(lambda x, i: x[i], errors=checkify.index_checks)(F, 5)
    error.throw()


@program
def debug_print_of_an_f_string():
    weft.debug.print(f"{F[0]}", x=F)


@program
def pure_callback_of_another_shape():
    weft.pure_callback(lambda x: np.ones(4, np.float32), weft.ShapeDtypeStruct((3,), np.float32), F)


@program
def nan_in_a_jitted_function():
    with weft.debug_nans():
        weft.jit(lambda x: jnp.log(x) * 2)(-1.0)
