"""Loop IR → WebAssembly, by parts. In the order in which they build on each other (`parts.py` puts them together):

tables              operations as instructions
function, scope     code and locals of one function; which locals hold which variables
storage, values     where buffers are; values that are computed already
address             pointers and offsets
scalars, vectors    expressions; packing: scalars into lanes and out of them
interleave          stores of neighbouring elements
loop_invariants, lane_plan  what is made before a loop; which of its iterations run in lanes
accumulators, loops reductions in lanes; loops
blocks, statements  lists of statements; bindings, stores, branches
functions, module   kernels and loops as functions; the module
"""

from weft_wasm.emit_wasm.module import emit_module

__all__ = ["emit_module"]
