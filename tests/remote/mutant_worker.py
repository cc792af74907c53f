"""A process that reads mutants of programs as a host does, and runs those that it accepts on XLA and in the reference interpreter.

    python mutant_worker.py FIRST COUNT        # before each seed a line with it; after it, where something is wrong, a line of JSON

What becomes of a process that ends here, or never ends, is its parent's to say (`test_mutations.py`).
"""
from __future__ import annotations

import collections
import dis
import functools
import hashlib
import json
import math
import os
import pathlib
import resource
import signal
import sys
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "ops")]
warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
from catalogue import ROWS  # noqa: E402
from mutants import Body, Source, mutant  # noqa: E402
from programs import PROGRAMS  # noqa: E402

import weft  # noqa: E402
import weft.numpy as jnp  # noqa: E402
from weft import dtypes, lax  # noqa: E402
from weft.config import enable_x64  # noqa: E402
from weft.core.binary import DeserializationError  # noqa: E402
from weft.core.interpret import ReferenceTrace, interpret  # noqa: E402
from weft.core.jaxpr import Jaxpr, subjaxprs  # noqa: E402
from weft.core.portable import NotPortable, portable  # noqa: E402
from weft.core.trace import tracing  # noqa: E402
from weft.errors import BackendError  # noqa: E402
from weft.runtime.device import backend_of  # noqa: E402
from weft.runtime.dispatch import program_for  # noqa: E402
from weft_native.host.limits import Limits  # noqa: E402
from weft_native.host.programs import Programs  # noqa: E402
from weft_native.host.values import host_array  # noqa: E402
from weft_remote.errors import LimitError  # noqa: E402

STEPS, BYTES = 2_000, 1 << 16      # primitives that the interpreter applies; bytes of one result
SECONDS = 20                       # of one mutant


# what is changed ------------------------------------------------------------------------------------------------------


def _loops(x):
    """Loops in loops, with conditions, counts and indices that go round them."""
    def body(c, row):
        def more(state):
            _, n, total = state
            n = n + 1
            return n < row, n, total + n
        _, n, total = lax.while_loop(lambda state: state[0], more, (jnp.bool_(True), jnp.int32(0), c))
        return lax.cond(n > 2, lambda t: lax.fori_loop(0, 3, lambda i, s: s + i, t), lambda t: t * 2, total), lax.dynamic_index_in_dim(x, n % 4, keepdims=False)
    return lax.scan(body, jnp.int32(1), x)


def _calls(x):
    inner = weft.jit(lambda v: jnp.sin(v) * v)
    return weft.vmap(lambda v: lax.switch(jnp.int32(v), [inner, lambda u: inner(u) + 1, weft.checkpoint(inner)], v))(x), lax.associative_scan(lambda a, b: a * b, x)


CONTROL = {"loops": (_loops, (np.array([3, 4, 5, 2], np.int32),)), "calls": (_calls, (np.arange(3, dtype=np.float32),)),
           "gradient of loops": (lambda x: weft.grad(lambda v: lax.scan(lambda c, r: (c * jnp.sin(r), lax.cond(r > 0, jnp.cos, jnp.tanh, c)), v[0], v)[0])(x),
                                 (np.linspace(-1, 1, 4, dtype=np.float32),)),
           "pool": (lambda x: weft.grad(lambda v: lax.reduce_window(v, -np.inf, lax.max, (2, 2), (1, 2), "SAME").sum())(x), (np.arange(12, dtype=np.float32).reshape(3, 4),))}


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
            of_one = lambda v: row.fun(*args[:first], v, *args[first + 1:])
            fun = (lambda *xs: weft.jvp(of_one, (args[first],), (xs[first],))[1]) if form == 2 else (lambda *xs: weft.vjp(of_one, xs[first])[1](row.fun(*xs)))
    else:
        fun, args = [*PROGRAMS.values(), *CONTROL.values()][(number - 4 * len(ROWS)) % (len(PROGRAMS) + len(CONTROL))]
    try:
        return Source.of(portable(program_for(weft.make_jaxpr(fun)(*args))[0])[0])
    except (NotPortable, NotImplementedError):
        return None


SOURCES = 4 * len(ROWS) + 12 * (len(PROGRAMS) + len(CONTROL))      # programs with control flow come oftener


