"""A process that reads mutants of programs as a host does, and runs those that it accepts on a platform and in the
reference interpreter.

    python mutant_worker.py FIRST COUNT         on XLA
    python mutant_worker.py FIRST COUNT wasm    on Wasm, in all of its configurations, as a page runs what it reads
    python mutant_worker.py FIRST COUNT webgpu  on WebGPU
    python mutant_worker.py FIRST COUNT files   files of exported programs, and frames of the wire

Before each seed it writes a line with it; after it, where something is wrong, a line of JSON.

What becomes of a process that ends here, or never ends, is its parent's to say (`test_mutations.py`).
"""

from __future__ import annotations

import collections
import functools
import hashlib
import json
import math
import os
import pathlib
import random
import resource
import signal
import sys
import types
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "ops")]
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
from catalogue import ROWS  # noqa: E402
from mutants import mutant  # noqa: E402
from program_parts import Body, Source  # noqa: E402
from mutant_files import emit, mutant_fields, recorded  # noqa: E402
from example_programs import PROGRAMS  # noqa: E402
from programs.targets import TARGETS, target_for  # noqa: E402
from refusals import deliberate, origin, unclear  # noqa: E402

import weft  # noqa: E402
import weft.numpy as jnp  # noqa: E402
from weft.base import dtypes, host, limits
from weft import export, lax  # noqa: E402
from weft.base.avals import shaped  # noqa: E402
from weft.base.config import enable_x64  # noqa: E402
from weft.serialization.binary import DeserializationError  # noqa: E402
from weft.core.carries import Runs  # noqa: E402
from weft.core.interpret import ReferenceTrace, interpret  # noqa: E402
from weft.core.jaxpr import ClosedJaxpr, Jaxpr, subjaxprs  # noqa: E402
from weft.serialization.portable import NotPortable  # noqa: E402
from weft.symbolic.specialize import check_constraints  # noqa: E402
from weft.core.trace import tracing  # noqa: E402
from weft.errors import BackendError  # noqa: E402
from weft.export import artifact  # noqa: E402
from weft.runtime.device import backend_of  # noqa: E402
from weft.runtime.dispatch import program_for, run_jaxpr  # noqa: E402
from weft.transforms.portable import portable  # noqa: E402
from weft_native.host.limits import Limits  # noqa: E402
from weft_native.host.programs import Programs, nbytes  # noqa: E402
from weft_native.host.values import host_array, host_bytes  # noqa: E402
from weft_remote import codec  # noqa: E402
from weft_remote import protocol as p  # noqa: E402
from weft_remote.errors import LimitError  # noqa: E402
from weft_wasm.lower.types import LoweringError  # noqa: E402

STEPS, BYTES = 2_000, 1 << 16  # primitives that the interpreter applies; bytes of one result
SECONDS = 20  # of one mutant


# what is changed ------------------------------------------------------------------------------------------------------


def _loops(x):
    """Loops in loops, with conditions, counts and indices that go round them."""

    def body(c, row):
        def more(state):
            _, n, total = state
            n = n + 1
            return n < row, n, total + n

        _, n, total = lax.while_loop(lambda state: state[0], more, (jnp.bool_(True), jnp.int32(0), c))
        return lax.cond(
            n > 2, lambda t: lax.fori_loop(0, 3, lambda i, s: s + i, t), lambda t: t * 2, total
        ), lax.dynamic_index_in_dim(x, n % 4, keepdims=False)

    return lax.scan(body, jnp.int32(1), x)


def _calls(x):
    inner = weft.jit(lambda v: jnp.sin(v) * v)
    return weft.vmap(lambda v: lax.switch(jnp.int32(v), [inner, lambda u: inner(u) + 1, weft.checkpoint(inner)], v))(
        x
    ), lax.associative_scan(lambda a, b: a * b, x)


