"""What `linalg_expected.json` holds of real JAX, and how it is asked: the same expressions here and there, in terms of
`lax`, `jnp` and a few helpers.

`calls`: the kernels that a function's StableHLO calls on each platform. `errors`: the class of what bad arguments
raise. `jaxprs`: programs as text. `edges`: values of special functions at the ends of their domains.
"""

import re

PLATFORMS = ("cpu", "cuda", "rocm")
DTYPES = ("float32", "complex128")

# name: (function, shapes); one matrix, stacks, and every choice of kernel
CALLS = {
    "cholesky": ("lambda x: linalg.cholesky(x, symmetrize_input=False)", [(2, 4, 4)]),
    "cholesky one": ("lambda x: linalg.cholesky(x, symmetrize_input=False)", [(4, 4)]),
    "triangular_solve": (
        "lambda a, b: linalg.triangular_solve(a, b, left_side=True, transpose_a=True)",
        [(2, 4, 4), (2, 4, 3)],
    ),
    "triangular_solve adjoint": (
        (
            "lambda a, b: linalg.triangular_solve(a, b, lower=True, transpose_a=True, conjugate_a=True,"
            " unit_diagonal=True)"
        ),
        [(4, 4), (3, 4)],
    ),
    "lu": ("linalg.lu", [(2, 4, 3)]),
    "lu wide": ("linalg.lu", [(3, 4)]),
    "qr": ("linalg.qr", [(2, 4, 3)]),
    "qr reduced": ("lambda x: linalg.qr(x, full_matrices=False)", [(4, 3)]),
    "qr wide": ("linalg.qr", [(3, 4)]),
    "qr pivoting": ("lambda x: linalg.qr(x, pivoting=True)", [(2, 4, 3)]),
    "qr pivoting magma": ("lambda x: linalg.qr(x, pivoting=True, use_magma=True)", [(4, 3)]),
    "qr pivoting no magma": ("lambda x: linalg.qr(x, pivoting=True, use_magma=False)", [(4, 3)]),
    "householder_product": ("linalg.householder_product", [(2, 4, 3), (2, 2)]),
    "ormqr": ("linalg.ormqr", [(2, 4, 3), (2, 3), (2, 4, 5)]),
    "ormqr right": ("lambda a, t, c: linalg.ormqr(a, t, c, left=False, transpose=True)", [(4, 3), (3,), (2, 4)]),
    "eigh": ("lambda x: linalg.eigh(x, symmetrize_input=False)", [(2, 4, 4)]),
    "eigh upper": ("lambda x: linalg.eigh(x, symmetrize_input=False, lower=False)", [(4, 4)]),
    "svd values": ("lambda x: linalg.svd(x, full_matrices=False, compute_uv=False)", [(2, 4, 3)]),
    "svd reduced": ("lambda x: linalg.svd(x, full_matrices=False)", [(2, 4, 3)]),
    "svd wide": ("linalg.svd", [(3, 4)]),
    "svd wide QR values": (
        "lambda x: linalg.svd(x, full_matrices=False, compute_uv=False, algorithm=linalg.SvdAlgorithm.QR)",
        [(3, 4)],
    ),
    "svd wide QR reduced": (
        "lambda x: linalg.svd(x, full_matrices=False, algorithm=linalg.SvdAlgorithm.QR)",
        [(2, 3, 4)],
    ),
    "svd POLAR reduced": (
        "lambda x: linalg.svd(x, full_matrices=False, algorithm=linalg.SvdAlgorithm.POLAR)",
        [(3, 4)],
    ),
    "svd POLAR values": ("lambda x: linalg.svd(x, compute_uv=False, algorithm=linalg.SvdAlgorithm.POLAR)", [(4, 3)]),
    "svd large": ("linalg.svd", [(1025, 3)]),
    "svd large wide": ("linalg.svd", [(3, 1025)]),
    "eig": ("linalg.eig", [(2, 4, 4)]),
    "eig right": ("lambda x: linalg.eig(x, compute_left_eigenvectors=False)", [(4, 4)]),
    "schur": ("linalg.schur", [(2, 4, 4)]),
    "schur values": ("lambda x: linalg.schur(x, compute_schur_vectors=False)", [(4, 4)]),
    "schur sorted": ("lambda x: linalg.schur(x, sort_eig_vals=True)", [(4, 4)]),
    "tridiagonal": ("linalg.tridiagonal", [(2, 4, 4)]),
    "tridiagonal upper": ("lambda x: linalg.tridiagonal(x, lower=False)", [(4, 4)]),
    "tridiagonal_solve": ("linalg.tridiagonal_solve", [(2, 4), (2, 4), (2, 4), (2, 4, 3)]),
    "tridiagonal_solve perturbed": (
        "lambda *a: linalg.tridiagonal_solve(*a, perturb_singular=True)",
        [(4,), (4,), (4,), (4, 3)],
    ),
    **{
        f"svd {k}": (f"lambda x: linalg.svd(x, algorithm=linalg.SvdAlgorithm.{k})", [(2, 4, 3)])
        for k in ("DEFAULT", "QR", "JACOBI", "POLAR", "DIVIDE_AND_CONQUER")
    },
    **{
        f"eigh {k}": (
            f"lambda x: linalg.eigh(x, symmetrize_input=False, implementation=linalg.EighImplementation.{k})",
            [(2, 4, 4)],
        )
        for k in ("QR", "JACOBI", "QDWH")
    },
    **{
        f"eig {k}": (f"lambda x: linalg.eig(x, implementation=linalg.EigImplementation.{k})", [(4, 4)])
        for k in ("MAGMA", "LAPACK")
    },
}
REAL = ("float32",)
REAL_CALLS = {  # for real numbers only
    "symmetric_product": ("lambda a, c: linalg.symmetric_product(a, c, alpha=2.0, beta=0.5)", [(4, 3), (4, 4)]),
    "symmetric_product stack": ("linalg.symmetric_product", [(2, 4, 3), (2, 4, 4)]),
    "cholesky_update": ("linalg.cholesky_update", [(4, 4), (4,)]),
}

