"""Figures as matplotlib draws them, read back from its axes."""

import subprocess
import sys

import numpy as np
import pytest

import weft.numpy as jnp
from weft import plot

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib.figure import Figure as Drawn  # noqa: E402

from weft.plot import native  # noqa: E402


@pytest.fixture(autouse=True)
def _no_current_figure():
    yield
    plot.flush()


def axes(figure):
    return native.draw(figure, Drawn()).axes


def test_lines_in_the_given_order_with_gaps():
    t = np.linspace(0, 2 * np.pi, 30)
    figure = plot.line(np.cos(t), np.sin(t), label="circle", color="#4060c0", width=4, title="round", xlabel="x")
    figure.line([0, 1, 2], [1.0, np.nan, 3.0], style="dashed")
    (drawn,) = axes(figure)
    circle, gap = drawn.lines
    np.testing.assert_allclose(circle.get_xydata(), np.c_[np.cos(t), np.sin(t)])
    assert circle.get_color() == "#4060c0" and circle.get_linewidth() == 3
    assert np.isnan(gap.get_ydata()[1]) and gap.get_linestyle() == "--"
    assert gap.get_markevery() == [0, 2]  # each is alone
    assert (drawn.get_title(), drawn.get_xlabel()) == ("round", "x")
    assert [text.get_text() for text in drawn.get_legend().get_texts()] == ["circle"]


def test_equal_x_and_colours_by_number():
    (drawn, bar) = axes(plot.scatter([0, 1, 1, 1], [0, 1, 5, 9], color=[1, 2, 3, 4], vmax=8))
    (points,) = drawn.collections
    assert points.get_offsets().tolist() == [[0, 0], [1, 1], [1, 5], [1, 9]]
    assert points.get_array().tolist() == [1, 2, 3, 4] and points.get_clim() == (1, 8)
    assert bar.get_label() == "<colorbar>"


def test_the_y_axis_covers_all_series():
    (drawn,) = axes(plot.line([0, 1], [0, 1]).line([0, 1], [0, 100]))
    low, high = drawn.get_ylim()
    assert low <= 0 and high >= 100


def test_images_keep_row_0_on_top():
    (drawn, _) = axes(plot.image([[0, 1], [2, 3], [4, 5]]))
    (image,) = drawn.images
    assert image.get_array().tolist() == [[0, 1], [2, 3], [4, 5]]
    assert drawn.get_ylim() == (2.5, -0.5)
    plot.flush()
    (drawn, _) = axes(plot.image([[0, 1], [2, 3]], origin="lower"))
    assert drawn.get_ylim() == (-0.5, 1.5)
    plot.flush()
    (drawn,) = axes(plot.image(jnp.array([[[2.0, -1.0, 0.5]]])))
    assert drawn.images[0].get_array().tolist() == [[[1.0, 0.0, 0.5]]]


def test_bars_stand_side_by_side():
    (drawn,) = axes(plot.bar(["a", "b"], {"new": [1, 2], "old": [3, 4]}))
    lefts = [[round(bar.get_x(), 9) for bar in group] for group in drawn.containers]
    assert lefts == [[-0.4, 0.6], [0.0, 1.0]]
    assert [tick.get_text() for tick in drawn.get_xticklabels()] == ["a", "b"]


def test_a_histogram():
    (drawn,) = axes(plot.histogram([0, 1, 1, 2], bins=2))
    (steps,) = drawn.patches
    values, edges, _ = steps.get_data()
    assert values.tolist() == [1, 3] and edges.tolist() == [0, 1, 2]


def test_a_band_has_the_colour_of_its_line():
    (drawn,) = axes(plot.line([0, 1], [1, 2], label="a", color="#ff0000").band([0, 1], [0, 1], [2, 3], label="a"))
    assert drawn.collections[0].get_facecolor()[0].tolist() == [1, 0, 0, 0.25]
    assert len(drawn.get_legend().get_texts()) == 1


def test_heat_maps_with_names():
    (drawn, _) = axes(plot.heatmap([[1, 2], [3, 4]], ["a", "b"], ["c", "d"], annotate=True))
    assert drawn.get_ylim() == (1.5, -0.5)
    assert [text.get_text() for text in drawn.texts] == ["1", "2", "3", "4"]
    assert [tick.get_text() for tick in drawn.get_yticklabels()] == ["c", "d"]


@pytest.mark.parametrize("filled", [False, True])
def test_contours(filled):
    a = np.linspace(-2, 2, 41)
    (drawn, _) = axes(plot.contour(a, a, a[:, None] ** 2 + a**2, levels=[1, 2], filled=filled))
    lines = drawn.collections[-1]
    assert lines.levels.tolist() == [1, 2]
    radius = np.hypot(*lines.get_paths()[0].vertices.T)
    np.testing.assert_allclose(radius, 1, atol=0.01)


def test_arrows():
    (drawn,) = axes(plot.quiver([0, 1], [0, 0], [1, 0], [0, 2], scale=2))
    (arrows,) = drawn.collections
    assert arrows.U.tolist() == [1, 0] and arrows.V.tolist() == [0, 2] and arrows.scale == 2
    assert drawn.get_ylim()[1] >= 1


def test_log_axes_panels_and_live_curves():
    figure = plot.figure(columns=2, title="training")
    left, right = figure.panel(yscale="log", ylim=(1e-3, 10)), figure.panel(title="right")
    for step in range(4):
        figure.curve("loss", step, 10.0**-step)
    first, second = axes(figure)
    assert first.get_yscale() == "log" and first.get_ylim() == (1e-3, 10)
    assert second.lines[0].get_ydata().tolist() == [1, 0.1, 0.01, 0.001]
    assert left.marks == [] and len(right.marks) == 1


@pytest.mark.parametrize(
    "draw, panels",
    [(lambda: plot.line([]), 1), (lambda: plot.line([3]), 1), (lambda: plot.contour([[1.0]]), 1), (plot.figure, 0)],
)
def test_little_to_draw(draw, panels):
    assert len(axes(draw())) == panels


@pytest.mark.parametrize("ending, start", [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_files(tmp_path, ending, start):
    path = tmp_path / f"figure.{ending}"
    plot.line([1, 3, 2]).save(path)
    assert path.read_bytes().startswith(start)


def test_notebooks_get_a_picture():
    figure = plot.line([1, 3, 2])
    data = figure._repr_mimebundle_()
    assert set(data) == {"text/plain", "image/png"} and data["image/png"].startswith(b"\x89PNG")
    data = figure._repr_mimebundle_(include={"image/svg+xml"})
    assert set(data) == {"image/svg+xml"} and "<svg" in data["image/svg+xml"]


def test_without_matplotlib_an_error_says_what_to_install():
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from weft import plot\n"
        "figure = plot.line([1, 2])\n"
        "assert set(figure._repr_mimebundle_()) == {'text/plain'}\n"
        "try: figure.save('a.png')\n"
        "except ImportError as error: print(error)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "needs matplotlib" in ran.stdout and "pip install matplotlib" in ran.stdout, ran.stderr
