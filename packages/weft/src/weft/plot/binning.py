"""Computations for figures: the bins of a histogram, the levels of a contour plot, the lengths of arrows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import ceil, floor, hypot, isfinite, log2, log10, sqrt

from ..base.errors import at_user_line

MOST_BINS = 10_000


def step(span: float, count: int) -> float:
    """A round step (1, 2, 2.5 or 5 times a power of ten) that divides `span` into about `count` parts."""
    raw = span / max(count, 1)
    power = 10.0 ** floor(log10(raw))
    return next((m * power for m in (1.0, 2.0, 2.5, 5.0) if m * power >= raw * (1 - 1e-9)), 10.0 * power)


def levels(numbers: Sequence[float], wanted: int | Sequence[float]) -> list[float]:
    """The levels of a contour plot: those given, in order, or about as many round ones in the range of `numbers`."""
    if not isinstance(wanted, int):
        return sorted(float(level) for level in wanted)
    if not numbers or min(numbers) == max(numbers):
        return []
    low, high = min(numbers), max(numbers)
    width = step(high - low, wanted + 1)
    first, last = floor(low / width) + 1, ceil(high / width) - 1
    return [width * k for k in range(first, last + 1)]


def _edges(ordered: Sequence[float], bins: int | str, low: float, high: float) -> list[float]:
    if low == high:
        low, high = low - 0.5, high + 0.5
    if isinstance(bins, str):
        count = len(ordered)
        quartile = lambda q: ordered[min(count - 1, int(q * count))]
        # the larger number of bins of the rules of Sturges and of Freedman and Diaconis
        width = 2 * (quartile(0.75) - quartile(0.25)) / count ** (1 / 3) if count else 0.0
        bins = max(ceil(log2(count)) + 1 if count else 1, ceil((high - low) / width) if width else 1)
        bins = min(bins, 1000)
    return [low + (high - low) * k / bins for k in range(bins)] + [high]


def histogram(
    numbers: Sequence[float], bins: int | str | Sequence[float], limits: tuple[float, float] | None
) -> tuple[list[float], list[int]]:
    """Edges of bins, and how many of `numbers`, which are finite, each of them holds.

    A bin holds its lower edge; the last holds its upper one too.
    """
    ordered = sorted(numbers)
    if isinstance(bins, (int, str)):
        if isinstance(bins, str) and bins != "auto":
            raise ValueError(at_user_line(f'plot.histogram: bins must be a number, edges, or "auto"; got {bins!r}'))
        if isinstance(bins, int) and not 1 <= bins <= MOST_BINS:
            raise ValueError(at_user_line(f"plot.histogram: bins must lie between 1 and {MOST_BINS}; got {bins}"))
        low, high = limits or ((ordered[0], ordered[-1]) if ordered else (0.0, 1.0))
        edges = _edges(ordered, bins, low, high)
    else:
        edges = [float(edge) for edge in bins]
        if len(edges) < 2 or any(a >= b for a, b in zip(edges, edges[1:])):
            raise ValueError(at_user_line("plot.histogram: bins, as edges, must be at least two that increase"))
    places = [*(bisect_left(ordered, edge) for edge in edges[:-1]), bisect_right(ordered, edges[-1])]
    return edges, [after - before for before, after in zip(places, places[1:])]


def arrow_scale(x: Sequence[float], y: Sequence[float], u: Sequence[float], v: Sequence[float]) -> float:
    """The factor by which arrows are divided, so that the longest is as long as the distance between two arrows."""
    arrows = [(du, dv) for du, dv in zip(u, v) if isfinite(du) and isfinite(dv) and hypot(du, dv) > 0]
    xs, ys = [a for a in x if isfinite(a)], [a for a in y if isfinite(a)]
    if not arrows or not xs or not ys:
        return 1.0
    across = sqrt(len(arrows))
    wide, tall = (max(xs) - min(xs)) / across, (max(ys) - min(ys)) / across
    wide, tall = wide or tall or 1.0, tall or wide or 1.0
    return max(max(abs(du) / wide, abs(dv) / tall) for du, dv in arrows)
