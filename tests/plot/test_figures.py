"""Figures as data: marks and axes from any container of numbers, and the errors for invalid arguments."""

import array
import json
import math
import os
import subprocess
import sys
import time
from typing import NamedTuple

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft import plot
from weft.plot import binning
from weft.plot.panels import MOST_POINTS


@pytest.fixture(autouse=True)
def _no_current_figure():
    plot.flush()  # an example in a docstring, tested in this process, may have left one
    yield
    plot.set_renderer(None)
    plot.flush()


def read(figure, panel=0):
    """The marks of a panel as a renderer sees them, with NumPy arrays for the references."""
    spec, buffers = figure.spec()
    json.dumps(spec)  # fit for it
    found = json.loads(json.dumps(spec))["panels"][panel]

    def values(entry):
        if isinstance(entry, dict) and "buffer" in entry:
            data = np.frombuffer(buffers[entry["buffer"]], entry["dtype"]).reshape(entry["shape"])
            return data
        return entry

    return {**found, "marks": [{name: values(v) for name, v in mark.items()} for mark in found["marks"]]}


def mark(figure):
    (only,) = read(figure)["marks"]
    return only


class Pair(NamedTuple):
    train: object
    test: object


@pytest.mark.parametrize(
    "given, dtype",
    [
        ([1, 2, 3], "float64"),
        ((1.0, 2, True + 2), "float64"),
        (range(1, 4), "float64"),
        (iter([1, 2, 3]), "float64"),
        (array.array("h", [1, 2, 3]), "int16"),
        (array.array("q", [1, 2, 3]), "float64"),
        (memoryview(bytes([1, 2, 3])), "uint8"),
        ([jnp.float32(1), jnp.float32(2), jnp.float32(3)], "float32"),
        ([1, jnp.float32(2), np.int8(3)], "float64"),
        (np.array([1, 2, 3]), "float64"),
        (np.array([1, 2, 3], ">f4"), "float32"),
        (np.array([0, 1, 0, 2, 0, 3], "i2")[1::2], "int16"),
        (np.array([1, 2, 3], object), "float64"),
        (np.float16([1, 2, 3]), "float32"),
        (jnp.array([1.0, 2.0, 3.0]), "float32"),
        (jnp.array([1, 2, 3], "bfloat16"), "float32"),
        (jnp.array([1, 2, 3], "uint8"), "uint8"),
    ],
    ids=lambda v: str(v) if isinstance(v, str) else type(v).__name__,
)
def test_numbers_of_all_kinds(given, dtype):
    found = mark(plot.line(given))
    assert found["y"].dtype == dtype
    assert found["y"].tolist() == [1, 2, 3]
    assert found["x"].tolist() == [0, 1, 2]


def test_none_and_masked_elements_are_gaps():
    for given in ([1, None, 3], np.ma.masked_array([1, 2, 3], [0, 1, 0])):
        first, gap, last = mark(plot.line(given))["y"].tolist()
        assert (first, last) == (1, 3) and math.isnan(gap)
        plot.flush()


def test_equal_x_are_all_kept():
    found = mark(plot.scatter([0, 1, 1, 1], [0, 1, 5, 9]))
    assert list(zip(found["x"], found["y"])) == [(0, 0), (1, 1), (1, 5), (1, 9)]


def test_the_order_of_points_is_kept():
    t = np.linspace(0, 2 * np.pi, 40)
    found = mark(plot.line(np.cos(t), np.sin(t)))
    np.testing.assert_array_equal(found["x"], np.cos(t))
    np.testing.assert_array_equal(found["y"], np.sin(t))


def test_what_is_not_finite_stays_where_it_is():
    given = [0.0, math.nan, math.inf, -math.inf, 4.0]
    np.testing.assert_array_equal(mark(plot.line(given))["y"], given)


def test_an_array_is_copied_when_it_is_drawn():
    values = np.arange(3.0)
    figure = plot.line(values)
    values[:] = 9
    assert mark(figure)["y"].tolist() == [0, 1, 2]


def test_several_series_in_one_call():
    labels = lambda figure: [m["label"] for m in read(figure)["marks"]]
    assert labels(plot.line([0, 1], {"b": [1, 2], "a": [3, 4]})) == ["b", "a"]
    plot.flush()
    assert labels(plot.line([0, 1], Pair([1, 2], {"x": [3, 4]}))) == ["train", "test.x"]
    plot.flush()
    figure = plot.line([0, 1, 2], [[1, 4], [2, 5], [3, 6]], label="w")
    assert labels(figure) == ["w 0", "w 1"]
    assert [m["y"].tolist() for m in read(figure)["marks"]] == [[1, 2, 3], [4, 5, 6]]
    spec, buffers = figure.spec()
    assert len(buffers) == 3 and spec["panels"][0]["marks"][1]["x"]["buffer"] == 0  # they share x


