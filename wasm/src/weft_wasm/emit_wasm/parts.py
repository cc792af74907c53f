"""The parts of one function's emitter, put together.

Each part uses parts above it and none below, except through two small protocols: addresses need the values of scalar
expressions (`address.Evaluator`), and loops need the statements in their bodies (`blocks.BlockEmitter`).
"""

from __future__ import annotations

from weft_wasm.emit_wasm.accumulators import Accumulators
from weft_wasm.emit_wasm.address import Addresses
from weft_wasm.emit_wasm.blocks import Blocks
from weft_wasm.emit_wasm.function import Function
from weft_wasm.emit_wasm.interleave import Interleaved, Interleaving
from weft_wasm.emit_wasm.lane_plan import LanePlan
from weft_wasm.emit_wasm.loops import Counted, Functions, InLanes, Loops
from weft_wasm.emit_wasm.scalars import Scalars
from weft_wasm.emit_wasm.scope import Scope
from weft_wasm.emit_wasm.statements import Branches, Simple
from weft_wasm.emit_wasm.loop_invariants import LoopInvariants
from weft_wasm.emit_wasm.storage import Overlap, Storage
from weft_wasm.emit_wasm.values import Expansions, Held, Shared
from weft_wasm.emit_wasm.vectors import Vectors
from weft_wasm.ir.nodes import Barrier, Poll


class Parts:
    """The emitter of one function. in_kernel: whether it emits the statements of a kernel, or only loops and branches
    around the statements that `blocks.add` names.
    """

    def __init__(
        self, fn: Function, overlap: Overlap, features: frozenset[str], functions: Functions, in_kernel: bool = True
    ):
        self.fn = fn
        self.scope = scope = Scope(fn)
        self.storage = storage = Storage(overlap)
        held = Held()
        expansions = Expansions(storage)
        self.shared = shared = Shared(fn, expansions, held)
        addresses = Addresses(fn, scope, storage, shared, loops=in_kernel)
        self.scalars = scalars = Scalars(fn, scope, shared, held, expansions, addresses, functions)
        relaxed = "relaxed-simd" in features
        self.vectors = vectors = Vectors(
            fn, scope, shared, held, expansions, addresses, scalars, functions, relaxed=relaxed
        )
        interleaving = Interleaving(fn, scope, storage, shared, addresses, scalars, vectors)
        self.blocks = blocks = Blocks(scope, interleaving)
        invariants = LoopInvariants(fn, scope, storage, shared, held, expansions, scalars, vectors)
        self.counted = counted = Counted(fn, scope, held, addresses, scalars, invariants, blocks)
        plan = LanePlan(scope, storage, addresses, expansions)
        in_lanes = InLanes(
            fn, scope, held, plan, invariants, Accumulators(fn, scope, shared, scalars, vectors), counted
        )
        blocks.add(
            Loops(fn, scope, scalars, counted, in_lanes, functions, simd=in_kernel and "simd128" in features).kinds
        )
        blocks.add(Branches(fn, scope, scalars, blocks).kinds)
        blocks.add({Poll: lambda s: fn.poll()})
        if in_kernel:
            blocks.add(Simple(fn, scope, storage, shared, scalars, vectors).kinds)
            blocks.add({Interleaved: interleaving.store, Barrier: lambda s: None})
