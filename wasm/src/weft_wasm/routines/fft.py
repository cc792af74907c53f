"""The discrete Fourier transform of real and imaginary planes in loop IR: Stockham's passes, one for each factor of the
length, which need no reordering.

A transform that does not fit the nearest caches uses two or three passes of large factors instead, each over a few
columns at a time, which are transformed by small passes in private buffers (D. Bailey's four steps).
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Sequence

from weft_wasm.ir.nodes import (
    Binary,
    Buffer,
    Const,
    Expr,
    For,
    Kernel,
    Let,
    Load,
    Stmt,
    Store,
    Unary,
    Var,
    add,
    convert,
    i32,
    mul,
    sub,
)
from weft_wasm.routines.gemm import Routine

LARGEST = 31  # the largest prime factor with its own passes
TABLE = 1 << 13  # longer tables of roots of unity are products of two short ones
FITS = 1 << 13  # the longest transform whose passes process all of it
TALL = 1 << 10  # the largest factor of a longer one
COLUMNS = (16, 8, 4)  # how many are transformed at a time
Complex = tuple[Expr, Expr]
Element = Callable[[Expr, Expr], Complex]  # (batch, position) → (re, im)


def factors(n: int) -> list[int] | None:
    """The passes of a transform of length n, eights and fours first; None where a prime factor is too large."""
    out: list[int] = []
    while n % 8 == 0 and n != 16:
        out.append(8)
        n //= 8
    for p in (4, 2, 3, 5, *range(7, LARGEST + 1, 2)):
        while n % p == 0:
            out.append(p)
            n //= p
    return out if n == 1 else None


def _factors(n: int) -> list[int]:
    """The passes of a length that is known to have some."""
    found = factors(n)
    if found is None:
        raise ValueError(f"{n} has a prime factor above {LARGEST}")
    return found


def fft(
    name: str,
    batch: int,
    n: int,
    element: Element,
    re: Buffer,
    im: Buffer,
    constant: Callable[[str, bytes], Buffer],
    scale: float = 1.0,
    wide: bool = True,
) -> Routine:
    """The transforms of `batch` rows of n elements, times `scale`, into re and im. `n` has `factors`, and more than one
    element.

    The buffers may not be storage that `element` reads. constant(dtype, bytes): a constant buffer of the program. wide:
    there is f64, and private memory for each thread.
    """
    dtype = re.dtype
    talls = tall_factors(n) if wide else None
    if talls:
        return _by_columns(name, batch, n, talls, element, (re, im), constant, scale, wide)
    passes = _factors(n)
    spare = [
        [Buffer(f"{name}.{k}{part}", dtype, (batch, n)) for part in ("re", "im")]
        for k in range(min(len(passes) - 1, 2))
    ]
    table = Roots(n, dtype, constant, wide)
    kernels, done = [], 1
    for k, radix in enumerate(passes):
        last = k == len(passes) - 1
        source = element if k == 0 else _planes(spare[(k - 1) % 2], n)
        target = [re, im] if last else spare[k % 2]
        kernels.append(_pass(f"{name}_{k}", batch, n, radix, done, source, target, table, scale if last else 1.0))
        done *= radix
    return Routine(kernels, [b for pair in spare for b in pair])


def _planes(buffers: Sequence[Buffer], n: int) -> Element:
    return lambda b, i: _loaded(buffers, add(mul(b, n), i))


def _loaded(buffers: Sequence[Buffer], at: Expr) -> Complex:
    re, im = buffers
    return Load(re, at), Load(im, at)


def _scaled(z: Complex, by: float) -> Complex:
    return mul(z[0], by), mul(z[1], by)


def _pass(
    name: str,
    batch: int,
    n: int,
    radix: int,
    done: int,
    source: Element,
    target: Sequence[Buffer],
    table: Roots,
    scale: float,
) -> Kernel:
    """[radix, rest, done] → [rest, radix, done]: transforms over the first axis, turned by the roots that the later
    passes want.
    """
    rest = n // (radix * done)
    b, p, q = Var("b"), Var("p"), Var("q")
    names = Bindings()
    inside: list[Stmt] = []
    xs = [names.pair(inside, source(b, add(mul(add(p, u * rest), done), q))) for u in range(radix)]
    ys = transform(xs, inside, names)
    outside: list[Stmt] = []
    for v, y in enumerate(ys):
        if v and rest > 1:
            y = turned(y, names.pair(outside, table.root(mul(p, v * done))), inside, names)
        if scale != 1.0:
            y = _scaled(y, scale)
        index = add(mul(b, n), add(mul(add(mul(p, radix), v), done), q))
        inside += [Store(buffer, index, part) for buffer, part in zip(target, y)]
    body: list[Stmt] = [For(q, done, inside, "parallel")] if done > 1 else [Let(q, i32(0)), *inside]
    body = [For(p, rest, [*outside, *body], "parallel")] if rest > 1 else [Let(p, i32(0)), *outside, *body]
    return Kernel(name, [For(b, batch, body, "parallel")])


def tall_factors(n: int) -> list[int] | None:
    """Factors of about the same size for a transform by columns; None if there are none."""
    if n <= FITS:
        return None
    primes = [p for f in _factors(n) for p in ([2] * (f.bit_length() - 1) if f in (4, 8) else [f])]
    talls = [1] * -(-math.ceil(math.log2(n)) // (TALL.bit_length() - 1))
    for p in sorted(primes, reverse=True):
        talls[talls.index(min(talls))] *= p
    done = [math.prod(talls[:k]) for k in range(len(talls))]
    fits = all(t <= 2 * TALL and (n // t if d == 1 else d) % COLUMNS[-1] == 0 for t, d in zip(talls, done))
    return talls if fits else None


def _by_columns(
    name: str,
    batch: int,
    n: int,
    talls: list[int],
    element: Element,
    out: Sequence[Buffer],
    constant: Callable[[str, bytes], Buffer],
    scale: float,
    wide: bool,
) -> Routine:
    dtype = out[0].dtype
    spare = [
        [Buffer(f"{name}.{k}{part}", dtype, (batch, n)) for part in ("re", "im")] for k in range(min(len(talls) - 1, 2))
    ]
    temps = [b for pair in spare for b in pair]
    table = Roots(n, dtype, constant, wide)
    kernels, done = [], 1
    for k, tall in enumerate(talls):
        last = k == len(talls) - 1
        source = element if k == 0 else _planes(spare[(k - 1) % 2], n)
        kernel, rooms = _columns(
            f"{name}_{k}",
            batch,
            n,
            tall,
            done,
            source,
            out if last else spare[k % 2],
            table,
            scale if last else 1.0,
            constant,
        )
        kernels.append(kernel)
        temps += rooms
        done *= tall
    return Routine(kernels, temps)


def _columns(
    name: str,
    batch: int,
    n: int,
    tall: int,
    done: int,
    source: Element,
    target: Sequence[Buffer],
    table: Roots,
    scale: float,
    constant: Callable[[str, bytes], Buffer],
) -> tuple[Kernel, list[Buffer]]:
    """As `_pass`, for a radix that has factors: [tall, rest, done] → [rest, tall, done], a few columns of rest ×
    done at a time.
    """
    dtype, rest = target[0].dtype, n // (tall * done)
    width = next(w for w in COLUMNS if (rest if done == 1 else done) % w == 0)
    pitch = width + 4  # lines at equal distances of a power of two would all want the same place in the cache
    rooms = [[Buffer(f"{name}.{k}{part}", dtype, (tall, pitch), "private") for part in ("re", "im")] for k in range(2)]
    roots = Roots(tall, dtype, constant, False)
    b, p, j = Var("b"), Var("p"), Var("j")
    at = lambda row, c: add(mul(row, pitch), c)  # noqa: E731
    steps: list[Stmt] = []
    count, small = 1, _factors(tall)
    for k, radix in enumerate(small):
        final = k == len(small) - 1 and done > 1
        left = tall // (radix * count)
        u, q, c = Var("u"), Var("q"), Var("c")
        names = Bindings()
        inside: list[Stmt] = []
        rows = [add(mul(add(u, v * left), count), q) for v in range(radix)]
        column = add(mul(j, width), c) if done == 1 else add(mul(p, done), add(mul(j, width), c))
        xs = [
            source(b, add(mul(row, rest * done), column)) if k == 0 else _loaded(rooms[(k - 1) % 2], at(row, c))
            for row in rows
        ]
        ys = transform([names.pair(inside, x) for x in xs], inside, names)
        for v, y in enumerate(ys):
            row = add(mul(add(mul(u, radix), v), count), q)
            if v and left > 1:
                y = turned(y, roots.root(mul(u, v * count)), inside, names)
            if final and rest > 1:
                y = turned(y, table.root(mul(mul(p, row), done)), inside, names)
            if final and scale != 1.0:
                y = _scaled(y, scale)
            index = (
                add(mul(b, n), add(mul(add(mul(p, tall), row), done), add(mul(j, width), c))) if final else at(row, c)
            )
            inside += [Store(x, index, part) for x, part in zip(target if final else rooms[k % 2], y)]
        steps.append(
            For(u, left, [For(q, count, [For(c, width, inside, "parallel", vector=1)], "parallel")], "parallel")
        )
        count *= radix
    if done == 1:
        steps.append(_transposed(n, tall, width, rooms[(len(small) - 1) % 2], pitch, target, table, constant, b, j))
        body = For(j, rest // width, steps, "parallel")
    else:
        body = For(p, rest, [For(j, done // width, steps, "parallel")], "parallel")
    return Kernel(name, [For(b, batch, [body], "parallel")]), [x for pair in rooms for x in pair]


def _transposed(
    n: int,
    tall: int,
    width: int,
    room: Sequence[Buffer],
    pitch: int,
    target: Sequence[Buffer],
    table: Roots,
    constant: Callable[[str, bytes], Buffer],
    b: Var,
    j: Var,
) -> For:
    """The columns turned by the roots that the later passes want, and stored as rows: root (j·width + c)·v is root
    j·width·v times root c·v.
    """
    near = [
        constant(target[0].dtype, struct.pack(f"<{tall * width}{'f' if target[0].dtype == 'f32' else 'd'}", *part))
        for part in zip(*[circle(c * v, n) for v in range(tall) for c in range(width)])
    ]
    group = next(g for g in (4, 2, 1) if tall % g == 0)
    i, c = Var("i"), Var("c")
    names = Bindings()
    outside: list[Stmt] = []
    inside: list[Stmt] = []
    turns: list[Complex] = []
    for v in range(group):
        row = add(mul(i, group), v)
        far = names.pair(outside, table.root(mul(mul(j, width), row)))
        w = turned(far, _loaded(near, add(mul(row, width), c)), inside, names)
        turns.append(turned(_loaded(room, add(mul(row, pitch), c)), w, inside, names))
    for x, parts in zip(target, zip(*turns)):
        inside += [
            Store(x, add(mul(b, n), add(mul(add(mul(j, width), c), tall), add(mul(i, group), v))), part)
            for v, part in enumerate(parts)
        ]
    return For(i, tall // group, [*outside, For(c, width, inside, "parallel", vector=1)], "parallel")


class Bindings:
    """Variables for what several statements share."""

    def __init__(self) -> None:
        self.count = 0

    def bind(self, body: list[Stmt], e: Expr) -> Expr:
        if type(e) in (Const, Var):
            return e
        self.count += 1
        var = Var(f"z{self.count}", e.dtype)
        body.append(Let(var, e))
        return var

    def pair(self, body: list[Stmt], z: Complex) -> Complex:
        return self.bind(body, z[0]), self.bind(body, z[1])


class Roots:
    """exp(-2πi k/n) for 0 ≤ k < n, from constant tables."""

    def __init__(self, n: int, dtype: str, constant: Callable[[str, bytes], Buffer], wide: bool):
        self.dtype, self.shift = dtype, 0 if n <= TABLE or not wide else (n - 1).bit_length() // 2
        kind, short = "f64" if self.shift else dtype, 1 << self.shift

        def tables(step: int, count: int) -> list[Buffer]:
            code = f"<{count}{'f' if kind == 'f32' else 'd'}"
            return [
                constant(kind, struct.pack(code, *part)) for part in zip(*[circle(j * step, n) for j in range(count)])
            ]

        self.low = tables(1, short) if self.shift else None
        self.high = tables(short, -(-n // short))

    def root(self, k: Expr) -> Complex:
        if self.low is None:
            return _loaded(self.high, k)
        high = _loaded(self.high, Binary("shr", k, i32(self.shift)))
        low = _loaded(self.low, Binary("and", k, i32((1 << self.shift) - 1)))
        re, im = sub(mul(high[0], low[0]), mul(high[1], low[1])), add(mul(high[0], low[1]), mul(high[1], low[0]))
        return convert(re, self.dtype), convert(im, self.dtype)


def circle(k: int, n: int) -> tuple[float, float]:
    """(cos, sin) of -2π k/n, from angles of at most π/4, so that both are right to the last bit."""
    k = k % n * 8
    octant, rest = divmod(k, n)
    if octant % 2:
        rest = n - rest
    angle = math.pi * rest / (4 * n)
    c, s = math.cos(angle), math.sin(angle)
    if octant in (1, 2, 5, 6):
        c, s = s, c
    return -c if octant in (2, 3, 4, 5) else c, s if octant >= 4 else -s


def plus(x: Complex, y: Complex) -> Complex:
    return add(x[0], y[0]), add(x[1], y[1])


def minus(x: Complex, y: Complex) -> Complex:
    return sub(x[0], y[0]), sub(x[1], y[1])


def turned(x: Complex, w: Complex, body: list[Stmt], names: Bindings) -> Complex:
    """x · w."""
    return names.pair(body, (sub(mul(x[0], w[0]), mul(x[1], w[1])), add(mul(x[0], w[1]), mul(x[1], w[0]))))


def transform(xs: list[Complex], body: list[Stmt], names: Bindings) -> list[Complex]:
    """The transform of a few numbers, written out."""
    n = len(xs)
    if n == 1:
        return xs
    if n % 2:
        return _odd(xs, body, names)
    evens, odds = transform(xs[0::2], body, names), transform(xs[1::2], body, names)
    low, high = [], []
    for k, (e, o) in enumerate(zip(evens, odds)):
        o = _by_root(o, k, n, body, names)
        low.append(names.pair(body, plus(e, o)))
        high.append(names.pair(body, minus(e, o)))
    return low + high


def _by_root(x: Complex, k: int, n: int, body: list[Stmt], names: Bindings) -> Complex:
    """x · exp(-2πi k/n), without trivial multiplications."""
    re, im = x
    if k == 0:
        return x
    if 4 * k == n:
        return im, Unary("neg", re)
    if 8 * k in (n, 3 * n):
        half = Const(math.sqrt(0.5), re.dtype)
        total, gap = mul(add(re, im), half), mul(sub(im, re), half)
        return names.pair(body, (total, gap) if 8 * k == n else (gap, Unary("neg", total)))
    c, s = circle(k, n)
    return turned(x, (Const(c, re.dtype), Const(s, re.dtype)), body, names)


def _odd(xs: list[Complex], body: list[Stmt], names: Bindings) -> list[Complex]:
    """For each pair x_k, x_{n-k} their sum meets the cosines and their difference the sines."""
    n, first = len(xs), xs[0]
    sums = [names.pair(body, plus(xs[k], xs[n - k])) for k in range(1, n // 2 + 1)]
    gaps = [names.pair(body, minus(xs[k], xs[n - k])) for k in range(1, n // 2 + 1)]
    total = first
    for s in sums:
        total = plus(total, s)
    out = [names.pair(body, total)] + [first] * (n - 1)
    for v in range(1, n // 2 + 1):
        turns = [circle(k * v, n) for k in range(1, n // 2 + 1)]
        even = functools.reduce(plus, (_scaled(s, c) for s, (c, _) in zip(sums, turns)), first)
        odd = functools.reduce(plus, (_scaled(d, t) for d, (_, t) in zip(gaps, turns)))
        even, odd = names.pair(body, even), names.pair(body, odd)
        out[v] = sub(even[0], odd[1]), add(even[1], odd[0])
        out[n - v] = add(even[0], odd[1]), sub(even[1], odd[0])
    return out