def test_drawing_functions_share_the_current_figure_until_it_is_shown():
    first = plot.line([1, 2])
    assert plot.scatter([1], [2]) is first
    assert plot.figure() is not first
    second = plot.line([1])
    plot.set_renderer(lambda *args: None)
    plot.show()
    assert plot.line([1]) is not second


def test_a_named_figure_is_found_again():
    first = plot.figure("wave", title="wave")
    plot.figure()
    assert plot.figure("wave") is first
    plot.flush()
    assert plot.figure("wave") is not first


def test_panels_and_axes():
    figure = plot.figure(title="both", columns=2, xlabel="t")
    figure.panel(title="left", yscale="log").line([1, 2])
    figure.panel(title="right", xlim=(0, 5), aspect="equal").line([1, 2])
    figure.scatter([1], [2], ylabel="m")
    spec, _ = figure.spec()
    assert (spec["title"], spec["columns"]) == ("both", 2)
    left, right = spec["panels"]
    assert left["x"] == {"label": "t", "scale": "linear", "limits": None}
    assert left["y"] == {"label": "", "scale": "log", "limits": None}
    assert right["x"]["limits"] == [0, 5] and right["y"]["label"] == "m" and right["aspect"] == "equal"
    assert [m["kind"] for m in right["marks"]] == ["line", "scatter"]


def test_bars():
    found = read(plot.bar(["a", "b"], {"new": [1, 2], "old": [3, 4]}))["marks"]
    assert [(m["label"], m["slot"], m["names"]) for m in found] == [
        ("new", [0, 2], ["a", "b"]),
        ("old", [1, 2], ["a", "b"]),
    ]
    plot.flush()
    found = mark(plot.bar({"x": 3.0, "y": jnp.float32(4)}))
    assert found["names"] == ["x", "y"] and found["height"].tolist() == [3, 4]
    plot.flush()
    assert mark(plot.bar([5, 6]))["x"].tolist() == [0, 1]


@pytest.mark.parametrize("bins", [1, 7, "auto", [-1, 0, 0.5, 3]])
def test_histograms_count_as_numpy_does(bins):
    values = np.random.default_rng(3).normal(size=500)
    found = mark(plot.histogram(np.r_[values, np.nan, np.inf], bins=bins))
    counts, edges = np.histogram(values, found["edges"] if bins == "auto" else bins)
    assert found["dropped"] == 2
    np.testing.assert_array_equal(found["heights"], counts)
    np.testing.assert_allclose(found["edges"], edges)
    assert bins != "auto" or len(np.histogram_bin_edges(values, "auto")) == pytest.approx(len(edges), abs=2)


def test_histograms_of_little():
    assert mark(plot.histogram([]))["heights"].sum() == 0
    plot.flush()
    assert mark(plot.histogram([2, 2, 2], bins=3))["heights"].tolist() == [0, 3, 0]
    plot.flush()
    found = mark(plot.histogram([0, 1, 2, 3], bins=2, density=True))
    assert np.sum(found["heights"] * np.diff(found["edges"])) == pytest.approx(1)


@pytest.mark.parametrize(
    "shape, dtype", [((4, 5), "float32"), ((4, 5, 3), "uint8"), ((4, 5, 4), "float32"), ((4, 5, 1), "float64")]
)
def test_images(shape, dtype):
    found = mark(plot.image(np.zeros(shape, dtype)))
    assert found["pixels"].dtype == dtype and found["pixels"].shape == (shape if shape[-1] != 1 else shape[:2])
    assert found["extent"] == [-0.5, 4.5, 3.5, -0.5]
    assert ("cmap" in found) == (len(shape) == 2 or shape[-1] == 1)


@pytest.mark.parametrize("make", [np.array, jnp.array, list])
def test_integers_of_rgb_are_bytes(make):
    assert mark(plot.image(make([[[-5, 100, 300]]])))["pixels"].tolist() == [[[0, 100, 255]]]


def test_row_0_is_on_top_unless_the_origin_is_lower():
    assert mark(plot.image([[0, 1], [2, 3]], origin="lower"))["extent"] == [-0.5, 1.5, -0.5, 1.5]
    plot.flush()
    assert mark(plot.image([[0, 1]], extent=(0, 10, 0, 1)))["extent"] == [0, 10, 0, 1]