ERRORS = [
    "linalg.cholesky(one(2, 3))",
    "linalg.cholesky(one(2, 3), symmetrize_input=False)",
    "linalg.cholesky(one(3))",
    "linalg.cholesky(ints(2, 2), symmetrize_input=False)",
    "linalg.eigh(one(2, 3))",
    "linalg.eigh(one(2, 3), symmetrize_input=False)",
    "linalg.eigh(one(3), symmetrize_input=False)",
    "linalg.eig(one(2, 3))",
    "linalg.eig(one(3))",
    "linalg.eig(ints(2, 2))",
    "linalg.eig(one(2, 2), implementation=linalg.EigImplementation.MAGMA)",
    "linalg.eigh(one(2, 2), implementation=linalg.EighImplementation.QDWH)",
    "linalg.hessenberg(one(4, 3))",
    "linalg.hessenberg(ints(3, 3))",
    "linalg.schur(one(4, 3))",
    "linalg.schur(one(3))",
    "linalg.schur(one(3, 3), sort_eig_vals=True)",
    "linalg.svd(one(3))",
    "linalg.svd(ints(3, 3))",
    "linalg.svd(one(3, 3), subset_by_index=(0, 2))",
    "linalg.svd(one(3, 3), algorithm=linalg.SvdAlgorithm.JACOBI)",
    "linalg.lu(one(4))",
    "linalg.lu(ints(2, 2))",
    "linalg.qr(one(4))",
    "linalg.qr(ints(2, 2))",
    "linalg.lu_pivots_to_permutation(one(3), 4)",
    "linalg.lu_pivots_to_permutation(ints(5), 4)",
    "linalg.householder_product(one(2, 3), one(2))",
    "linalg.householder_product(one(3, 2), one(3))",
    "linalg.householder_product(one(3, 2), one(2, 2))",
    "linalg.ormqr(one(4, 3), one(3), one(3, 2))",
    "linalg.ormqr(one(4, 3), one(3), one(4, 2), left=False)",
    "linalg.ormqr(one(2, 4, 3), one(3), one(4, 2))",
    "linalg.ormqr(ints(4, 3), ints(3), ints(4, 2))",
    "linalg.triangular_solve(one(3, 2), one(3, 2))",
    "linalg.triangular_solve(one(3, 3), one(2, 2), left_side=True)",
    "linalg.triangular_solve(one(2, 3, 3), one(3, 2))",
    "linalg.triangular_solve(ints(3, 3), ints(3, 3))",
    "linalg.triangular_solve(one(3, 3), one(3, 3, dtype='complex64'))",
    "linalg.cholesky_update(one(4, 4), one(3))",
    "linalg.cholesky_update(one(4, 3), one(3))",
    "linalg.cholesky_update(one(2, 4, 4), one(2, 4))",
    "linalg.cholesky_update(ints(4, 4), ints(4))",
    "linalg.cholesky_update(one(4, 4, dtype='complex64'), one(4, dtype='complex64'))",
    "linalg.symmetric_product(one(4, 3), one(3, 3))",
    "linalg.symmetric_product(one(4, 3), one(4, 3))",
    "linalg.symmetric_product(ints(4, 3), ints(4, 4))",
    "linalg.symmetric_product(one(4, 3, dtype='complex64'), one(4, 4, dtype='complex64'))",
    "linalg.tridiagonal(one(4, 3))",
    "linalg.tridiagonal(one(0, 0))",
    "linalg.tridiagonal(one(3))",
    "linalg.tridiagonal(ints(3, 3))",
    "linalg.tridiagonal_solve(one(4), one(4), one(3), one(4, 2))",
    "linalg.tridiagonal_solve(one(4), one(4), one(4), one(3, 2))",
    "linalg.tridiagonal_solve(one(4), one(4), one(4), one(4))",
    "linalg.tridiagonal_solve(one(2, 4), one(4), one(4), one(4, 1))",
    "linalg.tridiagonal_solve(one(3), one(3), one(3), one(3, 1, dtype='complex64'))",
    "linalg.tridiagonal_solve(ints(3), ints(3), ints(3), ints(3, 1))",
    "linalg.qdwh(one(3, 4))",
    "linalg.qdwh(one(2, 4, 3))",
    "linalg.qdwh(ints(3, 3))",
    "lax.polygamma(1, one(3))",
    "lax.zeta(ints(3), ints(3))",
    "lax.igamma(one(3), one(3, dtype='float16'))",
    "lax.igamma(one(3), one(2))",
    "lax.igamma(one(2, 2), one(2))",
    "lax.igammac(one(3, dtype='complex64'), one(3, dtype='complex64'))",
    "lax.bessel_i0e(ints(3))",
    "lax.bessel_i1e(one(3, dtype='complex64'))",
    "lax.lgamma(ints(3))",
    "lax.digamma(ints(3))",
    "lax.betainc(1, one(3), one(3))",
    "lax.random_gamma_grad(one(2), one(3))",
    "slope(lambda m: lax.polygamma(m, one(3)), one(3))",
    "slope(lambda a: lax.betainc(a, one(3), one(3)), one(3))",
    "slope(lambda a: lax.betainc(one(3), a, one(3)), one(3))",
    "slope(lambda a: lax.igamma_grad_a(a, one(3)), one(3))",
    "slope(linalg.hessenberg, one(3, 3))",
    "slope(linalg.schur, one(3, 3))",
    "slope(linalg.tridiagonal, one(3, 3))",
    "slope(lambda x: linalg.svd(x), one(3, 2))",
    "slope(lambda x: linalg.qr(x), one(3, 2))",
    "slope(lambda x: linalg.eig(x)[1], one(3, 3))",
    "slope(lambda x: linalg.cholesky_update(x, one(3)), one(3, 3))",
    "slope(lambda x: linalg.householder_product(x, one(2)), one(3, 2))",
    "slope(lambda x: linalg.ormqr(x, one(2), one(3, 2)), one(3, 2))",
]

