"""Sounds: samples as a WAV file, which a page or a notebook plays."""

from __future__ import annotations

import base64
import os
from array import array
from math import isfinite
from struct import pack
from typing import Any, Collection

from ..base.annotations import override
from ..base.errors import at_user_line
from .display import display
from .values import series

MIME = "audio/wav"
_LOUDEST = 32767  # of 16-bit samples


class Sound:
    """Samples of one channel or two, as `weft.plot.audio` makes them."""

    def __init__(self, data: bytes, rate: int, channels: int, count: int):
        self.data = data
        self.rate = rate
        self.channels = channels
        self.seconds = count / rate

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the sound to a WAV file.

        Args:
            path: the file; str or path.

        Returns:
            `None`

        Example:
            >>> from weft import plot
            >>> plot.audio([0.0, 0.5, 0.0, -0.5]).save("click.wav")  # doctest: +SKIP
        """
        with open(path, "wb") as file:
            file.write(self.data)

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        """The sound by MIME type: as a file, which a page plays; for notebooks elsewhere as HTML around it."""
        encoded = base64.b64encode(self.data).decode()
        data = {"text/plain": repr(self)}
        if display.renderer is not None:
            data[MIME] = encoded
        else:
            data["text/html"] = f'<audio controls src="data:{MIME};base64,{encoded}"></audio>'
        return {m: d for m, d in data.items() if (include is None or m in include) and m not in (exclude or ())}

    @override
    def __repr__(self) -> str:
        channels = "" if self.channels == 1 else f" in {self.channels} channels"
        return f"<Sound: {self.seconds:.2f} s at {self.rate} Hz{channels}>"


def audio(samples: Any, rate: int = 44100, *, normalize: bool = False) -> Sound:
    """Makes a sound of samples. As the last value of a cell it is shown with a button that plays it.

    Args:
        samples: real numbers of any dtype between -1 and 1, of shape (n,), or (n, 2) for left and right. What is
            louder is clipped.
        rate: samples per second; int, from 3000 to 192000.
        normalize: whether to scale the samples so that the loudest is 1; bool.

    Returns:
        the sound, whose `save` writes a WAV file and whose `data` (bytes) is one: 16-bit PCM.

    Raises:
        TypeError: the samples are no real numbers.
        ValueError: their shape is another, there are none, one is not finite, or the rate is out of range.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft import plot
        >>> t = jnp.arange(44100) / 44100
        >>> plot.audio(0.3 * jnp.sin(2 * jnp.pi * 440 * t))
        <Sound: 1.00 s at 44100 Hz>
    """
    if isinstance(rate, bool) or int(rate) != rate or not 3000 <= rate <= 192_000:
        raise ValueError(at_user_line(f"plot.audio: rate must be an integer from 3000 to 192000; got {rate!r}"))
    found = series("plot.audio: samples", samples)
    shape = found[0][1].shape if len(found) == 1 else ()
    if len(found) != 1 or len(shape) not in (1, 2) or 0 in shape or (len(shape) == 2 and shape[1] != 2):
        raise ValueError(
            at_user_line(f"plot.audio: samples must have the shape (n,), or (n, 2) for two channels; got {shape}")
        )
    numbers = found[0][1].numbers()
    if not all(map(isfinite, numbers)):
        raise ValueError(at_user_line("plot.audio: samples must be finite; one is NaN or infinite"))
    scale = _LOUDEST / (max(map(abs, numbers)) or 1.0) if normalize else _LOUDEST
    pcm = array("h", [round(max(-_LOUDEST, min(_LOUDEST, scale * x))) for x in numbers])
    channels = 1 if len(shape) == 1 else 2
    return Sound(_wav(pcm.tobytes(), int(rate), channels), int(rate), channels, shape[0])


def _wav(pcm: bytes, rate: int, channels: int) -> bytes:
    """A WAV file: the header of "Multimedia Programming Interface and Data Specifications 1.0" and the samples."""
    frame = 2 * channels
    described = pack("<4sIHHIIHH", b"fmt ", 16, 1, channels, rate, rate * frame, frame, 16)
    return pack("<4sI4s", b"RIFF", 36 + len(pcm), b"WAVE") + described + pack("<4sI", b"data", len(pcm)) + pcm
