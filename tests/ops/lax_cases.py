"""Expressions over `lax` and `jax` whose results (or error classes) must be those of real JAX."""

from frozen import split

NARROW = (
    "int2",
    "int4",
    "uint2",
    "uint4",
    "float4_e2m1fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
)
DTYPES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "uint8",
    "uint16",
    "uint32",
    "bfloat16",
    "float16",
    "float32",
    "complex64",
    *NARROW,
)

SETUP = """
x = jnp.array([[1.5, -2., 0.25], [3., -0.5, 4.]])
v = jnp.array([3., 1., 2., -1., 0.5])
i = jnp.array([5, -3, 7, 0, 100])
b = jnp.array([True, False, True, True, False])
k4 = jnp.array([1, 2, 3, 4], 'uint32')
lhs, rhs = jnp.arange(18.).reshape(6, 3) % 5 - 2, jnp.arange(12.).reshape(2, 3, 2) % 7 - 3
sizes = jnp.array([2, 3])
rows = lambda start, *shape: (jnp.arange(float(np.prod(shape))) * 7 % 11 - start).reshape(shape)
ragged = lambda numbers, l, r: lax.RaggedDotDimensionNumbers(
    dot_dimension_numbers=numbers, lhs_ragged_dimensions=l, rhs_group_dimensions=r)
rbg, urbg = jax.random.key(42, impl='rbg'), jax.random.key(42, impl='unsafe_rbg')
f32 = jnp.float32
at = lax.ScatterDimensionNumbers((), (0,), (0,))
one = lambda n: jnp.array([1, 0, 1]).astype(n)
"""