TWO = ("polygamma", "zeta", "igamma", "igammac", "igamma_grad_a")
JAXPRS = [
    *[f"(lax.{n}, [(2,)])" for n in ("bessel_i0e", "bessel_i1e", "lgamma", "digamma")],
    *[f"(lax.{n}, [(2,), (2,)])" for n in TWO],
    "(lax.betainc, [(2,)] * 3)",
    *[f"(tangent(lax.{n}), [(2,)])" for n in ("bessel_i0e", "bessel_i1e", "lgamma", "digamma")],
    *[f"(tangent(lambda a: lax.{n}(a, 2.0 * a)), [(2,)])" for n in ("igamma", "igammac")],
    *[f"(tangent(lambda a: lax.{n}(jnp.ones(2), a)), [(2,)])" for n in ("igamma", "igammac")],
    # that of betainc is weft's own: jax's is off by any factor for large parameters
    "(tangent(lambda a: lax.polygamma(jnp.ones(2), a)), [(2,)])",
    "(lambda x: linalg.svd(x, algorithm=linalg.SvdAlgorithm.QR), [(3, 2)])",
    "(lambda x: linalg.qr(x, pivoting=True, use_magma=True), [(3, 2)])",
    "(lambda x: linalg.eig(x, implementation=linalg.EigImplementation.LAPACK), [(3, 3)])",
    "(linalg.tridiagonal, [(3, 3)])",
    "(linalg.tridiagonal_solve, [(3,), (3,), (3,), (3, 2)])",
    "(linalg.cholesky_update, [(3, 3), (3,)])",
    "(linalg.ormqr, [(3, 2), (2,), (3, 4)])",
    "(linalg.symmetric_product, [(3, 2), (3, 3)])",
    "(lambda x: linalg.eigh(x, symmetrize_input=False, implementation=linalg.EighImplementation.QR), [(3, 3)])",
    "(linalg.schur, [(3, 3)])",
    "(linalg.hessenberg, [(3, 3)])",
]