def test_heat_maps():
    found = mark(plot.heatmap([[1, 2], [3, 4]], ["a", "b"], ["c", "d"]))
    assert found["xnames"] == ["a", "b"] and found["ynames"] == ["c", "d"] and found["origin"] == "upper"
    plot.flush()
    found = mark(plot.heatmap([[1, 2], [3, 4]], [0.5, 2], jnp.array([1.0, 10.0])))
    assert found["x"].tolist() == [0.5, 2] and found["origin"] == "lower" and found["xnames"] is None


def test_contours_take_what_meshgrid_gives():
    x, y = np.linspace(0, 1, 5), np.linspace(2, 3, 4)
    z = np.arange(20.0).reshape(4, 5)
    straight = mark(plot.contour(x, y, z))
    plot.flush()
    meshed = mark(plot.contour(*np.meshgrid(x, y), z))
    np.testing.assert_array_equal(straight["x"], meshed["x"])
    np.testing.assert_array_equal(straight["y"], meshed["y"])
    plot.flush()
    assert mark(plot.contour(z, levels=[3, 1]))["levels"].tolist() == [1, 3]
    plot.flush()
    assert mark(plot.contour(np.ones((3, 3))))["levels"].size == 0


@pytest.mark.parametrize("low, high", [(0, 1), (-3e-9, 8e-9), (1e6, 1e6 + 5), (-1, 1)])
def test_levels_are_round_and_lie_inside(low, high):
    found = binning.levels([low, high], 8)
    assert 4 <= len(found) <= 16 and all(low < level < high for level in found)


def test_arrows_of_a_grid():
    u = np.ones((2, 3))
    found = mark(plot.quiver([0, 1, 2], [10, 20], u, 0 * u))
    assert list(zip(found["x"], found["y"])) == [(0, 10), (1, 10), (2, 10), (0, 20), (1, 20), (2, 20)]
    assert found["scale"] == pytest.approx(1 / (2 / math.sqrt(6)))


# What is refused ------------------------------------------------------------------------------------------------------

REFUSED = [
    (lambda: plot.line([1, 2], [1]), ValueError, "plot.line: x has 2 numbers and y has 1 numbers"),
    (lambda: plot.line("abc"), TypeError, "plot.line: y must hold real numbers"),
    (lambda: plot.line(jnp.ones(3) * 1j), TypeError, "plot.line: y is complex"),
    (lambda: plot.line([[1], [1, 2]]), ValueError, "different shapes, (1,) and (2,)"),
    (lambda: plot.line([1, 2], np.ones((2, 2, 2))), ValueError, "its shape is (2, 2, 2)"),
    (lambda: plot.line([1], style="wavy"), ValueError, "style must be one of 'solid'"),
    (lambda: plot.line([1], color="url(x)"), ValueError, "color must be like"),
    (lambda: plot.line([1], width=0), ValueError, "width must be a finite number above 0"),
    (lambda: plot.line([1], titel="x"), TypeError, "no option 'titel'"),
    (lambda: plot.line([1], xscale="ln"), ValueError, "xscale must be one of 'linear', 'log'"),
    (lambda: plot.line([1], xlim=(1, 1)), ValueError, "xlim must be two different finite numbers"),
    (lambda: plot.line([1], xlim=3), TypeError, "xlim must be two numbers"),
    (lambda: plot.scatter([1, 2], [1, 2], color=[1]), ValueError, "x has 2 numbers and color has 1"),
    (lambda: plot.scatter([1], [1], color=[1], cmap="jet"), ValueError, "cmap must be one of 'viridis'"),
    (lambda: plot.bar(["a"], [1, 2]), ValueError, "x has 1 numbers and height has 2"),
    (lambda: plot.histogram([1], bins=0), ValueError, "bins must lie between 1 and"),
    (lambda: plot.histogram([1], bins=[2, 1]), ValueError, "at least two that increase"),
    (lambda: plot.histogram([1], bins="many"), ValueError, 'or "auto"'),
    (lambda: plot.image(np.ones((2, 2, 2))), ValueError, "(rows, columns, 3) for RGB"),
    (lambda: plot.image(np.ones(3)), ValueError, "it is (3,)"),
    (lambda: plot.heatmap(np.ones((2, 2)), ["a"]), ValueError, "x has 1 names for 2 columns"),
    (lambda: plot.heatmap(np.ones((2, 2)), [2, 1]), ValueError, "x must increase"),
    (lambda: plot.contour([1, 2], [1, 2]), ValueError, "takes z alone, or x, y and z"),
    (lambda: plot.contour([1, 2], [1], np.ones((2, 2))), ValueError, "one number for each of the 2 rows"),
    (lambda: plot.quiver([1], [1], [1, 2], [1, 2]), ValueError, "plot.quiver: x has 1 numbers"),
    (lambda: plot.curve("a", 1, [1, 2]), TypeError, "plot.curve: y must be one real number"),
    (lambda: plot.curve("a", 1, {"b": [1, 2]}), TypeError, "y[b] must be one number"),
    (lambda: plot.figure(columns=0), ValueError, "columns must lie between 1 and 12"),
    (lambda: plot.line([1]).save("a.gif"), ValueError, "saved as .png, .svg or .pdf"),
    (lambda: weft.jit(plot.line)(jnp.ones(3)), TypeError, "weft.debug.callback(weft.plot.line, …)"),
    (lambda: weft.jit(lambda v: plot.curve("a", 0, v))(1.0), TypeError, "weft.debug.callback(weft.plot.curve, …)"),
]


