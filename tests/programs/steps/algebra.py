"""Linear algebra, of matrices that are well away from singular, and Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..tree import Value
from ..types import Type, complex_of
from .family import Family

if TYPE_CHECKING:
    from ..maker import Maker

SINGLE = ("float32", "float64")


def real(m: Maker) -> str:
    """A dtype that decompositions have."""
    return m.palette.float if m.palette.float in SINGLE else "float32"


def number(m: Maker) -> str:
    names = [d for d in m.palette.of_kinds("c")]
    return m.rng.choice(names) if names and m.chance(0.4) else real(m)


def matrix(m: Maker, rows: int, columns: int, dtype: str | None = None, dominant: bool = True) -> Value:
    """Of numbers below 1; dominant: with a diagonal that outweighs its rows, and whose entries differ."""
    batch = m.rng.choice(((), (), (2,), (1, 2), (0,) if m.chance(0.1) else (3,)))
    type = Type(dtype or number(m), (*batch, rows, columns))
    v = m.within(m.as_type(m.value("fc" if m.chance(0.9) else "iu"), type), 0.5)
    if not dominant:
        return v
    least = min(rows, columns)
    steps = [2.0 * (k + least) for k in range(least)]
    text = (
        f"{{0}} + jnp.eye({rows}, {columns}, dtype={type.dtype!r}) * jnp.asarray({(steps + [0.0] * columns)[:columns]},"
        f" {type.dtype!r})"
    )
    return m.emit(text, v, type=type, bound=4.0 * least + 1)


def size(m: Maker) -> int:
    return m.rng.choice((1, 2, 3, 3, 4, 5, 7))


def adjoint(m: Maker, v: Value) -> Value:
    return m.emit("({0} + jnp.conj(jnp.swapaxes({0}, -1, -2))) * 0.5", v, type=v.type, bound=v.bound)


def solve(m: Maker) -> None:
    n, k = size(m), m.rng.randint(1, 3)
    a = matrix(m, n, n)
    b = m.within(m.as_type(m.value("f"), a.type.shaped(*a.type.shape[:-1], k)), 4.0)
    way = m.rng.random()
    if way < 0.4:
        flags = ", ".join(
            f"{name}={m.chance(0.5)}" for name in ("lower", "transpose_a", "conjugate_a", "unit_diagonal")
        )
        if "unit_diagonal=True" in flags:
            a = m.within(a, 0.5)
        if m.chance(0.5):
            m.emit(f"lax.linalg.triangular_solve({{0}}, {{1}}, left_side=True, {flags})", a, b, type=b.type, bound=64.0)
        else:
            type = a.type.shaped(*a.type.shape[:-2], k, n)
            m.emit(
                f"lax.linalg.triangular_solve({{0}}, jnp.swapaxes({{1}}, -1, -2), left_side=False, {flags})",
                a,
                b,
                type=type,
                bound=64.0,
            )
    elif way < 0.7:
        m.emit("jnp.linalg.solve({0}, {1})", a, b, type=b.type, bound=16.0)
    elif way < 0.85:
        m.emit("jnp.linalg.inv({0})", a, type=a.type, bound=4.0)
    else:
        scale = 4.0 ** (n + 1)
        m.emit(f"jnp.linalg.det({{0}}) / {scale}", a, type=a.type.shaped(*a.type.shape[:-2]), bound=float(4 * n) ** n)


def factors(m: Maker) -> None:
    """Factors that are unique."""
    n = size(m)
    a = matrix(m, n, n)
    kind = m.rng.choice(["cholesky", "lu", "lu", "qr", "permutation"])
    if kind == "cholesky":
        a = adjoint(m, a)
        m.emit("lax.linalg.cholesky({0})", a, type=a.type, bound=a.bound)
    elif kind == "lu":
        m.emit("lax.linalg.lu({0})[0]", a, type=a.type, bound=a.bound * 2)
    elif kind == "permutation":
        a = m.still(a)
        m.emit_all("lax.linalg.lu({0})[1:]", a, types=[Type("int32", a.type.shape[:-1])] * 2)
    else:
        rows = n + m.rng.randint(0, 2)
        a = matrix(m, rows, n)
        m.emit(
            "jnp.abs(lax.linalg.qr({0}, full_matrices=False)[1])",
            a,
            type=Type(
                a.type.dtype.replace("complex64", "float32").replace("complex128", "float64"),
                (*a.type.shape[:-2], n, n),
            ),
            bound=a.bound * n,
        )


def values(m: Maker) -> None:
    """Eigenvalues and singular values, and what no choice of vectors changes."""
    n = size(m)
    a = matrix(m, n, n)
    part = Type(a.type.dtype.replace("complex64", "float32").replace("complex128", "float64"), (*a.type.shape[:-2], n))
    kind = m.rng.choice(["eigh", "svd", "projection", "eig"])
    if kind == "eigh":
        m.emit("lax.linalg.eigh({0})[1]", adjoint(m, a), type=part, bound=a.bound * 2)
    elif kind == "projection":
        text = "(lambda v: jnp.matmul(v, jnp.conj(jnp.swapaxes(v, -1, -2))))(lax.linalg.eigh({0})[0][..., :1])"
        m.emit(text, adjoint(m, a), type=a.type, bound=1.5)
    elif kind == "svd":
        m.emit("lax.linalg.svd({0}, compute_uv=False)", a, type=part, bound=a.bound * 2)
    else:
        a = m.still(a)
        text = (
            "jnp.sort(jnp.abs(lax.linalg.eig({0}, compute_left_eigenvectors=False,"
            " compute_right_eigenvectors=False)[0]), -1)"
        )
        m.emit(text, a, type=part, bound=a.bound * 2)


def fourier(m: Maker) -> None:
    n, kind = (
        m.rng.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 30, 31, 32, 37, 48, 64)),
        m.rng.choice(["fft", "ifft", "rfft", "irfft", "fft2"]),
    )
    dtype = real(m)
    if complex_of(dtype) not in m.world.settings.dtypes:
        return
    z = complex_of(dtype)
    lead = m.rng.choice(((), (2,), (3,), (2, 1)))
    if kind == "rfft":
        v = m.within(m.as_type(m.value("f"), Type(dtype, (*lead, n))), 4.0)
        m.emit(f"lax.fft({{0}}, 'rfft', ({n},))", v, type=Type(z, (*lead, n // 2 + 1)), bound=v.bound * n)
    elif kind == "irfft":
        v = m.within(m.as_type(m.value("fc"), Type(z, (*lead, n // 2 + 1))), 4.0)
        m.emit(f"lax.fft({{0}}, 'irfft', ({n},))", v, type=Type(dtype, (*lead, n)), bound=v.bound * 2)
    elif kind == "fft2":
        k = m.rng.choice((1, 2, 3, 4, 6))
        v = m.within(m.as_type(m.value("fc"), Type(z, (k, min(n, 9)))), 4.0)
        m.emit(
            f"lax.fft({{0}}, {m.rng.choice(['fft', 'ifft'])!r}, {v.type.shape})",
            v,
            type=v.type,
            bound=v.bound * v.type.size,
        )
    else:
        v = m.within(m.as_type(m.value("fc"), Type(z, (*lead, n))), 4.0)
        m.emit(f"lax.fft({{0}}, {kind!r}, ({n},))", v, type=v.type, bound=v.bound * n)


def rare(m: Maker) -> None:
    """Factorisations that few programs use."""
    linalg, dtype, n = "lax.linalg", real(m), m.rng.choice((2, 3, 4))
    kind = m.rng.choice(
        [
            "symmetric_product",
            "tridiagonal_solve",
            "householder",
            "ormqr",
            "update",
            "hessenberg",
            "schur",
            "tridiagonal",
            "pivots",
            "pivoting",
            "diagonal",
        ]
    )
    if kind == "symmetric_product":
        a = m.within(m.as_type(m.value("f"), Type(dtype, (n, 2))), 2.0)
        c = m.within(m.as_type(m.value("f"), Type(dtype, (n, n))), 2.0)
        m.emit(f"{linalg}.symmetric_product({{0}}, {{1}}, alpha=2.0, beta=0.5)", a, c, type=c.type, bound=32.0)
        return
    if kind == "tridiagonal_solve":
        parts = [m.within(m.as_type(m.value("f"), Type(dtype, (2, n))), 1.0) for _ in range(3)]
        b = m.within(m.as_type(m.value("f"), Type(dtype, (2, n, 3))), 4.0)
        m.emit(f"{linalg}.tridiagonal_solve({{0}}, {{1}} + 4.0, {{2}}, {{3}})", *parts, b, type=b.type, bound=4.0)
        return
    if kind == "pivots":
        p = m.as_type(m.value("iu"), Type("int32", (2, 3)))
        p = m.emit("jnp.clip({0}, 0, 4)", p, type=p.type)
        m.emit(f"{linalg}.lu_pivots_to_permutation({{0}}, 5)", p, type=p.type.shaped(2, 5))
        return
    a = m.still(m.within(m.as_type(m.value("f"), Type(dtype, (2, n + 1, n))), 0.4))
    taus = m.still(m.within(m.as_type(m.value("f"), Type(dtype, (2, n))), 1.0))
    square = m.still(matrix(m, n, n, dtype))
    if kind == "householder":
        m.emit(f"{linalg}.householder_product({{0}}, {{1}})", a, taus, type=a.type, bound=16.0)
    elif kind == "ormqr":
        c = m.still(m.within(m.as_type(m.value("f"), Type(dtype, (2, n + 1, 2))), 2.0))
        m.emit(f"{linalg}.ormqr({{0}}, {{1}}, {{2}}, transpose={m.chance(0.5)})", a, taus, c, type=c.type, bound=64.0)
    elif kind == "update":
        upper = m.still(m.within(m.as_type(m.value("f"), Type(dtype, (n, n))), 0.5))
        w = m.still(m.within(m.as_type(m.value("f"), Type(dtype, (n,))), 1.0))
        m.emit(
            f"{linalg}.cholesky_update(jnp.triu({{0}}) + 2.0 * jnp.eye({n}, dtype={dtype!r}), {{1}})",
            upper,
            w,
            type=upper.type,
            bound=16.0,
        )
    elif kind == "hessenberg":
        m.emit(f"jnp.abs({linalg}.hessenberg({{0}})[0])", square, type=square.type, bound=square.bound * n)
    elif kind == "schur":
        text = f"(lambda t, z: jnp.matmul(jnp.matmul(z, t), jnp.swapaxes(z, -1, -2)))(*{linalg}.schur({{0}}))"
        m.emit(text, square, type=square.type, bound=square.bound * 2)
    elif kind == "tridiagonal":
        text = f"jnp.abs({linalg}.tridiagonal({{0}})[1])"
        square = adjoint(m, square)
        m.emit(text, square, type=square.type.shaped(*square.type.shape[:-1]), bound=square.bound * n)
    elif kind == "pivoting":
        m.emit(f"{linalg}.qr({{0}}, pivoting=True)[2]", square, type=Type("int32", square.type.shape[:-1]))
    else:
        m.emit(
            f"jnp.abs(jnp.diagonal({linalg}.qr({{0}})[1], axis1=-2, axis2=-1))",
            square,
            type=square.type.shaped(*square.type.shape[:-1]),
            bound=square.bound * n,
        )


FAMILIES = {
    "solve": Family(solve, 0.5, finite=True),
    "factors": Family(factors, 0.5, finite=True),
    "eigenvalues": Family(values, 0.4, finite=True),
    "fourier": Family(fourier, 0.8, finite=True),
    "rare_factors": Family(rare, 0.3, finite=True),
}