ENDS = (0.0, 0.5, 1.0, 2.0, 3.5, 30.0, -1.0, -0.5, float("inf"), -float("inf"), float("nan"))
ZEROS = (0.0, 0.25, 1.0, 2.0, float("inf"), -1.0, float("nan"))
EDGES = {
    **{n: [(x,) for x in ENDS] for n in ("bessel_i0e", "bessel_i1e", "lgamma", "digamma")},
    # JAX gives NaN for some of the limits in a = 0 and a = inf, which weft has
    **{
        n: [(a, x) for a in ENDS for x in ENDS if a not in (0.0, float("inf")) or "grad" in n]
        for n in ("igamma", "igammac", "igamma_grad_a", "random_gamma_grad")
    },
    **{
        n: [
            (a, x)
            for a in (0.0, 1.0, 1.5, 2.0, 3.0, -1.0, 30.0, float("inf"), float("nan"))
            for x in (0.0, 0.5, 1.0, 4.0, -1.0, -0.5, -2.75, 1e6, float("nan"))
        ]
        for n in ("zeta", "polygamma")
    },
    "betainc": [(a, b, x) for a in ZEROS for b in ZEROS for x in (0.0, 0.25, 0.75, 1.0, 2.0, -1.0, float("nan"))],
}


def kernels(text: str) -> list:
    """The custom calls of a module: [target, attributes, types, layouts and aliases, batch], whatever the order and
    the names of values.
    """
    found = []
    for line in text.splitlines():
        if "custom_call" in line:
            part = lambda pattern: (re.search(pattern, line) or [None, ""])[1]
            attributes = sorted(part(r"backend_config = \{(.*?)\}").split(", "))
            layouts = (
                part(r"operand_layouts = \[(.*?)\], ") + " -> " + part(r"result_layouts = \[(.*?)\](?:, sdy|\}| :)")
            )
            aliases = re.findall(r"output_tuple_indices = (\[\d*\]), operand_index = (\d+)", line)
            found.append(
                [
                    part(r"@(\w+)\("),
                    attributes,
                    part(r": (\(tensor.*)$"),
                    layouts,
                    [list(a) for a in aliases],
                    part(r'num_batch_dims = "(\d)"'),
                ]
            )
    return found


def helpers(jnp, transform):
    return {
        "one": lambda *shape, dtype="float32": jnp.ones(shape, dtype),
        "ints": lambda *shape: jnp.ones(shape, "int32"),
        "slope": lambda f, x: transform(f, (x,), (x,)),
        "tangent": lambda f: lambda x: transform(f, (x,), (x,)),
    }


def error_of(expression: str, names: dict) -> str:
    """The class that an expression raises, by its name in Python; '' if none."""
    try:
        eval(expression, dict(names))
    except Exception as e:  # noqa: BLE001  whatever it is, is recorded
        return next(c.__name__ for c in type(e).__mro__ if c.__module__ == "builtins")
    return ""