def bytes_of(seed: int) -> bytes:
    number = seed * 7919      # neighbours differ
    while (body := source(number % SOURCES)) is None:
        number += 1
    return mutant(seed, body)


# refusals -------------------------------------------------------------------------------------------------------------

_RAISE = dis.opmap["RAISE_VARARGS"]


def origin(e: BaseException) -> BaseException:
    while e.__cause__ is not None:
        e = e.__cause__
    return e


def deliberate(e: BaseException) -> bool:
    """Whether somebody wrote `raise` for this, in code of ours, instead of Python or NumPy tripping over it."""
    if isinstance(e, (AssertionError, RecursionError, MemoryError)):
        return False
    tb = e.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    if tb is None:
        return False
    code = tb.tb_frame.f_code
    return code.co_filename.startswith(str(ROOT)) and code.co_code[tb.tb_lasti] == _RAISE


def unclear(e: Exception) -> str | None:
    """What is wrong with an error that a client would be told."""
    text = str(e)
    root = origin(e)
    if not deliberate(root):
        return f"an accident: {type(root).__name__}: {root}"
    if "(at byte " not in text and not isinstance(e, LimitError):
        return "it does not say where"
    if str(ROOT) in text or "Traceback" in text or "site-packages" in text or text.count("\n") > 10 or len(text) > 4000:
        return "it shows the host, or too much"
    return None


# runs -----------------------------------------------------------------------------------------------------------------


class TooLong(Exception):
    """A program that may go on for ever."""


class Bounded(ReferenceTrace):
    """The reference rules, for so many steps."""

    def __init__(self, steps: int = STEPS):
        self.steps = steps
        self.finite = True      # whether all that was computed was finite: a compiler may write a / (b / c) as a * c / b

    def process(self, primitive, args, params):
        self.steps -= 1
        if self.steps < 0:
            raise TooLong
        out = super().process(primitive, args, params)
        if self.finite and primitive.name not in EXACT:
            self.finite = all([not isinstance(o, np.ndarray) or o.dtype.kind not in "fcV" or o.dtype == dtypes.float0 or np.isfinite(o.astype(complex)).all()
                               for o in (out if primitive.multiple_results else [out])])
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
EXACT = set("""broadcast_in_dim reshape transpose squeeze concatenate slice dynamic_slice dynamic_update_slice gather rev pad select_n copy iota sort argmax argmin reduce_max
    reduce_min max min neg abs sign convert_element_type bitcast_convert_type eq ne lt le gt ge jit scan while cond remat2 split tile complex real imag conj
    optimization_barrier reduce_window_max reduce_window_min cummax cummin clamp stop_gradient expand_dims scatter scatter-max scatter-min""".split())
# Where a platform may choose: vectors of a decomposition by their sign, and of equal values in any order; random numbers of the platform's own.
CHOICE = set("eig eigh svd qr schur hessenberg geqrf geqp3 lu householder_product ormqr tridiagonal rng_uniform approx_top_k rng_bit_generator".split())
LOW = ("float16", "bfloat16", "float8", "float4")


def nudge(rng: np.random.Generator, a, size: float):
    a = np.asarray(a)
    if not (dtypes.is_float(a.dtype) or dtypes.is_complex(a.dtype)):
        return a
    size = max(size, float(dtypes.finfo(a.dtype).eps) / 2)
    with np.errstate(all="ignore"):
        wide = a.astype(np.complex128 if dtypes.is_complex(a.dtype) else np.float64)
        return (wide * (1 + size * rng.uniform(-1, 1, size=a.shape))).astype(a.dtype)


def argument(rng: np.random.Generator, aval) -> np.ndarray:
    """An array as the wire makes one."""
    name, shape = dtypes.name(aval.dtype), aval.shape
    if name == "float0":
        return np.zeros(shape, dtypes.float0)
    if dtypes.is_bool(aval.dtype):
        return rng.random(shape) < 0.5
    if dtypes.is_int(aval.dtype):
        low = -6 if dtypes.is_signed(aval.dtype) else 0
        if dtypes.bits(aval.dtype) < 8:
            return host_array(bytearray(rng.bytes(math.prod(shape))), aval)
        return rng.integers(low, 7, shape).astype(aval.dtype)
    values = rng.normal(size=shape) if not dtypes.is_complex(aval.dtype) else rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return np.asarray(values).astype(aval.dtype)


