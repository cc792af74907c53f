"""Programs whose derivatives depend on what types say of where values vary; run by weft and by jax alike."""

import numpy as np


def cases(jax):
    """name -> function that gives a pytree of arrays."""
    jnp, lax, P = jax.numpy, jax.lax, jax.P
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    rng = np.random.default_rng(0)
    x, w, y = (rng.normal(size=shape).astype(np.float32) for shape in ((8, 4), (4, 3), (8, 3)))
    first, many = P(), (P(), P("x"))
    over = lambda f, ins, out, **more: jax.shard_map(f, mesh=mesh, in_specs=ins, out_specs=out, **more)
    loss = lambda w, x, y: lax.pmean(((jnp.tanh(x @ w) - y) ** 2).mean(), "x")
    local = lambda w, x: jnp.sin(x @ w).sum()

    def loop(w, x):
        c, _ = lax.scan(lambda c, row: (jnp.tanh(c @ w[:3] + row @ w), c.sum()), x[0] @ w, x)
        return c.sum()

    def counted(w, x):
        return lax.scan(lambda c, row: (c + (row @ w).sum(), None), lax.pcast(jnp.float32(0), "x", to="varying"), x)[0]

    grad_w = lambda f, **more: lambda: over(jax.grad(f), many, P(), **more)(w, x)
    column = lambda f: lambda: over(jax.grad(f), P("x"), P("x"))(x[:, 0])
    return {
        "mean over devices": lambda: over(jax.grad(loss), (P(), P("x"), P("x")), P())(w, x, y),
        "local loss of shared weights": grad_w(local),
        "from outside": lambda: jax.grad(lambda w: over(loss, (P(), P("x"), P("x")), P())(w, x, y))(w),
        "from outside, compiled": lambda: jax.jit(jax.grad(lambda w: over(loss, (P(), P("x"), P("x")), P())(w, x, y)))(
            w
        ),
        "from outside, cut results": lambda: jax.grad(
            lambda w: over(lambda w, x: jax.nn.softmax(x @ w), many, P("x"))(w, x)[:, 0].sum()
        )(w),
        "psum": column(lambda v: lax.psum(v, "x").sum()),
        "copies that are called parts": lambda: jax.grad(
            lambda v: (over(lambda v: v * 2, first, P("x"))(v) * np.arange(16, dtype=np.float32)).sum()
        )(w[:, 0]),
        "psum of copies": lambda: over(jax.grad(lambda v: lax.psum(v, "x").sum()), P(), P())(w[:, 0]),
        "psum of copies, from outside": lambda: jax.grad(lambda v: over(lambda v: lax.psum(v, "x"), P(), P())(v).sum())(
            w[:, 0]
        ),
        "all_gather": column(lambda v: lax.psum((lax.all_gather(v, "x") ** 2).sum(), "x")),
        "ppermute": column(lambda v: (lax.ppermute(v, "x", [(0, 1), (1, 2), (2, 3), (3, 0)]) * v).sum()),
        "psum_scatter": column(lambda v: (lax.psum_scatter(jnp.tile(v, 2), "x", tiled=True) ** 2).sum()),
        "scan": grad_w(loop),
        "scan and psum": grad_w(lambda w, x: lax.psum(loop(w, x), "x")),
        "scan of a carry that begins the same": grad_w(counted),
        "jit": grad_w(lambda w, x: jax.jit(lambda w, x: (jax.nn.relu(x @ w) ** 2).sum())(w, x)),
        "checkpoint": grad_w(lambda w, x: jax.checkpoint(local)(w, x)),
        "vmap": grad_w(lambda w, x: jax.vmap(lambda row: jnp.sin(row @ w).sum())(x).sum()),
        "branches taken by value": grad_w(
            lambda w, x: lax.cond(x.sum() > 0, lambda: (x @ w).sum(), lambda: (x @ w * 2).sum())
        ),
        "second derivative": lambda: over(
            lambda w, x: jax.jvp(jax.grad(lambda w: lax.psum(local(w, x), "x")), (w,), (jnp.ones_like(w),))[1],
            many,
            P(),
        )(w, x),
        "gradient of a gradient": lambda: jax.grad(
            lambda w: (over(lambda w, x: jax.grad(lambda w: lax.psum(local(w, x), "x"))(w), many, P())(w, x) ** 2).sum()
        )(w),
        "weights cut along the other axis": lambda: over(jax.grad(local), (P(None, "y"), P("x")), P(None, "y"))(
            w[:, :2], x
        ),
        "vmap outside": lambda: jax.vmap(lambda k: over(jax.grad(loss), (P(), P("x"), P("x")), P())(w * k, x, y))(
            np.arange(2, dtype=np.float32)
        ),
        "some axes only": lambda: jax.jit(over(jax.grad(local), many, P(), axis_names={"x"}))(w, x),
        "unchecked: psum": lambda: over(jax.grad(lambda v: lax.psum(v, "x").sum()), P("x"), P("x"), check_vma=False)(
            x[:, 0]
        ),
        "unchecked: shared weights": lambda: over(
            lambda w, x: jax.grad(local)(w, x)[None], many, P("x"), check_vma=False
        )(w, x),
    }


def leaves(value) -> list:
    out = list(value) if isinstance(value, (tuple, list)) else [value]
    return [np.asarray(v, np.float64).tolist() for v in out]
