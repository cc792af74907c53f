"""Rows of the catalogue for communication between members of a named axis, which here are those of a vmap, and for
where values lie.
"""

import weft
from weft import lax


def rows(Row):
    four = lambda f: weft.vmap(f, axis_name="i")
    pairs = [[0, 2], [3, 1]]
    for name, f in {
        "psum": lambda x: lax.psum(x, "i"),
        "psum_groups": lambda x: lax.psum(x, "i", axis_index_groups=pairs),
        "pmean": lambda x: lax.pmean(x, "i"),
        "all_gather": lambda x: lax.all_gather(x, "i", axis=1),
        "all_gather_tiled": lambda x: lax.all_gather(x, "i", tiled=True),
        "all_gather_invariant": lambda x: lax.all_gather(x, "i", axis=1, to="invarying"),
        "all_gather_invariant_tiled": lambda x: lax.all_gather(x, "i", tiled=True, to="invarying"),
        "all_to_all": lambda x: lax.all_to_all(x, "i", 0, 1),
        "all_to_all_tiled": lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True),
        "psum_scatter": lambda x: lax.psum_scatter(x, "i"),
        "psum_scatter_tiled": lambda x: lax.psum_scatter(x, "i", tiled=True),
        "ppermute": lambda x: lax.ppermute(x, "i", [(0, 1), (1, 3)]),
        "pshuffle": lambda x: lax.pshuffle(x, "i", [2, 0, 3, 1]),
        "pswapaxes": lambda x: lax.pswapaxes(x, "i", 0),
        "pbroadcast": lambda x: lax.pbroadcast(x, "i", 2),
        "axis_index": lambda x: x * lax.axis_index("i"),
        "axis_size": lambda x: x * lax.axis_size("i"),
    }.items():
        yield Row(name, four(f), ("f32[4,4,2]",))
    for name in ("pmax", "pmin"):
        yield Row(f"{name}_alone", four(lambda x, f=getattr(lax, name): f(x, "i")), ("f32[4,3]",), grad=False)
    both = lambda f: weft.vmap(weft.vmap(f, axis_name="j"), axis_name="i")
    yield Row("all_gather_of_two", both(lambda x: lax.all_gather(x, ("j", "i"), tiled=True)), ("f32[2,3,2]",))
    yield Row("psum_scatter_of_two", both(lambda x: lax.psum_scatter(x, ("i", "j"))), ("f32[2,2,4]",))
    yield Row("ppermute_of_two", both(lambda x: lax.ppermute(x, ("i", "j"), [(0, 3), (3, 1)])), ("f32[2,2,3]",))