@pytest.mark.parametrize("refused, error, message", REFUSED, ids=[message for _, _, message in REFUSED])
def test_what_is_refused(refused, error, message):
    with pytest.raises(error) as caught:
        refused()
    assert message in str(caught.value)
    assert "test_figures.py" in str(caught.value)  # the user's own line
    assert len(str(caught.value).splitlines()) <= 10


def test_what_is_refused_draws_nothing():
    figure = plot.line([1, 2])
    with pytest.raises(ValueError):
        plot.scatter([1, 2], [1])
    assert len(read(figure)["marks"]) == 1


def test_a_traced_function_draws_by_a_callback():
    seen = []

    @weft.jit
    def f(x):
        weft.debug.callback(lambda v: seen.append(plot.line(v)), x)
        return x

    f(jnp.arange(3.0)).block_until_ready()
    weft.effects_barrier()
    assert mark(seen[0])["y"].tolist() == [0, 1, 2]


# Renderers ------------------------------------------------------------------------------------------------------------


class Seen(list):
    def __call__(self, name, spec, buffers, update):
        assert all(isinstance(buffer, bytes) for buffer in buffers)
        self.append((name, json.loads(json.dumps(spec)), buffers, update))


@pytest.fixture
def seen():
    found = Seen()
    plot.set_renderer(found)
    return found


def test_a_renderer_gets_a_figure_at_once_and_what_is_added_later(seen):
    plot.line([1, 2]).line([3, 4])
    assert [(len(spec["panels"][0]["marks"]), update) for _, spec, _, update in seen] == [(1, False)]
    plot.flush()
    assert [(len(spec["panels"][0]["marks"]), update) for _, spec, _, update in seen] == [(1, False), (2, True)]
    assert len({name for name, *_ in seen}) == 1
    plot.flush()
    assert len(seen) == 2


def test_a_figure_of_an_earlier_cell_is_shown_in_the_next_one_too(seen):
    figure = plot.line([1, 2])
    plot.flush()
    figure._ipython_display_()
    figure.line([3, 4]).show()
    plot.flush()
    first, second, third = seen
    assert first[0] != second[0] == third[0]
    assert [update for _, _, _, update in seen] == [False, False, True]


def test_a_live_curve_sends_only_new_points(seen, monkeypatch):
    now = iter(k / 100 for k in range(10**6))  # 100 points a second: some wait for the next frame
    monkeypatch.setattr("weft.plot.display.perf_counter", lambda: next(now))
    for step in range(50):
        plot.curve("loss", step, 1 / (step + 1), xlabel="step")
    first, *appended = seen
    assert first[3] is False and first[1]["title"] == "loss"
    points = [0]
    for name, spec, buffers, update in appended:
        assert update and name == first[0] and set(spec) == {"version", "append"}
        (part,) = spec["append"]
        points += np.frombuffer(buffers[part["x"]["buffer"]]).tolist()
    assert points == list(range(len(points))) and len(points) >= 49
    assert 20 <= len(appended) < 40  # not one for each point
    plot.flush()  # which sends the whole, so that it can be kept
    assert np.frombuffer(seen[-1][2][0]).tolist() == list(range(50))