CASES = """
lax.split(x, (1, 2), axis=1)[1]; lax.split(x, (1, 1), 1); lax.split(x, sizes=(3,)); lax.stack([x, x], axis=-1)
lax.stack([x, x[:1]]); lax.stack([x, x.astype('int32')]); lax.unstack(x, axis=1)[2]; lax.unstack(x, 5); lax.unstack(1.)
lax.tile(x, (2, 1)); lax.tile(operand=v, reps=(3,)); lax.tile(x, (2,)); lax.broadcast_like(v[:3], x)
lax.broadcast_to_rank(v, 3).shape; lax.empty((2, 3), 'int8').shape; lax.shape_as_value((2, 3)).tolist()
lax.shape_as_value(()).tolist()
lax.index_take(x, (jnp.array([0, 5]), jnp.array([1, 2])), (0, 1)); lax.index_take(x, (jnp.array([0, -1]),), (1,))
lax.dtype(v); lax.dtype(1)
lax.mulhi(jnp.array([2**30, -5]), jnp.array([8, 7])); lax.mulhi(jnp.array([100, -5], 'int8'), jnp.array([8, 7], 'int8'))
lax.mulhi(jnp.array([2**31 + 5], 'uint32'), jnp.array([2**30 + 3], 'uint32')); lax.mulhi(1., 2.)
lax.mul(jnp.int8(100), jnp.int8(100), out_dtype='int32'); lax.mul(f32(1.1), f32(1.1), out_dtype='bfloat16')
lax.mul(1., 2); lax.nextafter(x1=1., x2=2.)
lax.exp(v, accuracy=lax.AccuracyMode.HIGHEST); lax.log(v[:3], accuracy=lax.Tolerance(rtol=1e-3)); lax.Tolerance(-1)
lax.Tolerance(); lax.AccuracyMode.HIGHEST.value
lax.eq_to_p.bind(jnp.array([-0., jnp.nan, 1.]), jnp.array([0., jnp.nan, 2.]))
lax.lt_to_p.bind(jnp.array([-0., jnp.nan, 1.]), jnp.array([0., jnp.nan, jnp.nan])); lax.le_to_p.bind(i, i)
lax.dynamic_slice(v, (-2,), (2,)); lax.dynamic_slice(v, (-2,), (2,), allow_negative_indices=False)
lax.dynamic_slice(x, (jnp.int32(-1), 0), (1, 2), allow_negative_indices=(True, False))
lax.dynamic_index_in_dim(v, -1, keepdims=False, allow_negative_indices=True)
lax.dynamic_update_slice(v, v[:2], (-1,), allow_negative_indices=False)
lax.dynamic_update_index_in_dim(v, 9., -2, 0, allow_negative_indices=True)
lax.dynamic_slice_in_dim(v, 3, 2, allow_negative_indices=False)
lax.reduce(x, f32(0), lambda a, b: a * b + a + b, (0,)); lax.reduce(x, f32(0), lambda a, b: a * b + a + b, (0, 1))
lax.reduce((v, i), (f32(0), jnp.int32(1)), lambda a, b: (a[0] + b[0], lax.max(a[1], b[1])), (0,))
lax.reduce(x, 0, lax.add, (0,)); lax.reduce(x, v[:2], lambda a, b: a, (0,))
jax.grad(lambda x: lax.reduce(x, f32(0), lambda a, b: a * b + a + b, (0, 1)))(x / 4)
jax.vmap(lambda x: lax.reduce(x, f32(1), lambda a, b: a * b + a + b, (0,)))(x)
lax.reduce(i, jnp.int32(3), lax.bitwise_xor, (0,)); lax.reduce(i, jnp.int32(3), lax.bitwise_and, (0,))
lax.reduce_xor(i, (0,)); lax.reduce_and(b, (0,)); lax.reduce_and(v, (0,)); lax.reduce_sum(b, (0,))
lax.reduce_sum(v, (0, 0)); lax.reduce_or(operand=i, axes=(0,)); lax.reduce_max(operand=x, axes=[1])
lax.scatter_sub(v, jnp.array([[1], [1], [9]]), v[:3], at)
jax.grad(lambda u: (lax.scatter_sub(v, jnp.array([[1], [1], [9]]), u, at) ** 2).sum())(v[:3])
lax.scatter_sub(v, jnp.array([[1], [9]]), v[:2], at, mode='clip')
lax.approx_max_k(x, 2)[0]; lax.approx_max_k(x, 2)[1]; lax.approx_min_k(x, 2)[0]
lax.approx_min_k(x, 1, reduction_dimension=0)[1]; lax.approx_max_k(x, 1, aggregate_to_topk=False)[0]
lax.approx_max_k(i, 2); lax.approx_max_k(v, 9); lax.approx_max_k(v, -1)
jax.grad(lambda v: lax.approx_max_k(v, 2)[0].sum())(v)
lax.approx_max_k(jnp.arange(5000.), 3, aggregate_to_topk=False)[0].shape
lax.approx_max_k(jnp.zeros((2, 3000)), 50, recall_target=0.5, aggregate_to_topk=False)[0].shape
lax.approx_max_k(jnp.zeros((2, 1100)), 1, aggregate_to_topk=False)[1].shape
lax.top_k(x, 2, axis=-1)[0]; lax.top_k(x, k=1, axis=0)[1]; lax.top_k(x, 9); lax.sort((i, v), num_keys=1)[1]
lax.sort(operand=[i % 2, v], dimension=0, num_keys=2)[1]; lax.sort((i, x)); lax.sort(())
lax.rng_bit_generator(k4, (5,)); lax.rng_bit_generator(k4, (3, 3), 'uint8')
lax.rng_bit_generator(k4, (2, 3), 'uint16', lax.RandomAlgorithm.RNG_PHILOX)
lax.rng_bit_generator(k4, (5,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)
lax.rng_bit_generator(k4, (3, 4), 'uint8', lax.RandomAlgorithm.RNG_THREE_FRY)
lax.rng_bit_generator(k4, (3, 5), 'uint32', lax.RandomAlgorithm.RNG_THREE_FRY)
lax.rng_bit_generator(k4, (), 'uint32', lax.RandomAlgorithm.RNG_THREE_FRY); lax.rng_bit_generator(k4, (5,), 'int32')
jax.vmap(lambda k: lax.rng_bit_generator(k, (5,)))(jnp.stack([k4, k4 + 1]))
lax.rng_bit_generator(jnp.array([2**32 - 1] * 4, 'uint32'), (9,))
lax.rng_bit_generator(jnp.array([7, 8, 2**32 - 1, 2**32 - 1], 'uint32'), (7,), \
algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)
lax.rng_uniform(0., 1., (2, 3)).shape; lax.rng_uniform(0, 1., (2,))
jax.random.key_data(rbg); jax.random.key_data(jax.random.split(rbg)); jax.random.key_data(jax.random.split(rbg, (2, 2)))
jax.random.key_data(jax.random.fold_in(rbg, 7)); jax.random.bits(rbg, (3,)); jax.random.bits(rbg, (3,), 'uint8')
jax.random.uniform(rbg, (3,)); jax.random.normal(rbg, (2, 2)); jax.random.permutation(rbg, 5)
jax.random.key_data(urbg); jax.random.key_data(jax.random.split(urbg))
jax.random.key_data(jax.random.split(urbg, (2, 2))); jax.random.key_data(jax.random.fold_in(urbg, 7))
jax.random.bits(urbg, (3,), 'uint16'); jax.random.key_data(jax.random.key(2**33 + 5, impl='rbg'))
jax.random.PRNGKey(3, impl='rbg'); jax.random.key_impl(urbg)
jax.vmap(lambda k: jax.random.bits(k, (2,)))(jax.random.split(rbg, 3))
jax.random.key_data(jax.vmap(lambda k: jax.random.split(k, 2))(jax.random.split(rbg, 3)))
jax.random.key_data(jax.vmap(lambda k: jax.random.split(k, 2))(jax.random.split(urbg, 3)))
jax.random.key_data(jax.vmap(jax.random.fold_in, (0, None))(jax.random.split(urbg, 3), 3))
jax.random.key_data(jax.vmap(jax.random.fold_in, (None, 0))(urbg, jnp.arange(3)))
jax.random.key_data(jax.vmap(jax.random.fold_in, (0, None))(jax.random.split(rbg, 3), 3))
jax.random.key_data(jax.vmap(jax.random.fold_in, (None, 0))(jax.random.key(1), jnp.arange(3)))
jax.random.key(0, impl='nothing'); jax.random.bits(rbg, (2,), 'int32')
jax.random.wrap_key_data(jnp.arange(3, dtype='uint32'), impl='rbg')
jax.random.wrap_key_data(jnp.arange(8, dtype='uint32').reshape(2, 4), impl='rbg').shape
jax.jit(lambda: jax.random.uniform(jax.random.key(3, impl='unsafe_rbg'), (2,)))()
lax.ragged_dot(lhs, rhs, sizes); lax.ragged_dot(lhs, rhs, sizes + 3)
lax.ragged_dot(lhs.astype('bfloat16'), rhs.astype('bfloat16'), sizes, preferred_element_type='float32')
lax.ragged_dot(lhs, rhs, jnp.array([1, 2, 3])); lax.ragged_dot(lhs, rhs[:, :2], sizes)
lax.ragged_dot(lhs, rhs, jnp.ones(2)); lax.ragged_dot(lhs, rhs[0], sizes)
jax.grad(lambda a: (lax.ragged_dot(a, rhs, sizes) ** 2).sum())(lhs)
jax.grad(lambda a: (lax.ragged_dot(lhs, a, sizes) ** 2).sum())(rhs)
jax.vmap(lax.ragged_dot)(jnp.stack([lhs, -lhs]), jnp.stack([rhs, rhs + 1]), jnp.stack([sizes, sizes - 1]))
lax.ragged_dot_general(rows(2, 3, 6), rows(3, 6, 2), sizes, ragged((((1,), (0,)), ((), ())), [1], []))
lax.ragged_dot_general(rows(2, 2, 3, 6), rows(3, 2, 6, 2), jnp.stack([sizes, sizes - 1]), \
ragged((((2,), (1,)), ((0,), (0,))), [2], []))
lax.ragged_dot_general(rows(2, 6, 3, 2), rows(3, 6, 2, 2), sizes, ragged((((2,), (1,)), ((0,), (0,))), [0], []))
lax.ragged_dot_general(rows(2, 2, 4, 3), rhs, sizes - 1, ragged((((2,), (1,)), ((), ())), [1], [0]))
lax.ragged_dot_general(rows(2, 2, 4, 3), rhs, jnp.stack([sizes - 1, sizes - 2]), \
ragged((((2,), (1,)), ((), ())), [1], [0]))
lax.ragged_dot_general(lhs, rhs, sizes, ragged((((1,), (1,)), ((), ())), [0, 1], [0]))
lax.ragged_dot_general(lhs, rhs, sizes, ragged((((1,), (1,)), ((), ())), [0], []))
lax.ragged_dot_general(lhs, rhs, sizes, ragged((((1,), (1,)), ((), ())), [5], [0]))
lax.scaled_dot(rows(2, 4, 8).astype('float8_e4m3fn'), rows(3, 8, 3).astype('float8_e4m3fn'), \
lhs_scale=jnp.full((4, 2), 2., 'float8_e8m0fnu'), rhs_scale=jnp.full((2, 3), 4., 'float8_e8m0fnu'), \
preferred_element_type='float32')
lax.scaled_dot(rows(2, 4, 8).astype('bfloat16'), rows(3, 8, 3).astype('bfloat16'), \
rhs_scale=jnp.full((2, 3), .5, 'bfloat16'))
lax.scaled_dot(lhs, lhs.T).dtype; lax.scaled_dot(rows(2, 4, 8), rows(3, 8, 3), lhs_scale=jnp.ones((4, 3)))
lax.scaled_dot(v, v)
lax.scaled_dot(rows(2, 2, 4, 8), rows(1, 2, 3, 8), lhs_scale=rows(3, 2, 4, 2), rhs_scale=rows(1, 2, 3, 2), \
dimension_numbers=(((2,), (2,)), ((0,), (0,))), preferred_element_type='float32')
lax.dot(lhs, lhs.T, precision='F32_F32_F32'); lax.dot(x, x.T, precision=lax.DotAlgorithmPreset.BF16_BF16_F32)
lax.dot(x, x.T, precision='F16_F16_F16'); lax.dot(x, x.T, precision='BF16_BF16_F32_X3')
lax.dot(x, x.T, precision='TF32_TF32_F32'); lax.dot(x, x.T, precision='foo'); lax.dot(x, x.T, precision=3)
lax.dot(x, x.T, precision=('highest', 'default'))
lax.dot(x, x.T, precision=lax.DotAlgorithm('float32', 'float32', 'float32'))
jax.grad(lambda a: lax.dot(a, x.T, precision='BF16_BF16_F32').sum())(x)
lax.dot(x, x, dimension_numbers=(((0,), (0,)), ((), ()))); lax.dot(x, x)
lax.dot_general(x, x, (((1,), (1,)), ((), ()))); lax.dot(i, i, preferred_element_type='float32')
lax.dot(x, x.T, preferred_element_type='bfloat16'); lax.dot(x, x.T, preferred_element_type='int32')
lax.dot(x.astype('float16'), x.T.astype('int8'), preferred_element_type='int32'); lax.dot(x.astype('float16'), x.T, \
preferred_element_type='int32'); lax.dot(x, x.T.astype('int8'), preferred_element_type='bool'); lax.dot(x, x.T * 1j, \
preferred_element_type='int32'); lax.dot(x.astype('int8'), x.T + 1j, preferred_element_type='float32')
lax.dot(x.astype('int16'), x.T.astype('float16'), preferred_element_type='int16'); lax.dot(x, x.T, \
preferred_element_type='bool'); lax.dot(b[:3], x.T, preferred_element_type='int32')
lax.dot(x, x.T.astype('bfloat16')).dtype; lax.dot(i[:3], x.T); lax.dot(b, b); repr(lax.DotAlgorithmPreset.F32_F32_F32)
lax.DotAlgorithm('float32', 'float32', 'float32').num_primitive_operations; lax.Precision('highest')
lax.optimization_barrier((v, 1)); jax.grad(lambda v: lax.optimization_barrier((v, v ** 2))[1].sum())(v); lax.dce_sink(v)
jax.jit(lambda v: lax.dce_sink(v) or v)(v); lax.after_all(1.)
jax.jit(lambda t: (lax.after_all(t, lax.create_token()), v))(lax.create_token())[1]; lax.stage(2.)
jax.jit(lambda: lax.stage(2.))()
lax.composite(lambda x, k=1.: x * k, 'my.foo')(v, k=2.)
jax.jit(lax.composite(lambda x: (x, x + 1), name='my.foo', version=2))(v)[1]
jax.grad(lambda v: lax.composite(lambda x: x.sum(), 'my.foo')(v))(v)
jax.jit(lambda y: lax.composite(lambda x: x + y, 'a.foo')(1.))(v)
lax.platform_dependent(v, cpu=lambda x: x + 1, default=lambda x: x)
lax.platform_dependent(v, tpu=lambda x: x + 1, default=lambda x: -x); lax.platform_dependent(v, tpu=lambda x: x)
jax.vmap(jax.grad(lambda y: lax.platform_dependent(y, cpu=lambda x: x ** 2, default=lambda x: x)))(v)
lax.cond(True, lambda: 1, lambda: 2); lax.cond(pred=False, true_fun=lambda x: 1, false_fun=lambda x: 2, operand=None)
lax.cond(True, 1., lambda x: x + 1, 2., lambda x: x); lax.cond(True, lambda x: x, lambda x: x, 1., operand=2.)
lax.cond(True, 1., lambda x: x, 2.); lax.switch(1, [lambda x: x, lambda x: 2 * x], operand=3)
lax.max(jnp.array([1 + 2j, 1 - 1j]), jnp.array([1 + 1j, 2]))
lax.min(jnp.array([1 + 2j, 1 - 1j]), jnp.array([1 + 1j, 2])); lax.abs(jnp.array([1], 'uint8')); lax.iota('bool', 2)
lax.bitcast_convert_type(jnp.arange(3, dtype='uint8'), 'uint32')
lax.reduce_precision(v, exponent_bits=4, mantissa_bits=2); jax.grad(lambda x: lax.reduce_precision(x, 5, 3))(1.23)
"""

