"""weft.image: arrays resampled along their axes."""

from .resampling import ResizeMethod, resize, scale_and_translate

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


def __dir__() -> list[str]:
    return sorted(__all__)
