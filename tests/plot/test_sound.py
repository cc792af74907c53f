"""Sounds: other readers of WAV files read the same samples; invalid arguments raise."""

import base64
import io
import math
import wave

import numpy as np
import pytest

import weft.numpy as jnp
from weft import plot


def read(data):
    with wave.open(io.BytesIO(data)) as file:
        assert file.getsampwidth() == 2
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, file.getnchannels())
        return file.getframerate(), samples / 32767


def test_samples_come_back():
    t = jnp.arange(4000) / 8000
    wanted = 0.5 * jnp.sin(2 * jnp.pi * 440 * t)
    rate, samples = read(plot.audio(wanted, 8000).data)
    assert rate == 8000
    np.testing.assert_allclose(samples[:, 0], wanted, atol=1 / 32767)


def test_two_channels_and_clipping():
    rate, samples = read(plot.audio([[0.0, 0.5], [2.0, -3.0]]).data)
    assert rate == 44100
    np.testing.assert_allclose(samples, [[0.0, 0.5], [1.0, -1.0]], atol=1 / 32767)


def test_normalized():
    _, samples = read(plot.audio(np.array([0, 10, -20]), normalize=True).data)
    np.testing.assert_allclose(samples[:, 0], [0, 0.5, -1], atol=1 / 32767)
    _, silence = read(plot.audio([0.0, 0.0], normalize=True).data)
    assert not silence.any()


def test_shown_and_saved(tmp_path):
    sound = plot.audio([0.0, 0.5])
    html = sound._repr_mimebundle_()["text/html"]
    assert base64.b64decode(html.split("base64,")[1].split('"')[0]) == sound.data
    plot.set_renderer(lambda *_: None)
    try:
        bundle = sound._repr_mimebundle_()
    finally:
        plot.set_renderer(None)
    assert base64.b64decode(bundle["audio/wav"]) == sound.data and "text/html" not in bundle
    sound.save(tmp_path / "click.wav")
    assert (tmp_path / "click.wav").read_bytes() == sound.data


@pytest.mark.parametrize(
    "samples, rate, error, message",
    [
        ([0.0, math.nan], 44100, ValueError, "finite"),
        ([[0.0, 0.1, 0.2]], 44100, ValueError, r"\(1, 3\)"),
        ([], 44100, ValueError, "shape"),
        (0.5, 44100, ValueError, "shape"),
        ([0.0], 100, ValueError, "rate must be"),
        ([0.0], 8000.5, ValueError, "rate must be"),
        (["loud"], 44100, TypeError, "samples"),
    ],
)
def test_refused(samples, rate, error, message):
    with pytest.raises(error, match=message):
        plot.audio(samples, rate)
