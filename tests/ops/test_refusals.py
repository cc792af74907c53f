"""Operands that primitives don't take are refused when a program is traced, not when it runs."""

import numpy as np
import pytest
import weft
import weft.numpy as jnp
from weft import lax
from weft.primitives.sort import top_k_p


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_complex_numbers_have_no_order(name):
    with pytest.raises(TypeError, match=f"{name} does not accept dtype complex64"):
        weft.make_jaxpr(lambda x: getattr(lax, name)(x, 0, np.int32))(jnp.ones(3, "complex64"))


def test_nor_has_one_of_them_the_largest():
    """A program from elsewhere may ask for it: XLA could not compile that."""
    with pytest.raises(TypeError, match="top_k does not accept dtype complex64"):
        weft.make_jaxpr(lambda x: top_k_p.bind(x, k=2, axis=0))(jnp.ones(3, "complex64"))


@pytest.mark.parametrize("decompose", [lax.linalg.cholesky, lax.linalg.eig, lax.linalg.eigh, lax.linalg.schur])
def test_decompositions_of_square_matrices(decompose):
    for shape in ((2, 3), (3, 2), (4, 2, 3)):
        with pytest.raises((TypeError, ValueError), match=r"square|\(\.\.\., n, n\)|equal"):
            weft.make_jaxpr(decompose)(jnp.ones(shape))


@pytest.mark.parametrize(
    "decompose", [lax.linalg.cholesky, lax.linalg.qr, lax.linalg.lu, lax.linalg.svd, lax.linalg.eigh]
)
def test_decompositions_of_what_is_no_matrix_of_numbers(decompose):
    with pytest.raises((TypeError, ValueError)):
        weft.make_jaxpr(decompose)(jnp.ones(3))
    with pytest.raises(NotImplementedError, match="not computed in bfloat16"):
        weft.make_jaxpr(decompose)(jnp.ones((3, 3), "bfloat16"))


@pytest.mark.parametrize("decompose", [lax.linalg.qr, lax.linalg.lu, lax.linalg.svd, lax.linalg.eig, lax.linalg.schur])
def test_decompositions_of_integers(decompose):
    with pytest.raises(TypeError, match="does not accept dtype int32"):
        weft.make_jaxpr(decompose)(jnp.ones((3, 3), "int32"))


@pytest.mark.parametrize(
    "dims, message", [((2,), r"\(2,\) must be distinct and lie in 0 … 1"), ((-1,), r"\(-1,\) must be distinct")]
)
def test_batching_dimensions_of_indices_that_a_gather_has_not(dims, message):
    numbers = lax.GatherDimensionNumbers((2,), (), (1,), (0,), dims)
    gather = lambda x, i: lax.gather(x, i, numbers, (1, 1))
    with pytest.raises(TypeError, match="start_indices_batching_dims " + message):
        weft.make_jaxpr(gather)(jnp.ones((3, 4)), jnp.zeros((3, 2, 1), "int32"))


@pytest.mark.parametrize(
    "numbers, message",
    [
        (((3,), (), (1,), (0,), (0,)), r"update_window_dims \(3,\) must be distinct and lie in 0 … 2"),
        (((2,), (-2,), (1,), (), ()), r"inserted_window_dims \(-2,\) must be distinct and lie in 0 … 1"),
        (((2,), (), (2,), (0,), (0,)), r"scatter_dims_to_operand_dims \(2,\) must be distinct and lie in 0 … 1"),
        (((2,), (), (1,), (0,), (2,)), r"scatter_indices_batching_dims \(2,\) must be distinct and lie in 0 … 1"),
        (((2,), (), (1,), (0,), (-3,)), r"scatter_indices_batching_dims \(-3,\) must be distinct and lie in 0 … 1"),
    ],
)
def test_dimensions_that_the_arrays_of_a_scatter_have_not(numbers, message):
    scatter = lambda x, i, u: lax.scatter(x, i, u, lax.ScatterDimensionNumbers(*numbers))
    with pytest.raises(TypeError, match="scatter: " + message):
        weft.make_jaxpr(scatter)(jnp.ones((3, 4)), jnp.zeros((3, 2, 1), "int32"), jnp.ones((3, 2, 1)))


def test_functions_that_are_not_linear_are_not_transposed():
    with pytest.raises(NotImplementedError, match=r"^sin is not linear, so it can't be transposed\. weft\.linear_tr"):
        weft.linear_transpose(jnp.sin, np.float32(1))(np.float32(1))


@pytest.mark.parametrize(
    "numbers,message",
    [
        ((([7], [1]), ([], [])), r"lhs contracting and batch dimensions \(7,\) are out of range for shape \(5, 3\)"),
        ((([1], [9]), ([], [])), r"rhs contracting and batch dimensions \(9,\) are out of range for shape \(2, 3, 4\)"),
        ((([1], [1]), ([4], [0])), r"lhs contracting and batch dimensions \(1, 4\) are out of range"),
    ],
)
def test_dimensions_that_the_factors_of_a_product_of_groups_have_not(numbers, message):
    numbers = lax.RaggedDotDimensionNumbers(numbers, [0], [0])
    with pytest.raises(TypeError, match=message):
        weft.make_jaxpr(lambda x, y, n: lax.ragged_dot_general(x, y, n, numbers))(
            jnp.ones((5, 3)), jnp.ones((2, 3, 4)), jnp.array([2, 3])
        )
