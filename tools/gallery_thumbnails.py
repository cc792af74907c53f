"""Makes the thumbnails of the gallery from what its documents draw.

    python tools/gallery_thumbnails.py [NAME ...]

Each document runs as a program. Its variable `cover` is what the thumbnail shows: a figure of `weft.plot`, drawn
without axes on a transparent ground, or an array, drawn as a picture. A file has at most 12 kB.
"""

import io
import json
import os
import runpy
import sys
from pathlib import Path

import numpy as np
import weft.as_jax  # noqa: F401  `import jax` gives weft
from matplotlib.figure import Figure
from PIL import Image
from weft import plot

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
GALLERY = EXAMPLES / "gallery"
SIZE = (252, 192)  # three pixels for each pixel of the page
MOST_BYTES = 12_000


def of_figure(figure: plot.Figure) -> Image.Image:
    """The marks of the figure's panels alone, side by side."""
    from weft.plot import native

    canvas = Figure(dpi=100)
    native.draw(figure, canvas)
    canvas.set_layout_engine("none")
    canvas.suptitle("")
    canvas.set_size_inches(SIZE[0] / 100, SIZE[1] / 100)
    shown = [axes for axes in canvas.axes if axes.get_label() != "<colorbar>"]
    for axes in canvas.axes:
        axes.set_axis_off()
        if axes not in shown:
            canvas.delaxes(axes)
    for k, axes in enumerate(shown):
        width = 1 / len(shown)
        axes.set_position((k * width + 0.02, 0.03, width - 0.04, 0.94))
        axes.set_title("")
        if legend := axes.get_legend():
            legend.remove()
    file = io.BytesIO()
    canvas.savefig(file, format="png", transparent=True)
    return Image.open(file).convert("RGBA")


def of_array(array: object) -> Image.Image:
    """An array of colours, or of numbers from 0 to 1, which have the colours of "magma"."""
    import matplotlib

    pixels = np.asarray(array)
    if pixels.ndim == 2:
        pixels = matplotlib.colormaps["magma"](np.clip(pixels, 0, 1))[..., :3]
    if pixels.dtype != np.uint8:
        pixels = (np.clip(pixels, 0, 1) * 255).astype(np.uint8)
    image = Image.fromarray(pixels)
    scale = max(SIZE[0] / image.width, SIZE[1] / image.height)
    method = Image.Resampling.NEAREST if scale > 2 else Image.Resampling.LANCZOS
    image = image.resize((round(image.width * scale), round(image.height * scale)), method)
    left, top = (image.width - SIZE[0]) // 2, (image.height - SIZE[1]) // 2
    return image.crop((left, top, left + SIZE[0], top + SIZE[1]))


def packed(image: Image.Image) -> bytes:
    """The image as a PNG of a palette, with as many colours, and at last as many pixels, as fit."""
    for scale, colors in ((1, 128), (1, 64), (1, 32), (1, 16), (0.7, 32), (0.7, 16), (0.5, 16)):
        small = image.resize((round(image.width * scale), round(image.height * scale)))
        file = io.BytesIO()
        method = Image.Quantize.FASTOCTREE if image.mode == "RGBA" else Image.Quantize.MEDIANCUT
        small.quantize(colors, method=method, dither=Image.Dither.NONE).save(file, format="png", optimize=True)
        if file.tell() <= MOST_BYTES:
            return file.getvalue()
    raise ValueError("the picture can't be packed into 12 kB: choose one with less in it")


def main(names: list[str]) -> None:
    os.chdir(EXAMPLES / "digits")  # some of the documents read its data
    for entry in json.loads((GALLERY / "gallery.json").read_text()):
        name = entry["file"].removesuffix(".py")
        if names and name not in names:
            continue
        cover = runpy.run_path(str(GALLERY / entry["file"]))["cover"]
        plot.flush()
        data = packed(of_figure(cover) if isinstance(cover, plot.Figure) else of_array(cover))
        (GALLERY / entry["thumbnail"]).write_bytes(data)
        print(f"{entry['thumbnail']}: {len(data)} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
