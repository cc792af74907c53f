"""Expressions of jax.nn whose outcomes under weft must be real JAX's; scope() gives what they name."""

WORDS_ARE = "weft.nn.initializers"  # to tools/coverage.py
CASES = """
nn.get_scaled_dot_general_config('mxfp8').block_size; nn.get_scaled_dot_general_config('nvfp4').global_scale
nn.get_scaled_dot_general_config('nvfp4', jnp.array([2.])).global_scale; nn.get_scaled_dot_general_config('int8')
nn.scaled_dot_general(m, m, (((1,), (1,)), ((), ()))); nn.scaled_matmul(m, m, m, m); nn.scaled_matmul(t, t[:1], t, t)
nn.scaled_matmul(t, t, t[..., :1], t)
A(q, k, k2); A(q[0], k[0], k2[0]); A(q4, k, k2); A(q, k, k2, scale=0.7); A(q, k, k2, is_causal=True); A(q, k, k2, bias)
A(q4, k, k2, bias4); A(q, k, k2, bias[:, :1]); A(q, k, k2, bias[0, 0]); A(q, k, k2, bias[:, :, :1])
A(q[0], k[0], k2[0], bias[0])
A(q, k, k2, mask=mask); A(q4, k, k2, bias4, mask[:, :1]); A(q, k, k2, mask=mask[:, :1, :1], is_causal=True)
A(q, k, k2, mask=mask & False); A(q, k, k2, bias, mask, is_causal=True, scale=2., local_window_size=1)
A(q, k, k2, local_window_size=(2, 1)); A(q, k, k2, local_window_size=(0, 0))
A(q, k, k2, local_window_size=1, is_causal=True); A(q, k, k2, local_window_size=(1, 2, 3))
A(q, k, k2, local_window_size=(-1, 2))
A(q, k, k2, query_seq_lengths=jnp.array([2, 4])); A(q, k, k2, key_value_seq_lengths=jnp.array([2, 5]))
A(q, k, k2, query_seq_lengths=jnp.array([0, 3]), key_value_seq_lengths=jnp.array([1, 4]), is_causal=True)
A(q, k, k2, query_seq_lengths=jnp.array(2)); A(q, k, k2, query_seq_lengths=jnp.array([2]))
A(q, k, k2, key_value_seq_lengths=jnp.array([2., 1.]))
A(q, k, k2, return_residual=True); A(q4[0], k[0], k2[0], return_residual=True)
A(q, k, k2, bias, mask, query_seq_lengths=jnp.array([2, 4]), return_residual=True)
A(q.astype('float16'), k.astype('float16'), k2.astype('float16'))
A(q.astype('bfloat16'), k.astype('bfloat16'), k2.astype('bfloat16'), is_causal=True)
A(q, k.astype('float16'), k2); A(q, k, k2, mask=bias); A(q, k, k2, bias[..., :4]); A(q, k, k2, bias[None])
A([1.], k, k); A(q[..., :4], k, k2); A(q, k, k2[..., :4]); A(q, k, k2[:, :3]); A(jnp.ones((2, 4, 3, 8)), k, k2)
A(q[None], k[None], k[None]); A(q, k, k2, implementation='xla'); A(q, k, k2, implementation='cudnn')
A(q, k, k2, implementation='zz')
jax.grad(lambda *x: (A(*x, is_causal=True) ** 2).sum(), (0, 1, 2, 3))(q, k, k2, bias)
jax.grad(lambda q: (A(q, k, k2, mask=mask, query_seq_lengths=jnp.array([2, 4])) ** 2).sum())(q)
jax.vmap(lambda q: A(q, k[0], k2[0]))(q); jax.jit(lambda q: A(q, k, k2, local_window_size=2))(q)
jax.grad(lambda q: A(q, k, k2, return_residual=True)[1].sum())(q)
nn.standardize(m); nn.standardize(m, 0, algorithm='stable'); nn.standardize(m, mean=1., variance=4.)
nn.standardize(m, where=m > 0); nn.standardize(m, (0, 1), epsilon=0.1); nn.standardize(m, algorithm='zz')
nn.standardize(m, 5); nn.standardize(m.astype('float16')); jax.grad(lambda m: nn.standardize(m)[0, 0])(m)
nn.standardize([1., 2.])
nn.softmax(m); nn.softmax(m, 0); nn.softmax(m, (0, 1)); nn.softmax(m, None); nn.softmax(m, where=m > 0)
nn.softmax(m, where=m > 9); nn.softmax(m, -3); nn.softmax(jnp.array([jnp.inf, 1.]))
nn.softmax(jnp.array([-jnp.inf, -jnp.inf])); nn.softmax(jnp.zeros((2, 0))); nn.softmax(2.)
nn.softmax(m.astype('bfloat16')); nn.softmax(m > 0); nn.softmax(i8); nn.softmax([1., 2.]); nn.softmax('a')
jax.grad(lambda m: nn.softmax(m, where=m > 0)[0, 1])(m); jax.jacfwd(nn.softmax)(m[0])
jax.hessian(lambda m: nn.log_softmax(m)[0])(m[0]); nn.log_softmax(m, where=m > 0); nn.log_softmax(m, (0, 1))
nn.log_softmax(m, 0); nn.log_softmax(i8); jax.vmap(nn.log_softmax)(m)
jax.grad(lambda m: nn.log_softmax(m, where=m > 0)[0, 1])(m)
nn.logsumexp(m, 1, b=jnp.abs(m)); nn.logsumexp(m, 1, b=-m, return_sign=True); nn.logsumexp(m, 1, where=m > 0)
nn.logsumexp(m, 1, where=m > 9); nn.logsumexp(m, keepdims=True); nn.logsumexp(jnp.array([jnp.inf, 1.]))
nn.logsumexp(jnp.array([-jnp.inf, -jnp.inf])); nn.logsumexp(i8); nn.logsumexp(m, 7)
jax.grad(lambda m: nn.logsumexp(m, where=m > 0))(m); jax.grad(lambda b: nn.logsumexp(m, b=b))(jnp.abs(m))
nn.logsumexp(jnp.zeros(0)); nn.logsumexp([1., 2.])
nn.logmeanexp(m); nn.logmeanexp(m, 1, m > 0, True); nn.logmeanexp(i8); jax.grad(nn.logmeanexp)(m); nn.one_hot(i8, 4)
nn.one_hot(i8, 4, axis=0, dtype='int8'); nn.one_hot(3, 4); nn.one_hot(m, 4); nn.one_hot(i8, 4, axis=5)
nn.one_hot(i8, 2.5); nn.one_hot(i8, 0); jax.vmap(lambda i: nn.one_hot(i, 3, axis='b'), axis_name='b')(jnp.arange(3))
nn.one_hot([1], 3)
jax.grad(nn.relu)(0.); jax.grad(nn.relu6)(0.); jax.grad(nn.relu6)(6.); jax.grad(nn.leaky_relu)(0.); jax.grad(nn.elu)(0.)
jax.grad(nn.selu)(0.); jax.grad(nn.celu)(0.); jax.grad(nn.hard_tanh)(1.); jax.grad(nn.hard_sigmoid)(3.)
jax.grad(nn.sparse_plus)(1.); jax.grad(nn.sparse_sigmoid)(1.); jax.grad(nn.soft_sign)(0.)
jax.grad(nn.softplus)(jnp.inf); jax.grad(nn.squareplus)(0.); jax.grad(jax.grad(nn.relu))(0.); jax.grad(nn.relu)(jnp.nan)
nn.glu(m); nn.glu(t, 1); nn.glu(m[:, :3]); nn.glu(m, 5); nn.glu(i8); nn.elu(m, 2.); nn.celu(m, jnp.array(.5))
nn.leaky_relu(m, .3); nn.leaky_relu(i8, .3); nn.squareplus(m, 1.); nn.gelu(m, False)
nn.gelu(m.astype('bfloat16'), False); nn.log1mexp(jnp.abs(m)); jax.grad(lambda x: nn.log1mexp(x))(.5); nn.relu('a')
nn.relu([1.]); nn.silu(1j); nn.gelu(None); nn.identity([1])
I.orthogonal()(key, (3, 4)); I.orthogonal(2., 0)(key, (3, 4, 2)); I.orthogonal(dtype='complex64')(key, (3, 2))
I.orthogonal()(key, (3,)); I.orthogonal(dtype=int)(key, (3, 2)); I.orthogonal(column_axis=5)(key, (3, 2))
I.orthogonal()(key, (0, 3)); I.orthogonal()(key, (3, 2), 'float64')
I.delta_orthogonal()(key, (3, 4, 2, 4)); I.delta_orthogonal(2.)(key, (2, 2, 2))
I.delta_orthogonal()(key, (3, 3, 1, 2, 2)); I.delta_orthogonal()(key, (3, 4)); I.delta_orthogonal()(key, (3, 4, 2))
I.delta_orthogonal()(key, (1, 1, 1, 1, 1, 1)); I.delta_orthogonal(dtype='complex64')(key, (1, 2, 2))
I.variance_scaling(1., 'fan_in', 'uniform')(key, (3, 4), 'complex64')
I.variance_scaling(1., 'fan_in', 'truncated_normal')(key, (3, 4), 'complex64')
I.variance_scaling(1., 'fan_in', 'normal')(key, (3, 4), 'complex64')
I.variance_scaling(2., 'fan_geo_avg', 'normal', 0, (1, 2))(key, (3, 2, 2))
I.variance_scaling(2., 'fan_avg', 'uniform', batch_axis=0)(key, (3, 2, 2))
I.variance_scaling(1., 'fan_x', 'normal')(key, (3, 4)); I.variance_scaling(1., 'fan_in', 'cauchy')(key, (3, 4))
I.glorot_normal()(key, (3,)); I.he_uniform(dtype='float16')(key, (2, 2)); I.lecun_uniform(0, 1)(key, (2, 3))
I.kaiming_normal(dtype='bfloat16')(key, (2, 2)); I.xavier_uniform()(key, (3, 2, 2, 2))
I.glorot_uniform(dtype=int)(key, (2, 2))
I.zeros(key, (2,), int); I.ones(key, (2,), 'complex64'); I.constant(3, int)(key, (2,))
I.constant(jnp.arange(2.))(key, (3, 2)); I.uniform(2.)(key, (2,), 'float16'); I.normal(2., 'complex64')(key, (2,))
I.truncated_normal(1., lower=0., upper=.5)(key, (3,)); I.uniform(dtype=int)(key, (2,)); I.normal()(key, 3)
I.zeros(key, (-1,))
"""
UNARY = (
    "celu elu gelu hard_sigmoid hard_silu hard_tanh identity leaky_relu log_sigmoid mish relu relu6 selu sigmoid silu"
    " soft_sign softplus sparse_plus sparse_sigmoid squareplus tanh log_softmax softmax logsumexp"
).split()