# one for each dtype
TYPED = """lax.add(one(D), one(D)); lax.sub(one(D), one(D)); lax.mul(one(D), one(D)); lax.div(one(D), one(D)[:1])
lax.max(one(D), one(D)[::-1]); lax.eq(one(D), one(D)); lax.lt(one(D), one(D)[::-1]); lax.neg(one(D)); lax.sign(one(D))
lax.exp(one(D)); lax.sqrt(one(D)); lax.floor(one(D)); lax.is_finite(one(D)); lax.bitwise_not(one(D))
lax.population_count(one(D)); lax.square(one(D)); lax.reduce_sum(one(D), (0,)); lax.reduce_max(one(D), (0,))
lax.reduce_min(one(D), (0,)); lax.reduce_prod(one(D), (0,)); lax.cumsum(one(D)); lax.cummax(one(D))
lax.dot(one(D), one(D)); lax.rev(one(D), (0,)); lax.full((2,), 1, D); jnp.zeros(2, D); jnp.array([1, 0, 3], D)
jnp.array([1.5, -2., 300.]).astype(D); one(D).astype('float32'); one(D).astype('int32'); one(D).astype('bool')
one(D).astype('bfloat16'); repr(one(D)); one(D)[jnp.array([2, 0])]; one(D).at[0].set(0)
jnp.where(b[:3], one(D), one(D)[::-1])
one(D)[0].item(); np.asarray(one(D)).dtype.name; jax.device_put(np.asarray(one(D))); one(D) + one(D); one(D) * 2
one(D) + jnp.int32(1); one(D) + f32(1); jax.jit(lambda a: a)(one(D)); jnp.promote_types(D, 'int8').name
jnp.promote_types(D, 'bool').name; jnp.promote_types(D, 'float16').name; jnp.finfo(D).bits; jnp.iinfo(D).max""".replace(
    "\n", "; "
)


def expressions() -> list[str]:
    return [
        *split(CASES),
        *[
            e.replace("D)", f"'{d}')").replace("D,", f"'{d}',")
            for d in DTYPES
            for e in split(TYPED)
            # it has no zero to pad with
            if not (d == "float8_e8m0fnu" and "lax.cum" in e)
        ],
    ]