def primitives(jaxpr: Jaxpr) -> set[str]:
    names = {e.primitive.name for e in jaxpr.eqns}
    for e in jaxpr.eqns:
        for sub in subjaxprs(e.params):
            names |= primitives(sub)
    return names


def dtypes_of(jaxpr: Jaxpr) -> set[str]:
    names = {dtypes.name(v.aval.dtype) for e in jaxpr.eqns for v in (*e.invars, *e.outvars) if hasattr(v.aval, "dtype")} | {dtypes.name(a.dtype) for a in jaxpr.in_avals}
    for e in jaxpr.eqns:
        for sub in subjaxprs(e.params):
            names |= dtypes_of(sub)
    return names


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
            problem = unclear(e)
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
        except Exception as e:
            return {"kind": "the reference fails", "what": f"{type(e).__name__}: {e}"[:600]}
        try:
            executable = self.programs.compile(digest, program, size, self.device, "mutant", (False,) * len(args))
            put = [self.backend.put(a, v.aval, self.device, True) if v.aval.dtype != dtypes.float0 else
                   self.backend.put(np.zeros(a.shape, bool), v.aval.update(dtype=dtypes.bool_), self.device, True) for a, v in zip(args, jaxpr.invars)]
            got = [np.asarray(o) for o in executable.execute(put)]
        except Exception as e:
            return {"kind": "XLA fails", "what": f"{type(e).__name__}: {e}"[:900]}
        self.counts["ran"] += 1
        if want is None:
            return None
        return self.compare(jaxpr, args, got, want, trace.finite)

    def compare(self, jaxpr, args, got, want, finite: bool) -> dict | None:
        names = primitives(jaxpr)
        limit = 0.0 if names <= EXACT else max([1e-3, *[8 * float(dtypes.finfo(n).eps) for n in dtypes_of(jaxpr) if n.startswith(LOW)]])
        loose = bool(names & CHOICE) or "float8_e8m0fnu" in dtypes_of(jaxpr)      # which has neither zero nor sign: XLA computes in wider types, and rounds later
        wrong = []
        for k, (g, w, v) in enumerate(zip(got, want, jaxpr.outvars, strict=True)):
            if v.aval.dtype == dtypes.float0:
                continue
            if g.shape != w.shape or g.dtype != w.dtype:
                return {"kind": "another type", "what": f"result {k} is {g.dtype}{list(g.shape)}, in the reference {w.dtype}{list(w.shape)}"}
            if not loose and (off(g, w) > limit).any():
                wrong.append(k)
        if not wrong:
            return None
        moved = self.spread(jaxpr, args, want)
        for k in wrong:
            wide = [x.astype(complex) for x in (got[k], want[k])]
            matters = finite | np.isfinite(wide[0]) & np.isfinite(wide[1])
            if (matters & (off(got[k], want[k]) > limit + moved[k])).any():
                return {"kind": "another value", "what": f"result {k} is {got[k]!r}, in the reference {want[k]!r}"[:1200], "args": repr(args)[:600]}
        return None

    @staticmethod
    def spread(jaxpr, args, want) -> list[np.ndarray]:
        """How far rounding errors carry: a program may compare, round or sort what was rounded."""
        most = [np.zeros(w.shape) for w in want]
        for seed, size in enumerate((1e-7, 1e-6, 1e-5, 1e-4)):
            rng = np.random.default_rng(seed)
            try:
                with np.errstate(all="ignore"), tracing(Rounding(rng, size)):
                    other = interpret(jaxpr, [nudge(rng, a, size) if a.dtype != dtypes.float0 else a for a in args])
            except TooLong:
                return [np.full(w.shape, np.inf) for w in want]
            most = [np.maximum(m, 30 * off(o, w)) if w.dtype != dtypes.float0 else m for m, o, w in zip(most, other, want)]
        return most


# the process ----------------------------------------------------------------------------------------------------------


class Slow(BaseException):
    """A mutant takes too long. No `except Exception` keeps it."""


def _slow(signum, frame):
    raise Slow


def main() -> None:
    first, count = map(int, sys.argv[1:3])
    memory = 12 << 30
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    signal.signal(signal.SIGALRM, _slow)
    judge = Judge()
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
