"""Products by tiles in registers over odd shapes, tiles, transposes, dtypes and epilogues, against NumPy."""

import pytest
import test_gemm
import test_windows
from weft_wasm.ir import nodes
from weft_wasm.ir.nodes import For
from weft_wasm.routines.register_tiles import ENOUGH, SIDES, tile_of, tiled_product, tiled_windows

TILES = [*SIDES, (1, 3), (3, 1), (5, 7)]
SHAPES = [s for s in test_gemm.SHAPES if 0 < s[0] * s[1] * s[2] < 1_200_000]


@pytest.mark.parametrize("tile", TILES, ids=str)
@pytest.mark.parametrize("shape", [(4, 4, 0), (0, 4, 4), (1, 1, 1), (5, 7, 9), (33, 17, 65), (24, 24, 30)], ids=str)
def test_tiles(shape, tile):
    test_gemm.check(*shape, routine=tiled_product, tile=tile)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(shape):
    test_gemm.check(*shape, routine=tiled_product)


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_transposed_operands_batches_and_epilogues(ta, tb):
    epilogue = lambda bias, value: nodes.maximum(value + bias, 0.0)  # noqa: E731
    for tile in ((4, 4), (3, 2), None):
        test_gemm.check(33, 41, 20, ta=ta, tb=tb, batch=3, epilogue=epilogue, routine=tiled_product, tile=tile)


@pytest.mark.parametrize("dtype", ["i32", "u8", "bool"])
def test_dtypes(dtype):
    test_gemm.check(29, 35, 41, dtype=dtype, routine=tiled_product, tile=(4, 4))


@pytest.mark.parametrize("tile", [*TILES, None], ids=str)
@pytest.mark.parametrize("case", test_windows.CASES)
def test_windows_of_an_array(case, tile):
    test_windows.check(case, routine=tiled_windows, tile=tile)
    test_windows.check(case, routine=tiled_windows, tile=tile, first=5)


@pytest.mark.parametrize("apart", [-1, 0, 1])
def test_rows_of_the_result_may_be_anywhere(apart):
    test_windows.check("ragged", first=4, apart=apart, routine=tiled_windows, tile=(3, 4))
    test_windows.check("groups", apart=apart, routine=tiled_windows, tile=(3, 2))


def points(s):
    return s.extent * points(s.body[0]) if type(s.body[0]) is For else s.extent


@pytest.mark.parametrize("m,n", [(512, 512), (100, 100), (40, 40), (16, 16), (3, 4096), (1, 4096), (4096, 1)])
def test_a_device_has_enough_to_do(m, n):
    """Smaller products have smaller tiles, and each result is in one of them."""
    height, width = tile_of(1, m, n)
    routine = tiled_product("matmul", m, n, 8, lambda b, i, k: nodes.f32(1), lambda b, k, j: nodes.f32(1), put)
    count = points(routine.kernels[0].body[0])
    assert count == -(-m // height) * -(-n // width) and (count >= ENOUGH or height * width == 1)


def put(b, i, j, value):
    return []