CONTROL = {
    "loops": (_loops, (np.array([3, 4, 5, 2], np.int32),)),
    "calls": (_calls, (np.arange(3, dtype=np.float32),)),
    "gradient of loops": (
        lambda x: weft.grad(
            lambda v: lax.scan(lambda c, r: (c * jnp.sin(r), lax.cond(r > 0, jnp.cos, jnp.tanh, c)), v[0], v)[0]
        )(x),
        (np.linspace(-1, 1, 4, dtype=np.float32),),
    ),
    "pool": (
        lambda x: weft.grad(lambda v: lax.reduce_window(v, -np.inf, lax.max, (2, 2), (1, 2), "SAME").sum())(x),
        (np.arange(12, dtype=np.float32).reshape(3, 4),),
    ),
}


@functools.cache
def source(number: int) -> Body | None:
    """The parts of a program; None where it can't leave the process."""
    number %= SOURCES
    if number < 4 * len(ROWS):
        row, form = ROWS[number // 4], number % 4
        args = [jnp.asarray(a) for a in row.sample()]
        fun = row.fun
        if form == 1:
            args, fun = [jnp.stack([a, a]) for a in args], weft.vmap(row.fun)
        elif form and not row.grad:
            return None
        elif form:
            floats = [i for i, a in enumerate(args) if dtypes.is_float(a.dtype)]
            if not floats:
                return None
            first = floats[0]
            of_one = lambda v: row.fun(*args[:first], v, *args[first + 1 :])
            fun = (
                (lambda *xs: weft.jvp(of_one, (args[first],), (xs[first],))[1])
                if form == 2
                else (lambda *xs: weft.vjp(of_one, xs[first])[1](row.fun(*xs)))
            )
    else:
        fun, args = [*PROGRAMS.values(), *CONTROL.values()][(number - 4 * len(ROWS)) % (len(PROGRAMS) + len(CONTROL))]
    try:
        return Source.of(portable(program_for(weft.make_jaxpr(fun)(*args))[0])[0])
    except (NotPortable, NotImplementedError):
        return None


SOURCES = 4 * len(ROWS) + 12 * (len(PROGRAMS) + len(CONTROL))  # programs with control flow come oftener


def bytes_of(seed: int) -> bytes:
    number = seed * 7919  # neighbours differ
    while (body := source(number % SOURCES)) is None:
        number += 1
    return mutant(seed, body)


# runs -----------------------------------------------------------------------------------------------------------------


class TooLong(Exception):
    """A program that may go on for ever."""


class Bounded(ReferenceTrace):
    """The reference rules, for so many steps."""

    def __init__(self, steps: int = STEPS):
        self.steps = steps
        # whether all that was computed was finite: a compiler may write a / (b / c) as a * c / b
        self.finite = True

    def process(self, primitive, args, params):
        self.steps -= 1
        if self.steps < 0:
            raise TooLong
        out = super().process(primitive, args, params)
        if self.finite and primitive.name not in EXACT:
            self.finite = all(
                [
                    not isinstance(o, np.ndarray) or o.dtype.kind not in "fcV" or np.isfinite(o.astype(complex)).all()
                    for o in (out if primitive.multiple_results else [out])
                ]
            )
        return out


class Rounding(Bounded):
    """The same with other roundings: what differs from it by much depends on roundings."""

    def __init__(self, rng: np.random.Generator, size: float):
        super().__init__(2 * STEPS)
        self.rng, self.size = rng, size

    def process(self, primitive, args, params):
        out = super().process(primitive, args, params)
        if primitive.name in EXACT:
            return out
        other = [nudge(self.rng, o, self.size) for o in (out if primitive.multiple_results else [out])]
        return other if primitive.multiple_results else other[0]


# These only move elements, or compare them; the others round.
EXACT = set(
    """
    broadcast_in_dim reshape transpose squeeze concatenate slice dynamic_slice dynamic_update_slice gather rev pad
    select_n copy iota sort argmax argmin reduce_max reduce_min max min neg abs sign convert_element_type
    bitcast_convert_type eq ne lt le gt ge jit scan while cond remat2 split tile complex real imag conj
    optimization_barrier reduce_window_max reduce_window_min cummax cummin clamp stop_gradient expand_dims scatter
    scatter-max scatter-min
    """.split()
)
# Where a platform may choose: vectors of a decomposition by their sign, and of equal values in any order; random
# numbers of the platform's own.
CHOICE = set(
    "eig eigh svd qr schur hessenberg geqrf geqp3 lu householder_product ormqr tridiagonal rng_uniform approx_top_k"
    " rng_bit_generator".split()
)
SIGNED = {"eq_to", "lt_to", "le_to", "nextafter"}  # to these a NaN has a sign, which 0/0 may give or not
LOW = ("float16", "bfloat16", "float8", "float4")


# What XLA's CPU backend lacks and other platforms have; errors say so in these words.
LACKS = ("XLA's CPU backend has no algorithm", "platform_dependent has no branch for the platform")


def nudge(rng: np.random.Generator, a, size: float):
    a = np.asarray(a)
    if not (dtypes.is_float(a.dtype) or dtypes.is_complex(a.dtype)):
        return a
    size = max(size, float(limits.finfo(a.dtype).eps) / 2)
    with np.errstate(all="ignore"):
        wide = a.astype(np.complex128 if dtypes.is_complex(a.dtype) else np.float64)
        return (wide * (1 + size * rng.uniform(-1, 1, size=a.shape))).astype(a.dtype)


def argument(rng: np.random.Generator, aval) -> np.ndarray:
    """An array as the wire makes one."""
    shape = aval.shape
    if dtypes.is_bool(aval.dtype):
        return rng.random(shape) < 0.5
    if dtypes.is_int(aval.dtype):
        low = -6 if dtypes.is_signed(aval.dtype) else 0
        if dtypes.bits(aval.dtype) < 8:
            return host_array(bytearray(rng.bytes(math.prod(shape))), aval)
        return rng.integers(low, 7, shape).astype(aval.dtype)
    values = (
        rng.normal(size=shape)
        if not dtypes.is_complex(aval.dtype)
        else rng.normal(size=shape) + 1j * rng.normal(size=shape)
    )
    return np.asarray(values).astype(aval.dtype)


def primitives(jaxpr: Jaxpr) -> set[str]:
    names = {e.primitive.name for e in jaxpr.eqns}
    for e in jaxpr.eqns:
        for sub in subjaxprs(e.params):
            names |= primitives(sub)
    return names


def in_any_order(jaxpr: Jaxpr) -> bool:
    """Whether what combines elements in any order may do so: whether each function that a program says to be
    associative and commutative is, of some numbers. What another one gives is not said (`lax.reduce`).
    """
    for eqn in jaxpr.eqns:
        carries = eqn.primitive.carries
        inner = list(subjaxprs(eqn.params))
        if carries is not None and carries.runs is Runs.COMBINING:
            (combined,) = inner
            avals = [v.aval for v in combined.invars[: len(combined.outvars)]]
            rng = np.random.default_rng(0)
            x, y, z = ([argument(rng, a) for a in avals] for _ in range(3))
            combine = lambda p, q, f=combined: interpret(f, [*p, *q])
            with np.errstate(all="ignore"), tracing(Bounded()):
                pairs = [(combine(combine(x, y), z), combine(x, combine(y, z))), (combine(x, y), combine(y, x))]
            if any((off(np.asarray(a), np.asarray(b)) > 1e-2).any() for p, q in pairs for a, b in zip(p, q)):
                return False
        if not all(map(in_any_order, inner)):
            return False
    return True


def on_a_cut(jaxpr: Jaxpr) -> bool:
    """Whether a program has an atan2 of complex numbers: that of zero is on its cut, and roundings choose the sign."""
    return any(
        e.primitive.name == "atan2"
        and dtypes.is_complex(e.outvars[0].aval.dtype)
        or any(map(on_a_cut, subjaxprs(e.params)))
        for e in jaxpr.eqns
    )


def dtypes_of(jaxpr: Jaxpr) -> set[str]:
    names = {
        dtypes.name(v.aval.dtype) for e in jaxpr.eqns for v in (*e.invars, *e.outvars) if hasattr(v.aval, "dtype")
    } | {dtypes.name(a.dtype) for a in jaxpr.in_avals}
    for e in jaxpr.eqns:
        names |= factors(e)
        for sub in subjaxprs(e.params):
            names |= dtypes_of(sub)
    return names


def factors(e) -> set[str]:
    """To which dtypes a product may round its factors. XLA need not: its CPU backend multiplies as it is quicker."""
    asked = repr(e.params.get("precision")).lower()
    if "bf16" in asked or "bfloat16" in asked:
        return {"bfloat16"}
    return {"float16"} if "f16" in asked or "float16" in asked or "tf32" in asked else set()


def off(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """By how much results differ, relative to their size; infinite where one is a number and the other is not."""
    kind = np.complex128 if np.issubdtype(got.dtype, np.complexfloating) else np.float64
    with np.errstate(all="ignore"):
        got, want = got.astype(kind), want.astype(kind)
        same = (got == want) | np.isnan(got) & np.isnan(want)
        size = np.where(np.isfinite(want), np.abs(want), 0)
        difference = np.where(same, 0.0, np.abs(got - want) / (1 + size))
        return np.where(np.isnan(difference), np.inf, difference)


class Judge:
    """What becomes of programs on XLA, as a host runs them."""

    name = "XLA"

    def __init__(self):
        self.programs = Programs(Limits(session_bytes=BYTES))
        self.device = weft.devices("cpu")[0]
        self.backend = backend_of(self.device)
        self.counts: collections.Counter = collections.Counter()

    def __call__(self, seed: int) -> dict | None:
        """What is wrong with how a mutant is treated."""
        data = bytes_of(seed)
        digest = hashlib.sha256(data).digest()
        try:
            program = self.programs.check(digest, data)
        except (DeserializationError, LimitError) as e:
            self.counts["refused"] += 1
            problem = unclear(e, isinstance(e, DeserializationError))
            return {"kind": "unclear refusal", "what": problem, "message": str(e)} if problem else None
        except Exception as e:
            return {"kind": "error of the reader", "what": f"{type(e).__name__}: {e}"}
        jaxpr = program.jaxpr
        with enable_x64(program.x64):
            args = [argument(np.random.default_rng(seed), a) for a in jaxpr.in_avals]
            found = self.run(seed, jaxpr, args, digest, program, len(data))
        if found is not None:
            found["program"] = str(jaxpr)[:3000]
        return found

    def run(self, seed, jaxpr, args, digest, program, size) -> dict | None:
        try:
            with np.errstate(all="ignore"), tracing(trace := Bounded()):
                want = interpret(jaxpr, args)
        except TooLong:
            self.counts["long"] += 1
            return None
        except BackendError as e:
            if "can't run rng_uniform" not in str(e) and "can't run rng_bit_generator" not in str(e):
                return {"kind": "the reference can't", "what": str(e)[:600]}
            want = None
        except NotImplementedError as e:
            if "platform_dependent has no branch for the platform 'reference'" not in str(e):
                return {"kind": "the reference can't", "what": str(e)[:600]}
            want = None  # one for other platforms alone
        except Exception as e:
            return {"kind": "the reference fails", "what": f"{type(e).__name__}: {e}"[:600]}
        try:
            got = self.platform(digest, program, args, size, seed)
        except Exception as e:
            if deliberate(root := origin(e)) and self.lacks(root):
                self.counts["refused"] += 1
                return None
            return {"kind": f"{self.name} fails", "what": f"{type(e).__name__}: {e}"[:900]}
        self.counts["ran"] += 1
        if want is None:
            return None
        return self.compare(jaxpr, args, got, want, trace.finite)

    def platform(self, digest: bytes, program, args: list, size: int, seed: int) -> list[np.ndarray]:
        """The results of a program that the reader has accepted."""
        executable = self.programs.compile(digest, program, size, self.device, "mutant", (False,) * len(args))
        put = [self.backend.put(a, v.aval, self.device, True) for a, v in zip(args, program.jaxpr.invars)]
        return [np.asarray(o) for o in executable.execute(put)]

    def lacks(self, e: BaseException) -> bool:
        """Whether a platform says that it can't run a program, in words for its user."""
        return any(words in str(e) for words in LACKS)

    def compare(self, jaxpr, args, got, want, finite: bool) -> dict | None:
        names = primitives(jaxpr)
        limit = (
            0.0
            if names <= EXACT
            else max([1e-3, *[8 * float(limits.finfo(n).eps) for n in dtypes_of(jaxpr) if n.startswith(LOW)]])
        )
        # which has neither zero nor sign: XLA computes in wider types, and rounds later
        loose = (
            bool(names & CHOICE)
            or not in_any_order(jaxpr)
            or not finite
            and bool(names & SIGNED)
            or "float8_e8m0fnu" in dtypes_of(jaxpr)
            or on_a_cut(jaxpr)
        )
        wrong = []
        for k, (g, w) in enumerate(zip(got, want, strict=True)):
            if g.shape != w.shape or g.dtype != w.dtype:
                return {
                    "kind": "another type",
                    "what": f"result {k} is {g.dtype}{list(g.shape)}, in the reference {w.dtype}{list(w.shape)}",
                }
            if not loose and (off(g, w) > limit).any():
                wrong.append(k)
        if not wrong:
            return None
        moved = self.spread(jaxpr, args, want)
        for k in wrong:
            wide = [x.astype(complex) for x in (got[k], want[k])]
            matters = finite | np.isfinite(wide[0]) & np.isfinite(wide[1])
            if (matters & (off(got[k], want[k]) > limit + moved[k])).any():
                return {
                    "kind": "another value",
                    "what": f"result {k} is {got[k]!r}, in the reference {want[k]!r}"[:1200],
                    "args": repr(args)[:600],
                }
        return None

    @staticmethod
    def spread(jaxpr, args, want) -> list[np.ndarray]:
        """How far rounding errors carry: a program may compare, round or sort what was rounded."""
        most = [np.zeros(w.shape) for w in want]
        for seed, size in enumerate((1e-7, 1e-6, 1e-5, 1e-4)):
            rng = np.random.default_rng(seed)
            try:
                with np.errstate(all="ignore"), tracing(Rounding(rng, size)):
                    other = interpret(jaxpr, [nudge(rng, a, size) for a in args])
            except TooLong:
                return [np.full(w.shape, np.inf) for w in want]
            most = [np.maximum(m, 30 * off(o, w)) for m, o, w in zip(most, other, want)]
        return most


class CompiledHere(Judge):
    """What becomes of programs on Wasm or WebGPU, in each of their configurations, as of those that a page reads
    from files.
    """

    def __init__(self, platform: str):
        super().__init__()
        self.name = platform

    def platform(self, digest, program, args, size, seed) -> list[np.ndarray]:
        target = target_for(self.name, seed)
        with target.here() as device:
            try:
                return [np.asarray(o) for o in run_jaxpr(ClosedJaxpr(program.jaxpr, []), args, "mutant", device=device)]
            finally:
                target.check(device)

    def lacks(self, e: BaseException) -> bool:
        return isinstance(e, LoweringError) or super().lacks(e)


# files and frames -----------------------------------------------------------------------------------------------------


def _affine(x, bits):
    return {
        "y": jnp.tanh(x @ CONSTANTS[0]) + CONSTANTS[1].astype("float32"),
        "z": jnp.where(CONSTANTS[2], bits, CONSTANTS[3].astype("int32")),
    }


CONSTANTS = [
    np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3),
    np.ones(3, "bfloat16"),
    np.array([True, False, True]),
    np.array([1, -2, 7]).astype("int4"),
    np.arange(3, dtype=np.complex64),
]


def _code_of_someone(code: types.CodeType) -> types.CodeType:
    return code.replace(
        co_filename="/home/someone/model.py",
        co_consts=tuple([_code_of_someone(c) if isinstance(c, types.CodeType) else c for c in code.co_consts]),
    )


def _of_someone(fun: types.FunctionType) -> types.FunctionType:
    """A function whose lines are of no file of this process: errors may say them."""
    fun.__code__ = _code_of_someone(fun.__code__)
    return fun


def _exports() -> list:
    """(fields of a file, and of its derivative's where it has one)."""
    n = export.symbolic_shape("n")[0]
    spec = weft.ShapeDtypeStruct
    made = [
        (_affine, (spec((2, 4), "float32"), spec((3,), "int32")), 0),
        (lambda x: jnp.sin(x * CONSTANTS[0][0, 0]).sum(), (spec((n, 3), "float32"),), 1),
        (
            lambda k, c: (weft.random.normal(k, (2,)), c * CONSTANTS[4]),
            (weft.random.key(0), spec((3,), "complex64")),
            0,
        ),
        (
            lambda t: lax.fori_loop(0, 3, lambda i, v: v + jnp.asarray(CONSTANTS[0])[i], t["a"][0]),
            ({"a": [spec((3,), "float32"), None]},),
            0,
        ),
    ]
    return [
        recorded(
            artifact,
            _of_someone(
                lambda f=f, args=args, order=order: export.export(weft.jit(_of_someone(f)))(*args).serialize(order)
            ),
        )
        for f, args, order in made
    ]


def signed(fields: list) -> bytes:
    """A file with a check sum that fits."""
    body = emit(fields)
    return artifact.MAGIC + bytes([artifact.VERSION]) + hashlib.sha256(body).digest() + body


class FileJudge(Judge):
    def __init__(self):
        super().__init__()
        self.files = _exports()
        ones = np.ones(3, np.float32).tobytes()
        messages = [
            p.Put(1, 2, shaped((3,), dtypes.float32), 0, ones),
            p.Put(2, 3, shaped((2, 2), dtypes.bool_), 0, b"\1\0\1\1"),
            p.Put(3, 4, shaped((4,), dtypes.dtype("int4")), 0, b"\1\2\7\x0f"),
            p.Put(3, 4, shaped((4,), dtypes.dtype("float4_e2m1fn")), 0, b"\1\2\7\x0f"),
            p.Part(4, 2, b"abc"),
            p.Program(5, bytes(32), 4, b"weft"),
            p.Compile(6, 5, bytes(32), 0, "f", (True, False)),
            p.Execute(7, 5, (2, 3), (8,)),
            p.ExecuteReporting(8, 5, (2, 3), (8,)),
            p.Reported(3),
            p.CompileSpread(9, 5, bytes(32), (0, 1), (1, 2), (1, 1, 1, 0, 0), "f", (True,)),
            p.Copy(9, 8, 2, 1),
            p.Result(9, 1, True, b"\0\0\0\0"),
            p.Raised(9, 1),
            p.Fetch(8, 2),
            p.Free(9, (2, 3)),
            p.Inspect(10, 5, "text", ""),
            p.Settled((1, 2)),
            p.Credit(1, 2),
            p.Welcome("0f", b"s", 0, 1, 2, 3, ("cpu", "c")),
            p.Error(1, 2, "E", "m"),
        ]
        self.messages = [recorded(codec, lambda m=m: p.encode(m))[0] for m in messages]

    def __call__(self, seed: int) -> dict | None:
        rng = random.Random(seed)
        return self.file(seed, rng) if rng.random() < 0.5 else self.frame(rng)

    def refusal(self, e: Exception) -> dict | None:
        self.counts["refused"] += 1
        problem = unclear(e)
        return {"kind": "unclear refusal", "what": problem, "message": str(e)} if problem else None

    # exported programs

    def file(self, seed: int, rng: random.Random) -> dict | None:
        outer, *inner = rng.choice(self.files)
        others = [f for file in self.files for f in file]
        if inner and rng.random() < 0.4:
            fields = [*outer[:-1], ("bytes", signed(mutant_fields(rng, inner[0], others)))]
        else:
            fields = mutant_fields(rng, outer, others)
        try:
            found = export.deserialize(signed(fields))
        except DeserializationError as e:
            return self.refusal(e)
        except Exception as e:
            return {"kind": "error of the reader", "what": f"{type(e).__name__}: {e}"}
        self.counts["read"] += 1
        for c in found._closed.consts:
            if host.foreign(bytes(host.to_bytes(c)), c.dtype) is not None:
                return {"kind": "a value that is none", "what": f"{c!r} holds {bytes(host.to_bytes(c))!r}"}
        again = export.deserialize(found.serialize(1 if found.has_vjp() else 0))
        said = [
            [
                str(v)
                for v in (
                    e.fun_name,
                    e.in_avals,
                    e.out_avals,
                    e.in_tree,
                    e.out_tree,
                    e.platforms,
                    e.disabled_safety_checks,
                )
            ]
            for e in (found, again)
        ]
        if said[0] != said[1] or [bytes(host.to_bytes(c)) for c in found._closed.consts] != [
            bytes(host.to_bytes(c)) for c in again._closed.consts
        ]:
            return {"kind": "another file", "what": f"{said[1]} for {said[0]}"}
        return self.call(seed, found)

    def call(self, seed: int, found) -> dict | None:
        """Runs what was read, on XLA and in the interpreter."""
        try:
            sizes = dict.fromkeys(found._variables, 2)
            if found._scope is not None:
                check_constraints(found._scope, sizes, found.fun_name)
            closed = found._form(sizes)[0]
        except Exception as e:
            return None if deliberate(origin(e)) else {"kind": "can't be called", "what": f"{type(e).__name__}: {e}"}
        if sum(math.prod(a.shape) * dtypes.itemsize(a.dtype) for a in closed.in_avals) > BYTES:
            return None
        with enable_x64(found._x64):
            args = [argument(np.random.default_rng(seed), a) for a in closed.in_avals]
            try:
                with np.errstate(all="ignore"), tracing(trace := Bounded()):
                    want = interpret(closed, args)
            except TooLong:
                return None
            try:
                got = [np.asarray(o) for o in run_jaxpr(closed, args, "mutant", device=self.device)]
            except Exception as e:
                return {"kind": "XLA fails", "what": f"{type(e).__name__}: {e}"[:900], "program": str(closed)[:2000]}
            self.counts["ran"] += 1
            open_ = closed.jaxpr.replace(constvars=[], invars=[*closed.jaxpr.constvars, *closed.jaxpr.invars])
            return self.compare(open_, [*map(np.asarray, closed.consts), *args], got, want, trace.finite)

    # frames

    def frame(self, rng: random.Random) -> dict | None:
        parts = [
            (
                mutant_fields(rng, rng.choice(self.messages), self.messages)
                if rng.random() < 0.7
                else rng.choice(self.messages)
            )
            for _ in range(rng.choice((1, 1, 2, 3)))
        ]
        data = emit([f for part in parts for f in part])
        try:
            messages = list(p.decode(data))
        except DeserializationError as e:
            return self.refusal(e)
        except Exception as e:
            return {"kind": "error of the reader", "what": f"{type(e).__name__}: {e}"}
        self.counts["read"] += 1
        if list(p.decode(p.encode(*messages))) != messages:
            return {"kind": "another frame", "what": f"{messages}"}
        for m in messages:
            if isinstance(m, p.Put) and nbytes(m.aval) == len(m.data) <= BYTES:
                x = host_array(bytearray(m.data), m.aval)
                back = bytes(host_bytes(self.backend.put(x, m.aval, self.device, True)))
                if (
                    x.shape != m.aval.shape
                    or x.dtype != m.aval.dtype
                    or host.foreign(bytes(host.to_bytes(x)), x.dtype) is not None
                    or host.foreign(back, x.dtype) is not None
                    or not dtypes.is_bool(x.dtype)
                    and dtypes.bits(x.dtype) >= 8
                    and back != m.data
                ):
                    return {
                        "kind": "another array",
                        "what": f"{m.data!r} of {m.aval} became {x!r}, and on the device {back!r}",
                    }
                self.counts["ran"] += 1
        return None


# the process ----------------------------------------------------------------------------------------------------------


class Slow(BaseException):
    """A mutant takes too long. No `except Exception` keeps it."""


def _slow(signum, frame):
    raise Slow


def main() -> None:
    first, count = map(int, sys.argv[1:3])
    what = (sys.argv[3:] or ["programs"])[0]
    memory = 12 << 30
    # addresses that nothing stands at are for engines to reserve
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    signal.signal(signal.SIGALRM, _slow)
    judge = CompiledHere(what) if what in TARGETS else FileJudge() if what == "files" else Judge()
    for seed in range(first, first + count):
        print(seed, flush=True)
        signal.alarm(SECONDS)
        try:
            found = judge(seed)
        except Slow:
            found = {"kind": "slow", "what": f"more than {SECONDS} s"}
        finally:
            signal.alarm(0)
        if found is not None:
            print(json.dumps({"seed": seed, **found}), flush=True)
    print(json.dumps({"counts": judge.counts}), flush=True)


if __name__ == "__main__":
    main()
