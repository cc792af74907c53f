"""The discrete Fourier transform of real and imaginary planes in loop IR: Stockham's passes, one for each factor of the length, which need no reordering."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence

from weft_wasm.ir import Binary, Buffer, Const, Expr, For, Kernel, Let, Load, Store, Unary, Var, add, convert, i32, mul, sub
from weft_wasm.routines.gemm import Routine

LARGEST = 31  # the largest prime factor that has passes of its own
TABLE = 1 << 13  # longer tables of roots of unity are products of two short ones
Complex = tuple[Expr, Expr]
Element = Callable[[Expr, Expr], Complex]  # (batch, position) → (re, im)


def factors(n: int) -> list[int] | None:
    """The passes of a transform of length n, eights and fours first; None where a prime factor is too large."""
    out = []
    while n % 8 == 0 and n > 32:
        out.append(8)
        n //= 8
    for p in (4, 2, 3, 5, *range(7, LARGEST + 1, 2)):
        while n % p == 0:
            out.append(p)
            n //= p
    return out if n == 1 else None


def fft(name: str, batch: int, n: int, element: Element, re: Buffer, im: Buffer, constant: Callable[[str, bytes], Buffer], scale: float = 1.0,
        wide: bool = True) -> Routine:  # fmt: skip
    """The transforms of `batch` rows of n elements, times `scale`, into re and im. `n` has `factors`, and more than one element.

    The buffers may not be storage that `element` reads. constant(dtype, bytes): a constant buffer of the program. wide: there is f64.
    """
    dtype = re.dtype
    passes = factors(n)
    spare = [[Buffer(f"{name}.{k}{part}", dtype, (batch, n)) for part in ("re", "im")] for k in range(min(len(passes) - 1, 2))]
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
    return lambda b, i: tuple([Load(x, add(mul(b, n), i)) for x in buffers])


def _pass(name: str, batch: int, n: int, radix: int, done: int, source: Element, target: Sequence[Buffer], table: Roots,
          scale: float) -> Kernel:  # fmt: skip
    """[radix, rest, done] → [rest, radix, done]: transforms over the first axis, turned by the roots that the later passes want."""
    rest = n // (radix * done)
    b, p, q = Var("b"), Var("p"), Var("q")
    names = Names()
    inside: list = []
    xs = [names.pair(inside, source(b, add(mul(add(p, u * rest), done), q))) for u in range(radix)]
    ys = transform(xs, inside, names)
    outside: list = []
    for v, y in enumerate(ys):
        if v and rest > 1:
            y = turned(y, names.pair(outside, table.root(mul(p, v * done))), inside, names)
        if scale != 1.0:
            y = tuple([mul(part, scale) for part in y])
        index = add(mul(b, n), add(mul(add(mul(p, radix), v), done), q))
        inside += [Store(buffer, index, part) for buffer, part in zip(target, y)]
    body = [For(q, done, inside, "parallel")] if done > 1 else [Let(q, i32(0)), *inside]
    body = [For(p, rest, [*outside, *body], "parallel")] if rest > 1 else [Let(p, i32(0)), *outside, *body]
    return Kernel(name, [For(b, batch, body, "parallel")])


class Names:
    """Variables for what several statements share."""

    def __init__(self) -> None:
        self.count = 0

    def bind(self, body: list, e: Expr) -> Expr:
        if type(e) in (Const, Var):
            return e
        self.count += 1
        var = Var(f"z{self.count}", e.dtype)
        body.append(Let(var, e))
        return var

    def pair(self, body: list, z: Complex) -> Complex:
        return self.bind(body, z[0]), self.bind(body, z[1])


class Roots:
    """exp(-2πi k/n) for 0 ≤ k < n, from constant tables."""

    def __init__(self, n: int, dtype: str, constant: Callable[[str, bytes], Buffer], wide: bool):
        self.dtype, self.shift = dtype, 0 if n <= TABLE or not wide else (n - 1).bit_length() // 2
        kind, short = "f64" if self.shift else dtype, 1 << self.shift

        def tables(step: int, count: int) -> list[Buffer]:
            code = f"<{count}{'f' if kind == 'f32' else 'd'}"
            return [constant(kind, struct.pack(code, *part)) for part in zip(*[circle(j * step, n) for j in range(count)])]

        self.low = tables(1, short) if self.shift else None
        self.high = tables(short, -(-n // short))

    def root(self, k: Expr) -> Complex:
        if self.low is None:
            return tuple([Load(t, k) for t in self.high])
        high = [Load(t, Binary("shr", k, i32(self.shift))) for t in self.high]
        low = [Load(t, Binary("and", k, i32((1 << self.shift) - 1))) for t in self.low]
        z = sub(mul(high[0], low[0]), mul(high[1], low[1])), add(mul(high[0], low[1]), mul(high[1], low[0]))
        return tuple([convert(part, self.dtype) for part in z])


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


def turned(x: Complex, w: Complex, body: list, names: Names) -> Complex:
    """x · w."""
    return names.pair(body, (sub(mul(x[0], w[0]), mul(x[1], w[1])), add(mul(x[0], w[1]), mul(x[1], w[0]))))


def transform(xs: list[Complex], body: list, names: Names) -> list[Complex]:
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


def _by_root(x: Complex, k: int, n: int, body: list, names: Names) -> Complex:
    """x · exp(-2πi k/n), with the multiplications that are none left out."""
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


def _odd(xs: list[Complex], body: list, names: Names) -> list[Complex]:
    """For each pair x_k, x_{n-k} their sum meets the cosines and their difference the sines."""
    n, first = len(xs), xs[0]
    sums = [names.pair(body, plus(xs[k], xs[n - k])) for k in range(1, n // 2 + 1)]
    gaps = [names.pair(body, minus(xs[k], xs[n - k])) for k in range(1, n // 2 + 1)]
    total = first
    for s in sums:
        total = plus(total, s)
    out = [names.pair(body, total)] + [first] * (n - 1)
    for v in range(1, n // 2 + 1):
        even, odd = first, None
        for k, (s, d) in enumerate(zip(sums, gaps), 1):
            c, t = circle(k * v, n)
            even = plus(even, (mul(s[0], c), mul(s[1], c)))
            term = mul(d[0], t), mul(d[1], t)
            odd = term if odd is None else plus(odd, term)
        even, odd = names.pair(body, even), names.pair(body, odd)
        out[v] = sub(even[0], odd[1]), add(even[1], odd[0])
        out[n - v] = add(even[0], odd[1]), sub(even[1], odd[0])
    return out
