"""Rows of the catalogue for special functions and for the factorisations that few programs use."""

from weft import lax, random
from weft.scipy.special import erfcx


def _ones_like(x, value):
    return lax.full_like(x, value)


def _gamma(a, log_space: bool):
    return (random.loggamma if log_space else random.gamma)(random.key(3), a)


def rows(Row):
    yield from _special(Row)
    yield from _linalg(Row)


def _special(Row):
    for shape in ("[]", "[2,3]"):
        for name in ("bessel_i0e", "bessel_i1e"):
            yield Row(name, getattr(lax, name), (f"f32{shape}:-12..12",), rtol=1e-5)
        yield Row("erfcx", erfcx, (f"f32{shape}:-2..20",), rtol=1e-5)
        yield Row("digamma_slope", lambda x: lax.digamma(x), (f"f32{shape}:0.5..4",), rtol=1e-4)
    for m in (0.0, 1.0, 3.0):
        yield Row(f"polygamma{m}", lambda x, m=m: lax.polygamma(_ones_like(x, m), x), ("f32[4]:1..4",), rtol=2e-4)
    yield Row("zeta", lambda q: lax.zeta(_ones_like(q, 2.5), q), ("f32[4]:0.8..6",), rtol=1e-4)
    yield Row("zeta", lax.zeta, ("f32[2,3]:1.5..6", "f32[]:0.5..3"), grad=False, rtol=1e-4)
    yield Row("zeta_both", lax.zeta, ("f32[4]:1.5..6", "f32[4]:0.5..3"), rtol=2e-4)
    yield Row("zeta_negative", lambda q: lax.zeta(_ones_like(q, 4.0), q), ("f32[6]:-2.9..-0.1",), grad=False, rtol=1e-3)
    yield Row("igamma", lax.igamma, ("f32[6]:0.3..3", "f32[6]:0.2..9"), rtol=2e-4)
    yield Row("igamma", lax.igamma, ("f32[]:0.5..3", "f32[2,3]:0.2..9"), grad=False, rtol=2e-4)
    yield Row("igammac", lax.igammac, ("f32[2,1]:4..20", "f32[1,3]:4..20"), rtol=2e-4)
    yield Row("igamma_grad_a", lax.igamma_grad_a, ("f32[6]:0.3..9", "f32[6]:0.2..9"), grad=False, rtol=2e-4)
    yield Row("random_gamma_grad", lax.random_gamma_grad, ("f32[6]:0.3..3", "f32[6]:0.2..6"), grad=False, rtol=2e-4)
    for log_space in (False, True):  # of one key, so that every backend draws the same
        yield Row(
            f"gamma_sample{log_space:d}",
            lambda a, log_space=log_space: _gamma(a, log_space),
            ("f32[2,3]:0.2..9",),
            grad=False,
            rtol=1e-4,
        )
    yield Row(
        "betainc", lambda x: lax.betainc(_ones_like(x, 1.5), _ones_like(x, 3.0), x), ("f32[5]:0.1..0.9",), rtol=2e-4
    )
    yield Row("betainc", lax.betainc, ("f32[5]:0.2..8", "f32[5]:0.2..8", "f32[5]:0.01..0.99"), grad=False, rtol=2e-4)
    for kind, rtol in (("f16", 4e-3), ("bf16", 3e-2)):
        yield Row("bessel_i1e", lax.bessel_i1e, (f"{kind}[4]:-5..5",), grad=False, rtol=rtol)
        yield Row("igamma", lax.igamma, (f"{kind}[4]:0.5..3", f"{kind}[4]:0.5..3"), grad=False, rtol=rtol)
        yield Row(
            "polygamma", lambda x: lax.polygamma(_ones_like(x, 1.0), x), (f"{kind}[4]:1..4",), grad=False, rtol=rtol
        )
        yield Row(
            "betainc",
            lax.betainc,
            (f"{kind}[4]:0.5..3", f"{kind}[4]:0.5..3", f"{kind}[4]:0.1..0.9"),
            grad=False,
            rtol=rtol,
        )


def _linalg(Row):
    linalg = lax.linalg
    # columns whose order does not hang on the last digit
    apart = lambda x: x * lax.broadcasted_iota(x.dtype, x.shape, x.ndim - 1) + x
    for shape in ("[3,3]", "[4,2]", "[2,2,4]"):
        for part in (0, 1):
            yield Row(f"qr_complete{part}", lambda x, part=part: linalg.qr(x)[part], (f"f32{shape}",), rtol=5e-4)
            yield Row(
                f"qr_pivoting{part}",
                lambda x, part=part: linalg.qr(apart(x), pivoting=True)[part],
                (f"f32{shape}",),
                grad=part == 1,
                rtol=5e-4,
            )
        yield Row("qr_pivoting_order", lambda x: linalg.qr(apart(x), pivoting=True)[2], (f"f32{shape}",), grad=False)
    for left in (True, False):
        for transpose in (True, False):
            yield Row(
                f"ormqr{left:d}{transpose:d}",
                lambda a, t, c, left=left, transpose=transpose: linalg.ormqr(a, t, c, left=left, transpose=transpose),
                ("f32[2,4,3]:-0.4..0.4", "f32[2,3]", "f32[2,4,2]" if left else "f32[2,2,4]"),
                grad=False,
                rtol=2e-4,
            )
            yield Row(
                f"ormqr_of_constants{left:d}{transpose:d}",
                lambda c, left=left, transpose=transpose: linalg.ormqr(
                    *_reflections(), c, left=left, transpose=transpose
                ),
                ("f32[4,2]" if left else "f32[2,4]",),
                rtol=2e-4,
            )
    yield Row(
        "householder_product", linalg.householder_product, ("f32[2,4,3]:-0.4..0.4", "f32[2,2]"), grad=False, rtol=2e-4
    )
    yield Row("cholesky_update", linalg.cholesky_update, ("f32[4,4]:0.5..2", "f32[4]"), grad=False, rtol=2e-4)
    for lower in (True, False):
        for part in range(4):
            yield Row(
                f"tridiagonal{lower:d}{part}",
                lambda a, lower=lower, part=part: linalg.tridiagonal(a, lower=lower)[part],
                ("f32[2,4,4]",),
                grad=False,
                rtol=5e-4,
            )
    for n in (1, 2, 5):
        yield Row(
            "tridiagonal_solve",
            lambda dl, d, du, b: linalg.tridiagonal_solve(dl, d + 4.0, du, b),
            (*(f"f32[2,{n}]:-1..1",) * 3, f"f32[2,{n},3]"),
            rtol=2e-4,
        )
    yield Row(
        "tridiagonal_solve_perturbed",
        lambda dl, d, du, b: linalg.tridiagonal_solve(dl, d + 4.0, du, b, perturb_singular=True),
        (*("f32[5]:-1..1",) * 3, "f32[5,2]"),
        rtol=2e-4,
    )
    for part in (0, 1):
        yield Row(f"qdwh{part}", lambda x, part=part: linalg.qdwh(x)[part], ("f32[4,3]",), grad=False, rtol=5e-4)
    yield Row("schur_product", _schur_product, ("f32[2,3,3]",), grad=False, rtol=5e-4)


def _reflections():
    """Of a Householder product: ones below the diagonal, and taus."""
    return lax.full((4, 3), 0.3), lax.full((3,), 0.7)


def _schur_product(x):
    t, z = lax.linalg.schur(x)
    product = lambda a, b: lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,))))
    return product(product(z, t), lax.transpose(z, (0, 2, 1)))
