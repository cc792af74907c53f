"""The functions of `weft_page`, which programs of the playground import: figures by the labels of their series."""

import importlib.util
import pathlib

import numpy as np
import pytest

from weft import plot

PATH = pathlib.Path(__file__).resolve().parents[2] / "web" / "python" / "weft_page.py"


@pytest.fixture
def page():
    spec = importlib.util.spec_from_file_location("weft_page", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def shown():
    """What is shown, by the title of its figure: the marks of the last description of each."""
    found = {}

    def renderer(name, spec, buffers, update):
        if "panels" in spec:
            marks = [mark for panel in spec["panels"] for mark in panel["marks"]]
            found[spec["title"]] = [(mark["kind"], mark["label"]) for mark in marks]

    plot.set_renderer(renderer)
    yield found
    plot.set_renderer(None)
    plot.flush()


def test_a_label_names_the_figure_and_the_series(page, shown):
    page.scatter([0, 1, 1], [3, 2, 1], label="wave: data")
    page.line([0, 1], [1, 2], label="wave: fit")
    page.line([0, 1], [1, 3], label="wave: fit")  # replaces the one before
    page.line([0, 1], [1, 2])
    page.image(np.ones((2, 2, 3)), label="picture")
    page.image([[1, 2]], label="picture")
    page.curve("loss", 0, 1.5)
    page.curve("loss", 1, 1.0)
    plot.flush()
    assert shown == {
        "wave": [("scatter", "data"), ("line", "fit")],
        "line": [("line", "")],
        "picture": [("image", "")],
        "loss": [("line", "")],
    }


def test_what_is_wrong_is_said(page, shown):
    with pytest.raises(ValueError, match="x has 2 numbers and y has 1"):
        page.line([1, 2], [1])
    with pytest.raises(ValueError, match="different shapes"):
        page.image([[1, 2], [3]])
