"""A program → the plan of a WebGPU artifact: WGSL kernels, buffers, and steps (docs/artifact.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NotRequired, TypeAlias, TypedDict, assert_never

from weft_wasm.artifact import ABI_VERSION, Artifact
from weft_wasm.emit_wgsl import workgroup_reductions
from weft_wasm.emit_wgsl.dispatches import Dispatch, split
from weft_wasm.emit_wgsl.legalize import Legal, legalize
from weft_wasm.emit_wgsl.shader import WORD, Shader, WgslError, storage
from weft_wasm.ir.nodes import (
    Assign,
    Barrier,
    Buffer,
    Copy,
    Declare,
    Expr,
    Fail,
    For,
    HostCall,
    If,
    Instance,
    Kernel,
    Let,
    Poll,
    Program,
    Stmt,
    Store,
    Switch,
    Var,
    While,
)
from weft_wasm.ir.traversal import touched
from weft_wasm.passes.buffers import MemoryPlan, Slot, plan
from weft_wasm.ir.verify import verify

# The limits of every WebGPU device. A device may offer more; an artifact compiled for these runs everywhere.
DEFAULT_LIMITS = {
    "maxStorageBuffersPerShaderStage": 8,
    "maxStorageBufferBindingSize": 1 << 27,
    "maxComputeWorkgroupsPerDimension": 65535,
}
GROUP = 64  # invocations of a workgroup
WASTE = 1.25  # a row of the grid may have so many times the invocations that it needs
STRIDE = 1 << 14  # invocations that share a loop whose extent only the device knows
ALIGN = 64


class PlanKernel(TypedDict):
    wgsl: str
    entry: str


class PlanBuffer(TypedDict):
    bytes: int
    role: str
    index: int
    offset: NotRequired[int]


class DispatchStep(TypedDict):
    op: Literal["dispatch"]
    kernel: int
    bind: list[int]
    groups: list[int]


class CopyStep(TypedDict):
    op: Literal["copy"]
    src: int
    dst: int
    bytes: int
    srcOffset: int
    dstOffset: int


class LoopStep(TypedDict):
    op: Literal["loop"]
    count: int
    body: list[Step]
    counter: int | None


class WhileStep(TypedDict):
    op: Literal["while"]
    cond: list[Step]
    flag: int
    body: list[Step]
    gated: bool


class SwitchStep(TypedDict):
    op: Literal["switch"]
    index: int
    branches: list[list[Step]]
    gated: bool


class Place(TypedDict):
    """Part of a buffer of the plan, in bytes."""

    buffer: int
    offset: int
    bytes: int


class CallStep(TypedDict):
    op: Literal["call"]
    number: int
    arguments: list[Place]
    results: list[Place]


Step: TypeAlias = DispatchStep | CopyStep | LoopStep | WhileStep | SwitchStep | CallStep


class DevicePlan(TypedDict):
    kernels: list[PlanKernel]
    buffers: list[PlanBuffer]
    steps: list[Step]


class ArgumentSpec(TypedDict):
    dtype: str
    shape: list[int]
    bytes: int


def compile_webgpu(program: Program, limits: Mapping[str, int] = DEFAULT_LIMITS, *, check: bool = True) -> Artifact:
    """One artifact of kind "webgpu" for a program.

    limits: of the device, by WebGPU's names; a missing one is taken as the least that every device has. check: verify
    the program first. Raises VerifyError for malformed programs, WgslError for programs that exceed the device.
    """
    if check:
        verify(program)
    limits = {**DEFAULT_LIMITS, **limits}
    legal = legalize(program, limits["maxStorageBuffersPerShaderStage"])
    code, constants, scratch = _Module(legal, limits).build()
    metadata = {
        "abi": ABI_VERSION,
        "kind": "webgpu",
        "name": program.name,
        "inputs": [_spec(b, legal.program.inputs[k]) for k, b in enumerate(program.inputs)],
        "outputs": [{**_spec(b, legal.program.outputs[k]), "alias": None} for k, b in enumerate(program.outputs)],
        "scratch": scratch,
        "features": [],
        **({"calls": [len(c.ins) + len(c.outs) for c in program.calls]} if program.calls else {}),
        "errors": {},
    }
    return Artifact(metadata, json.dumps(code, separators=(",", ":")).encode(), constants)


def memory_plan(program: Program, limits: Mapping[str, int]) -> list[Slot]:
    """The places of a lowered program's temporary buffers on a device with these limits. Those that have a buffer of
    the device to themselves come last, as if they lay behind the others.
    """
    limits = {**DEFAULT_LIMITS, **limits}
    legal = legalize(program, limits["maxStorageBuffersPerShaderStage"])
    placed = _Module(legal, limits).place_temps()
    slots, end = placed.slots(), placed.size
    for b in placed.alone:
        slots.append(Slot.of(b, end, placed.lives[b]))
        end += b.nbytes
    return slots


def _spec(buffer: Buffer, legal: Buffer) -> ArgumentSpec:
    return {"dtype": buffer.label, "shape": list(buffer.shape), "bytes": legal.nbytes}


class _Module:
    """Builds one plan. Temps share one buffer, the arena; each temp that is too large for it has a separate buffer."""

    def __init__(self, legal: Legal, limits: Mapping[str, int]):
        self.legal, self.program, self.limits = legal, legal.program, limits
        self.kernels: dict[str, int] = {}  # WGSL → number
        self.buffers: list[PlanBuffer] = []
        self.ids: dict[Buffer, int] = {}
        self.offsets: dict[Buffer, int] = {}  # in words, of temps and constants
        # for the statement at hand: where a condition is, the type of that, when not to run
        self.gates: dict[int, tuple[str, str]] = {}

    def build(self) -> tuple[DevicePlan, bytes, int]:
        p = self.program
        for role, group in (("input", p.inputs), ("output", p.outputs)):
            for k, b in enumerate(group):
                self.check_size(b)
                self.ids[b] = self.add(b.nbytes, role, k)
        placed = self.place_temps()
        if placed.size:
            arena = self.add(placed.size, "temp")
            for b, offset in placed.offsets.items():
                self.ids[b], self.offsets[b] = arena, offset // WORD
        for b in (*placed.alone, *(c for c in self.legal.counters.values() if c), *self.legal.flags.values()):
            self.ids[b] = self.add(b.nbytes, "temp")
        constants = self.place_constants()
        steps = self.steps(p.body)
        scratch = sum(b["bytes"] for b in self.buffers if b["role"] == "temp")
        kernels: list[PlanKernel] = [{"wgsl": text, "entry": "main"} for text in self.kernels]
        return {"kernels": kernels, "buffers": self.buffers, "steps": steps}, constants, scratch

    def add(self, nbytes: int, role: str, index: int = 0) -> int:
        self.buffers.append({"bytes": nbytes, "role": role, "index": index})
        return len(self.buffers) - 1

    def check_size(self, b: Buffer) -> None:
        limit = self.limits["maxStorageBufferBindingSize"]
        if b.nbytes > limit:
            raise WgslError(
                f"{self.program.name}: {b!r} takes {b.nbytes} bytes on a WebGPU device, which binds at most {limit}; "
                "split the array, or use the wasm or cpu backend"
            )

    def place_temps(self) -> MemoryPlan:
        """One buffer for the temps, which can be bound; the largest have buffers to themselves where they must."""
        placed = plan(self.program, self.limits["maxStorageBufferBindingSize"])
        for b in placed.alone:
            self.check_size(b)
            b.role = "own"  # no longer a part of the arena
        return placed

    def place_constants(self) -> bytes:
        if not self.program.constants:
            return b""
        data = bytearray()
        for b in self.program.constants:
            self.offsets[b] = len(data) // WORD
            data += b.content
            data += bytes(-len(data) % ALIGN)
        whole = self.add(len(data), "constant")
        self.buffers[whole]["offset"] = 0
        self.ids.update((b, whole) for b in self.program.constants)
        return bytes(data)

    # ---- steps

    def steps(self, body: Sequence[Stmt]) -> list[Step]:
        return [step for s in body for step in self.statement(s)]

    def statement(self, s: Stmt) -> Iterator[Step]:
        match s:
            case Kernel():
                yield from map(self.dispatch, split(s))
            case Copy():
                src, dst = (
                    WORD * (self.offsets.get(b, 0) + fixed(index))
                    for b, index in ((s.src, s.src_index), (s.dst, s.dst_index))
                )
                yield {
                    "op": "copy",
                    "src": self.ids[s.src],
                    "dst": self.ids[s.dst],
                    "bytes": WORD * s.count,
                    "srcOffset": src,
                    "dstOffset": dst,
                }
            case For():
                counter = self.legal.counters[s.var]
                yield {
                    "op": "loop",
                    "count": s.count,
                    "body": self.steps(s.body),
                    "counter": self.ids[counter] if counter else None,
                }
            case While():
                flag, cond = self.ids[self.legal.flags[s]], self.steps(s.cond)
                body = self.gated(s, s.body, "{} == 0")
                yield {"op": "while", "cond": cond, "flag": flag, "body": body, "gated": s in self.legal.gated}
            case Switch():
                last = len(s.branches) - 1
                yield {
                    "op": "switch",
                    "index": self.ids[self.legal.flags[s]],
                    "branches": [
                        self.gated(s, b, f"clamp({{}}, 0i, {last}i) != {k}i") for k, b in enumerate(s.branches)
                    ],
                    "gated": s in self.legal.gated,
                }
            case HostCall():
                arguments, results = ([self.place(b) for b in group] for group in (s.arguments, s.results))
                yield {"op": "call", "number": s.number, "arguments": arguments, "results": results}
            case Instance() | If() | Fail() | Poll() | Let() | Declare() | Assign() | Store() | Barrier():
                raise TypeError(f"{type(s).__name__} has no step in a plan")
            case _:
                assert_never(s)

    def gated(self, s: While | Switch, body: Sequence[Stmt], unless: str) -> list[Step]:
        """The steps for which the flag of a statement decides: their kernels test it if the statement is gated."""
        flag = self.legal.flags[s]
        number = self.ids[flag]
        if s in self.legal.gated:
            self.gates[number] = storage(flag.dtype), unless
        steps = self.steps(body)
        self.gates.pop(number, None)
        return steps

    def place(self, b: Buffer) -> Place:
        return {"buffer": self.ids[b], "offset": WORD * self.offsets.get(b, 0), "bytes": b.nbytes}

    # ---- kernels

    def dispatch(self, d: Dispatch) -> DispatchStep:
        reads, writes = touched(d.statements())
        written = {self.ids[b] for b in writes}
        bind = list(dict.fromkeys((*(self.ids[b] for b in (*reads, *writes)), *self.gates)))
        if len(bind) > self.limits["maxStorageBuffersPerShaderStage"]:
            raise WgslError(
                f"{self.program.name}: kernel {d.name} uses {len(bind)} buffers that are too large to share one; use"
                " smaller arrays"
            )
        variables: dict[Buffer, tuple[str, str, int]] = {}
        kinds: dict[int, str] = {}
        for b in (*reads, *writes):
            number = self.ids[b]
            shared = b in self.offsets
            kinds[number] = kind = "u32" if shared else storage(b.dtype)
            variables[b] = f"b{bind.index(number)}", kind, self.offsets.get(b, 0)
        shader = Shader(d.name, variables.__getitem__)
        for gate, (kinds[gate], unless) in self.gates.items():
            shader.line(f"if ({unless.format(f'b{bind.index(gate)}[0]')}) {{ return; }}")
        width, declared, groups = self.entry(shader, d)
        access = ["read_write" if number in written else "read" for number in bind]
        head = [
            f"@group(0) @binding({k}) var<storage, {access[k]}> b{k}: array<{kinds[number]}>;"
            for k, number in enumerate(bind)
        ]
        signature = (
            "@builtin(global_invocation_id) id: vec3u, @builtin(workgroup_id) group: vec3u,"
            " @builtin(local_invocation_index) lane: u32"
        )
        text = "\n".join(
            [
                *head,
                "var<private> zero: u32;",
                *declared,
                *filter(None, [shader.functions_text()]),
                f"@compute @workgroup_size({width})",
                f"fn main({signature}) {{",
                "  zero = group.z;",
                *shader.lines,
                "}",
                "",
            ]
        )
        return {
            "op": "dispatch",
            "kernel": self.kernels.setdefault(text, len(self.kernels)),
            "bind": bind,
            "groups": groups,
        }

    def entry(self, shader: Shader, d: Dispatch) -> tuple[int, list[str], list[int]]:
        """Writes the body of main: (invocations of a workgroup, declarations it needs, numbers of workgroups). The last
        number is always 1, so that `group.z` is a zero that compilers do not know.
        """
        if d.stride:
            shader.block(d.prologue)
            shader.loop(d.stride, "i32(id.x)", f"{STRIDE}i")
            return GROUP, [], [STRIDE // GROUP, 1, 1]
        width = workgroup_reductions.threads(d)
        if width:
            groups = self.grid(shader, d, d.size, "group", 1)
            shader.block(d.prologue)
            return width, workgroup_reductions.emit(shader, d, width), groups
        groups = self.rows(shader, d) or self.grid(shader, d, -(-d.size // GROUP), "id", GROUP)
        shader.block([*d.prologue, *d.body])
        return GROUP if d.loops else 1, [], groups

    def rows(self, shader: Shader, d: Dispatch) -> list[int] | None:
        """The grid as rows of workgroups, where its inner loops fill them: the variables of the outer loops are the
        same in a whole workgroup then, and what depends on them alone is computed and loaded once.
        """
        width = self.limits["maxComputeWorkgroupsPerDimension"]
        inner = 1
        for k in reversed(range(1, len(d.loops))):
            inner *= d.loops[k][1]
            columns, lines = -(-inner // GROUP), d.size // inner
            if inner >= GROUP and columns * GROUP <= inner * WASTE and columns <= width and lines <= width:
                shader.line("let point = id.x;")
                if inner % GROUP:
                    shader.line(f"if (point >= {inner}u) {{ return; }}")
                self.variables(shader, d.loops[k:], "point")
                self.variables(shader, d.loops[:k], "group.y")
                return [columns, lines, 1]
        return None

    def grid(self, shader: Shader, d: Dispatch, groups: int, counted: str, size: int) -> list[int]:
        """The point of the grid and its loop variables; points are numbered by `counted`, of which a workgroup has
        `size`.
        """
        if not d.loops:
            return [1, 1, 1]
        width = self.limits["maxComputeWorkgroupsPerDimension"]
        lines = -(-groups // width)
        columns = -(-groups // lines)
        shader.line(
            f"let point = {counted}.y * {columns * size}u + {counted}.x;" if lines > 1 else f"let point = {counted}.x;"
        )
        if groups * size > d.size or lines * columns > groups:
            shader.line(f"if (point >= {d.size}u) {{ return; }}")
        self.variables(shader, d.loops, "point")
        return [columns, lines, 1]

    def variables(self, shader: Shader, loops: Sequence[tuple[Var, int]], point: str) -> None:
        """The variables of a nest of loops at a point of it."""
        inner = 1
        for k, (var, extent) in reversed(list(enumerate(loops))):
            part = point if inner == 1 else f"({point} / {inner}u)"
            part = f"{part} % {extent}u" if k else part
            name = shader.env[var] = shader.fresh(var.name)
            shader.line(f"let {name} = i32({part});")
            inner *= extent


def fixed(index: Expr | int) -> int:
    """An index of a copy that the program knows; legal programs have no other."""
    if not isinstance(index, int):
        raise TypeError(f"a copy at {index!r}, which only the device knows")
    return index


def as_words(data: bytes | memoryview, nbytes: int) -> bytes:
    """Elements of 1, 2 or 4 bytes as words: the bits in the low end, zeros above. `nbytes` is 4 for each element.

    >>> as_words(b"\\1\\0", 8)
    b'\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00'
    """
    if len(data) == nbytes:
        return bytes(data)
    size = WORD * len(data) // nbytes
    words = bytearray(nbytes)
    for k in range(size):
        words[k::WORD] = data[k::size]
    return bytes(words)


def from_words(words: bytes, itemsize: int) -> bytes:
    """The inverse of `as_words`."""
    if itemsize == WORD:
        return words
    data = bytearray(len(words) // WORD * itemsize)
    for k in range(itemsize):
        data[k::itemsize] = words[k::WORD]
    return bytes(data)
