"""Mutable references: `ref = weft.new_ref(x)`, `ref[i]`, `ref[i] = y`, in programs and outside of them."""

from .api.refs import (
    AbstractRef as AbstractRef,
    Ref as Ref,
    addupdate as addupdate,
    empty_ref as empty_ref,
    free_ref as free_ref,
    freeze as freeze,
    get as get,
    new_ref as new_ref,
    set as set,
    swap as swap,
)
