"""Examples of docstrings become cells that readers can run from anywhere on a page."""

import importlib.util
import pathlib

import pytest

pytest.importorskip("sphinx", reason="the documentation's tools are installed by `make site`")
SOURCE = pathlib.Path(__file__).parents[2] / "tools/site/weft_docs.py"


@pytest.fixture(scope="module")
def weft_docs():
    spec = importlib.util.spec_from_file_location("weft_docs", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_cell_ends_where_a_value_is_shown(weft_docs):
    text = ">>> import weft\n>>> x = 1\n>>> x\n1\n>>> for _ in range(2):\n...     print(x)\n1\n1\n>>> y = 2\n"
    assert list(weft_docs.examples(text)) == [
        ("import weft\nx = 1\nx", "1", False),
        ("for _ in range(2):\n    print(x)", "1\n1", False),
        ("y = 2", "", False),
    ]


def test_what_raises_is_left_out_of_what_later_cells_need(weft_docs):
    text = (
        ">>> import weft\n>>> weft.nothing  # doctest: +IGNORE_EXCEPTION_DETAIL\n"
        "Traceback (most recent call last):\nAttributeError: …\n>>> weft.grad\n<function grad>\n"
    )
    assert list(weft_docs.examples(text)) == [
        ("import weft\nweft.nothing", "AttributeError", True),
        ("import weft\nweft.grad", "<function grad>", False),
    ]