def test_a_curve_without_end_keeps_every_so_many_points(seen):
    for step in range(3 * MOST_POINTS):
        plot.curve("loss", step, step)
    plot.flush()
    (last,) = seen[-1][1]["panels"][0]["marks"]
    assert last["every"] == 4
    x = np.frombuffer(seen[-1][2][last["x"]["buffer"]])
    assert len(x) <= MOST_POINTS and x.tolist() == list(range(0, 3 * MOST_POINTS, 4))
    assert len(seen) < 1000


def test_curves_by_name(seen):
    plot.curve("loss: train", 0, 1)
    plot.curve("loss: test", 0, {"a": 2, "b": 3})
    plot.curve("accuracy", 0, 0.5)
    plot.flush()
    last = {spec["title"]: spec for _, spec, _, _ in seen if "panels" in spec}
    labels = {title: [m["label"] for m in spec["panels"][0]["marks"]] for title, spec in last.items()}
    assert labels == {"loss": ["train", "test a", "test b"], "accuracy": [""]}


def test_a_figure_that_is_shown_again_and_again(seen, monkeypatch):
    waits = []  # until a screen can show another frame
    monkeypatch.setattr("weft.plot.display.sleep", waits.append)
    figure = plot.figure()
    for frame in range(20):
        figure.clear().image([[frame, 1]]).show()
    assert waits and all(0 < wait <= 1 / 60 for wait in waits)
    plot.flush()
    assert seen[0][3] is False and all(update for _, _, _, update in seen[1:])
    assert np.frombuffer(seen[-1][2][0])[0] == 19  # the last frame
    assert len(seen) in (20, 21)


def test_an_animation_shows_whole_frames(seen, monkeypatch):
    now = iter(k / 50 for k in range(10**6))
    monkeypatch.setattr("weft.plot.display.perf_counter", lambda: next(now))
    figure = plot.figure()
    for frame in range(20):
        figure.clear().line([frame, 1], label="a").line([frame, 2], label="b").remove("a").line([3, frame]).show()
    frames = [[m["label"] for m in spec["panels"][0]["marks"]] for _, spec, _, _ in seen[1:]]
    assert len(frames) in (19, 20) and all(labels == ["b", ""] for labels in frames)


def test_what_is_shown_is_shown_at_once(seen):
    plot.line([1]).line([2])
    plot.show()
    assert [len(spec["panels"][0]["marks"]) for _, spec, _, _ in seen] == [1, 2]


def test_a_page_that_waits_for_the_reader_shows_what_there_is(seen):
    for step in range(5):
        plot.curve("loss", step, step)
    plot.flush(end=False)
    plot.curve("loss", 5, 5)
    plot.flush()
    assert len({name for name, *_ in seen}) == 1
    assert np.frombuffer(seen[-1][2][0]).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_figure_that_waits_is_shown_when_another_is_drawn(seen):
    first = plot.figure().line([1]).line([2])
    time.sleep(0.02)
    plot.figure().line([3])
    assert [len(spec["panels"][0]["marks"]) for name, spec, _, _ in seen if name == first.name] == [1, 2]


def test_the_value_of_a_cell_is_shown_once(seen):
    figure = plot.line([1, 2])
    figure._ipython_display_()
    assert len(seen) == 1
    data = figure._repr_mimebundle_()
    assert data["application/vnd.weft.figure+json"]["panels"] and len(figure._repr_buffers_()) == 2


WITHOUT = """
from array import array
import weft, weft.numpy as jnp
from weft import plot
plot.set_renderer(lambda name, spec, buffers, update: print(name, len(buffers), [bytes(b[:8]).hex() for b in buffers]))
for dtype in ("float32", "bfloat16", "int32", "uint8", "bool"):
    values = plot.line(jnp.array([1, 0], dtype)).panels[0].marks[-1]["y"]
    assert [*values.numbers()] == [1, 0], values
plot.flush()
figure = plot.figure()
figure.scatter([0, 1], array("d", [2, 3]), color=jnp.arange(2.)).histogram(jnp.arange(9.)).image(jnp.ones((2, 2, 3)))
figure.heatmap(jnp.eye(2), annotate=True).contour(jnp.arange(9.).reshape(3, 3)).quiver([0], [0], [1], [1])
figure.bar({"a": jnp.float32(1)}).band([0, 1], [0, 1], [1, 2]).curve("loss", 0, jnp.float32(3))
plot.flush()
assert plot.line([1]).panels[0].marks[-1]["y"].dtype == "float64"
"""


def test_without_numpy():
    environment = {**os.environ, "WEFT_NUMPY": "0", "JAX_PLATFORMS": "wasm"}
    ran = subprocess.run([sys.executable, "-c", WITHOUT], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
