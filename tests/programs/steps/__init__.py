"""The families of steps: each adds an operation of its kind to a function that is being made."""

from . import (
    algebra,
    arranging,
    calls,
    chance,
    control,
    dots,
    elementwise,
    host,
    indexing,
    kernels,
    placing,
    reductions,
    sorting,
    special,
    windows,
)
from .family import Family

FAMILIES: dict[str, Family] = {
    **elementwise.FAMILIES,
    **arranging.FAMILIES,
    **reductions.FAMILIES,
    **indexing.FAMILIES,
    **dots.FAMILIES,
    **sorting.FAMILIES,
    **windows.FAMILIES,
    **algebra.FAMILIES,
    **chance.FAMILIES,
    **special.FAMILIES,
    **calls.FAMILIES,
    **kernels.FAMILIES,
    **placing.FAMILIES,
    **host.FAMILIES,
}
CONTROL = control.KINDS
