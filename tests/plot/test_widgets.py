"""Widgets outside of a page: a program with widgets runs as if nobody changed them."""

import pytest

import weft.numpy as jnp
from weft import plot
from weft.widgets import animate, camera, canvas, checkbox, interact, microphone, select, slider


def test_a_function_runs_once_with_the_first_values():
    seen = []

    @interact(x=(0, 10), kind=["a", "b"], drawing=canvas())
    def show(x, kind="b", on=True, drawing=None):
        seen.append((x, kind, on, drawing))

    assert seen == [(5, "b", True, None)]
    assert show(1, "a", False) is None and len(seen) == 2


def test_observers_hear_of_values_that_a_program_sets():
    speed, heard = slider(0.0, 1.0), []
    speed.observe(heard.append)
    speed.value = 0.75
    assert heard == [0.75] and speed.value == 0.75
    assert select({"one": 1, "two": 2}).value == 1
    assert checkbox().value is False and camera().value is None


def test_animations_go_through_their_frames():
    drawn = []
    plot.set_renderer(lambda name, spec, buffers, update: drawn.append(name))

    def frames():
        for i in range(3):
            plot.line(jnp.arange(3) * i)
            yield

    try:
        animate(frames, fps=1e-3)  # nobody waits for the next one
    finally:
        plot.set_renderer(None)
    assert len(set(drawn)) == 3  # a figure for each


def test_refused():
    with pytest.raises(ValueError, match="low must be less"):
        slider(2, 1)
    with pytest.raises(ValueError, match="samples must be from 1 to 32768"):
        microphone(40_000)
    with pytest.raises(TypeError, match="say what x ranges over"):
        interact(lambda x: x)
    with pytest.raises(ValueError, match="fps must be positive"):
        animate([], fps=0)