def cases() -> str:
    """All expressions: those above, and each function of one argument on each dtype, its derivative and both sides'
    limits.
    """
    rows = [CASES]
    for name in UNARY:
        dtypes = "".join(f"nn.{name}(w.astype('{d}')); " for d in ("float16", "bfloat16", "int8", "bool", "complex64"))
        rows.append(
            f"nn.{name}(w); {dtypes} nn.{name}(jnp.array([jnp.inf, -jnp.inf, jnp.nan, -0.])); nn.{name}(jnp.zeros((0,"
            f" 2))); jax.vmap(jax.grad(lambda x: nn.{name}(x).sum()))(w); jax.jit(nn.{name})(w[:2])"
        )
    return "\n".join(rows)


def scope(jax, jnp, np) -> dict:
    wave = lambda *shape: jnp.sin(jnp.arange(float(np.prod(shape))) * 1.7).reshape(shape)
    return {
        "jax": jax,
        "jnp": jnp,
        "np": np,
        "nn": jax.nn,
        "I": jax.nn.initializers,
        "A": jax.nn.dot_product_attention,
        "key": jax.random.key(5),
        "m": 3 * wave(3, 4),
        "t": wave(2, 4, 2),
        "w": jnp.array([-7.0, -1.5, -0.3, 0.0, 0.2, 1.4, 8.0]),
        "i8": jnp.array([0, 2, -1, 5], "int8"),
        "q": wave(2, 4, 2, 8),
        "q4": wave(2, 4, 4, 8),
        "k": wave(2, 5, 2, 8) * 2,
        "k2": jnp.cos(wave(2, 5, 2, 8) * 3),
        "bias": wave(2, 2, 4, 5),
        "bias4": wave(1, 4, 4, 5),
        "mask": wave(2, 2, 4, 5) > -0.4,
    }
