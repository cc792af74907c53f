"""Exports the program of this page: pictures of Julia sets, as WebAssembly that needs no Python."""

from pathlib import Path

import weft
import weft.numpy as jnp
from weft import export, lax

SIZE, STEPS = 320, 60


def julia(real, imaginary):
    """The picture, RGBA from 0 to 255, of the points that z² + c keeps near 0."""
    x, y = jnp.meshgrid(jnp.linspace(-1.6, 1.6, SIZE), jnp.linspace(-1.6, 1.6, SIZE))

    def step(_, state):
        x, y, count = state
        inside = x * x + y * y < 4
        return (
            jnp.where(inside, x * x - y * y + real, x),
            jnp.where(inside, 2 * x * y + imaginary, y),
            count + inside,
        )

    _, _, count = lax.fori_loop(0, STEPS, step, (x, y, jnp.zeros((SIZE, SIZE), jnp.int32)))
    depth = count / STEPS
    colours = jnp.stack([depth**0.7, depth**1.4, 0.25 + 0.75 * depth**3, jnp.ones_like(depth)], axis=-1)
    return (255 * colours).astype(jnp.uint8)


number = weft.ShapeDtypeStruct((), jnp.float32)
export.web(julia, number, number, path=Path(__file__).parent / "program")
