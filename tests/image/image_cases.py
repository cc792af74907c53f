"""Expressions of jax.image whose outcomes under weft must be real JAX's."""

METHODS = "nearest linear cubic cubic-pytorch lanczos3 lanczos5 area".split()
CASES = """
im.resize(x, (2, 2), im.ResizeMethod.LINEAR); im.resize(x.astype(int), (2, 2), 'linear')
im.resize(x.astype('uint8'), (2, 2), 'nearest'); im.resize(x > 3, (2, 2), 'linear'); im.resize(x > 3, (2, 2), 'nearest')
im.resize(x * 1j, (2, 2), 'cubic')
im.resize(x, (2, 2), 'bilinear'); im.resize(x, (2, 2), 'triangle'); im.resize(x, (2, 2), 'bicubic')
im.resize(x, (2, 2), 'foo'); im.resize(x, (2, 2), None); im.resize(x, (2.5, 2), 'linear')
im.resize(x, (2, 2, 2), 'linear'); im.resize(x, (0, 2), 'linear'); im.resize(x, (4, 3), 'cubic')
im.resize(x, (1, 1), 'linear')
im.resize(x.astype('float16'), (2, 2), 'lanczos3'); im.resize(x.astype('bfloat16'), (6, 2), 'linear')
im.resize(x, (8, 3), 'linear', precision='high'); im.resize(x, (3, 2), im.ResizeMethod.AREA, False)
im.resize('a', (2,), 'linear')
S(x, (2, 2), (0, 1), jnp.ones(2), jnp.zeros(2), 'nearest'); S(x, (2, 2), (0, 1), jnp.ones(3), jnp.zeros(2), 'linear')
S(x, (2, 2), (0, 1), jnp.ones(2), jnp.zeros(3), 'linear'); S(x, (2, 3), (-2,), jnp.ones(1), jnp.zeros(1), 'linear')
S(x, (2, 2), (0, 5), jnp.ones(2), jnp.zeros(2), 'linear')
S(x.astype(int), (2, 2), (0, 1), jnp.ones(2), jnp.zeros(2), 'linear')
S(x, (2, 2), (0, 1), [1., 1.], [0., 0.], 'linear'); S(x, (2, 2, 2), (0, 1), jnp.ones(2), jnp.zeros(2), 'linear')
S(x, (4, 3), (0, 1), jnp.array([0., 1.]), jnp.zeros(2), 'linear')
jax.grad(lambda x: (im.resize(x, (6, 2), 'cubic') ** 2).sum())(x)
jax.grad(lambda x: im.resize(x, (2, 2), 'nearest').sum())(x); jax.vmap(lambda x: im.resize(x, (5,), 'linear'))(x)
jax.jit(lambda x: im.resize(x, (5, 5), 'lanczos3'))(x); jax.grad(lambda x: im.resize(x, (3, 4), 'area')[1, 1])(x)
"""


def cases() -> str:
    """All expressions: those above, and each method enlarging and shrinking, with and without antialias, and with
    derivatives for scale and translation.
    """
    rows = [CASES]
    for method in METHODS:
        rows += [
            f"im.resize(x, (7, 2), '{method}'); im.resize(x, (2, 5), '{method}', antialias=False); im.resize(t, (2, 3,"
            f" 7, 2), '{method}')"
        ]
        if method != "nearest":
            call = f"S(x, (5, 4), (1, 0), scale, move, '{method}'"
            rows += [
                f"{call}); {call}, antialias=False)",
                *[f"jax.grad(lambda {n}: ({call}) ** 2).sum())({n})" for n in ("x", "scale", "move")],
            ]
    return "\n".join(rows)


def scope(jax, jnp, np) -> dict:
    return {
        "jax": jax,
        "jnp": jnp,
        "np": np,
        "im": jax.image,
        "S": jax.image.scale_and_translate,
        "x": jnp.sin(jnp.arange(12.0) * 1.3).reshape(4, 3) * 9,
        "t": jnp.cos(jnp.arange(120.0)).reshape(2, 4, 5, 3),
        "scale": jnp.array([1.4, 0.7]),
        "move": jnp.array([-0.3, 0.8]),
    }
