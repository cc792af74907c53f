"""The families of steps: each adds an operation of its kind to a function that is being made."""

from . import arranging, control, dots, elementwise, indexing, reductions, sorting
from .family import Family

FAMILIES: dict[str, Family] = {
    **elementwise.FAMILIES,
    **arranging.FAMILIES,
    **reductions.FAMILIES,
    **indexing.FAMILIES,
    **dots.FAMILIES,
    **sorting.FAMILIES,
}
CONTROL = control.KINDS
