"""Buffer planning: temps of a program share one arena by liveness.

Time is the order of the program-level statements; a kernel is one point. A buffer that is used in a loop and also needed in a later iteration
lives through the whole loop: that is any buffer first used outside it, or whose first use inside isn't a full overwrite for
certain; it is taken for every buffer used inside a While or For, unless all of its uses lie inside one iteration and it is written
before it is read there.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft_wasm.ir import Buffer, Copy, For, If, Kernel, Load, Program, Switch, While, expressions, touched, walk_expr

ALIGNMENT = 64


@dataclass(slots=True)
class Plan:
    """offsets: byte offset of each temp (and workgroup buffer) in the arena; size: bytes of the arena; lives: (first, last) use."""

    offsets: dict[Buffer, int]
    size: int
    lives: dict[Buffer, tuple[int, int]]

    def overlap(self, a: Buffer, b: Buffer) -> bool:
        """Whether two arena buffers share bytes."""
        if a is b:
            return True
        if a not in self.offsets or b not in self.offsets:
            return False
        x, y = self.offsets[a], self.offsets[b]
        return x < y + b.nbytes and y < x + a.nbytes


def padded(nbytes: int) -> int:
    """Bytes that a buffer occupies (at least one unit, so that addresses are distinct)."""
    return max(ALIGNMENT, -(-nbytes // ALIGNMENT) * ALIGNMENT)


def lifetimes(program: Program) -> dict[Buffer, tuple[int, int]]:
    """(first, last) point at which each temp and workgroup buffer must hold its content."""
    lives: dict[Buffer, tuple[int, int]] = {}
    written_first: dict[Buffer, bool] = {}
    clock = 0

    def use(buffer: Buffer, write: bool) -> None:
        if buffer.role in ("temp", "workgroup"):
            first, _ = lives.get(buffer, (clock, clock))
            lives[buffer] = (first, clock)
            written_first.setdefault(buffer, write)

    def use_expressions(s) -> None:
        for e in expressions(s):
            for node in walk_expr(e):
                if type(node) is Load:
                    use(node.buffer, False)

    def visit(body: list) -> None:
        nonlocal clock
        for s in body:
            clock += 1
            kind = type(s)
            if kind is Kernel:
                reads, writes = touched(s.body)
                # a kernel that writes and reads a temp for the first time wrote it first: content before is undefined
                for b in writes:
                    use(b, True)
                for b in reads:
                    use(b, False)
                for b in s.workgroup:
                    use(b, True)
            elif kind is Copy:
                use_expressions(s)
                use(s.src, False)
                use(s.dst, True)
            elif kind is For or kind is While:
                use_expressions_now = kind is For
                if use_expressions_now:
                    use_expressions(s)
                start = clock
                before = set(lives)
                if kind is While:
                    visit(s.cond)
                    clock += 1
                    use_expressions(s)
                visit(s.body)
                clock += 1
                for b, (first, last) in list(lives.items()):
                    if last > start and (b in before or not written_first[b] or _conditional(s, b)):
                        lives[b] = (min(first, start), clock)
            elif kind is If or kind is Switch:
                use_expressions(s)
                for block in (s.then, s.orelse) if kind is If else s.branches:
                    visit(block)
                clock += 1
            else:
                use_expressions(s)

    def _conditional(loop, buffer: Buffer) -> bool:
        """Whether the loop may write the buffer in one iteration and read it in a later one: its first write is under a condition."""
        for s in [*(loop.cond if type(loop) is While else ()), *loop.body]:
            reads, writes = touched([s])
            if buffer in reads or buffer in writes:
                return type(s) not in (Kernel, Copy)
        return True

    visit(program.body)
    return lives


def plan(program: Program) -> Plan:
    """Places buffers greedily, largest first, at the lowest offset where no buffer alive at the same time is."""
    lives = lifetimes(program)
    offsets: dict[Buffer, int] = {}
    placed: list[tuple[int, int, int, int]] = []  # offset, end, first, last
    size = 0
    for buffer in sorted(lives, key=lambda b: (-b.nbytes, lives[b])):
        first, last = lives[buffer]
        need, at = padded(buffer.nbytes), 0
        for offset, end, f, l in placed:  # sorted by offset
            if f <= last and first <= l:
                if offset >= at + need:
                    break
                at = max(at, end)
        offsets[buffer] = at
        placed.append((at, at + need, first, last))
        placed.sort()
        size = max(size, at + need)
    return Plan(offsets, size, lives)
