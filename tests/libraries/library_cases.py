"""Expressions over stax and optimizers whose results (or error classes) must be those of real JAX."""

from frozen import split

SETUP = """
from importlib import import_module as load
stax, opt = (load(jax.__name__ + '.example_libraries.' + name) for name in ('stax', 'optimizers'))
key = jax.random.key(0)
x = jnp.sin(jnp.arange(2 * 6 * 6 * 3.)).reshape(2, 6, 6, 3)
v = jnp.array([3., 1., 2.])

def run(layer, inputs, **kwargs):
    init, apply = layer
    _, params = init(key, jax.tree.map(jnp.shape, inputs))
    out = apply(params, inputs, **kwargs)
    return [*(out if isinstance(out, (list, tuple)) else [out]), *[jnp.sum(p) for p in jax.tree.leaves(params)]]

def shape(layer, shape):
    return jax.tree.map(int, layer[0](key, shape)[0])

def train(optimizer, steps=3):
    init, update, params = optimizer
    state = init({'w': jnp.array([1., -2., 3.]), 'b': jnp.array([[0.5, 1.]])})
    for i in range(steps):
        state = update(i, jax.tree.map(lambda p: p * 2 + 0.1, params(state)), state)
    return [params(state)['w'], params(state)['b']]
"""

CASES = """
run(stax.Dense(3), x[0, 0]); run(stax.Conv(4, (3, 3)), x); run(stax.Conv(4, (3, 3), (2, 2), 'SAME'), x)
run(stax.GeneralConv(('NCHW', 'OIHW', 'NHWC'), 2, (2, 2)), x)
run(stax.ConvTranspose(4, (3, 3), (2, 2), 'SAME'), x); run(stax.ConvTranspose(2, (3, 3)), x)
run(stax.Conv1DTranspose(2, (3,), (2,)), x[0])
run(stax.GeneralConvTranspose(('NHWC', 'HWIO', 'NHWC'), 2, (2, 2)), x); run(stax.BatchNorm(), x)
run(stax.BatchNorm(0, center=False), x); run(stax.BatchNorm(scale=False), x)
run(stax.BatchNorm(1, scale=False, center=False), x); run(stax.MaxPool((2, 2)), x); run(stax.SumPool((2, 2), (2, 2)), x)
run(stax.AvgPool((3, 3), (1, 1), 'SAME'), x)
run(stax.AvgPool((2, 2), spec='NCHW'), x); run(stax.MaxPool((2, 2), padding='SAME'), x); run(stax.Flatten, x)
run(stax.Identity, x[0, 0]); run(stax.FanInSum, [v, v]); run(stax.FanInConcat(), [v, v])
run(stax.FanInConcat(0), [x[0], x[1]]); run(stax.FanOut(2), v); run(stax.Dropout(0.5), v, rng=key)
run(stax.Dropout(0.5), v); run(stax.Dropout(0.5, mode='test'), v, rng=key)
run(stax.Dropout(0.5, mode='test'), v)
run(stax.serial(stax.Dense(4), stax.Relu, stax.Dropout(0.8), stax.Dense(2)), x[0, 0], rng=key)
run(stax.serial(stax.Dense(4), stax.Relu), x[0, 0])
run(stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(4), stax.Identity), stax.FanInConcat()), x[0, 0])
run(stax.shape_dependent(lambda shape: stax.Dense(shape[-1] * 2)), x[0, 0])
run(stax.serial(stax.Conv(4, (3, 3)), stax.BatchNorm(), stax.Relu, stax.MaxPool((2, 2), (2, 2)), stax.Flatten, \
stax.Dense(2), stax.LogSoftmax), x)
[layer[1]((), v - 2) for layer in (stax.Tanh, stax.Relu, stax.Exp, stax.LogSoftmax, stax.Softmax, stax.Softplus, \
stax.Sigmoid, stax.Elu, stax.LeakyRelu, stax.Selu, stax.Gelu)]
run(stax.elementwise(jnp.sum, axis=0), v); run(stax.elementwise(jnp.clip, min=1.5), v)
shape(stax.Conv(4, (3, 3)), (-1, 8, 8, 3)); shape(stax.Flatten, (2, 3, 4)); shape(stax.Dense(5), (-1, 3))
shape(stax.FanInConcat(), [(2, 3), (2, 4)]); shape(stax.MaxPool((2, 2), (2, 2)), (1, 8, 8, 3))
shape(stax.FanOut(2), (3,)); shape(stax.ConvTranspose(4, (3, 3), (2, 2)), (1, 5, 5, 3))
shape(stax.serial(stax.FanOut(2), stax.parallel(stax.Dense(4), stax.Identity)), (2, 3))
train(opt.sgd(0.1)); train(opt.momentum(0.1, 0.9)); train(opt.nesterov(0.1, 0.9)); train(opt.adagrad(0.1))
train(opt.rmsprop(0.1)); train(opt.rmsprop_momentum(0.1)); train(opt.adam(0.1)); train(opt.adamax(0.1))
train(opt.sm3(0.1)); train(opt.sgd(opt.exponential_decay(0.1, 2, 0.5)))
train(opt.sgd(opt.inverse_time_decay(0.1, 2, 0.5))); train(opt.sgd(opt.inverse_time_decay(0.1, 2, 0.5, True)))
train(opt.sgd(opt.polynomial_decay(0.1, 2, 0.01, 2.))); train(opt.sgd(opt.piecewise_constant([0, 1], [0.1, 0.2, 0.3])))
train(opt.sgd(opt.constant(0.1))); train(opt.adam(lambda i: 0.1 / (i + 1), b1=0.5), 2)
opt.piecewise_constant([1], [1., 2., 3.]); opt.piecewise_constant(1, [1.]); opt.make_schedule([0.1])
opt.l2_norm({'a': v, 'b': x[0, 0]}); opt.clip_grads([v, v * 2], 1.)[1]
opt.clip_grads([v, v * 2], 100.)[0]; opt.sgd(0.1).update_fn(0, {'a': v}, opt.sgd(0.1).init_fn({'b': v}))
opt.pack_optimizer_state([1.]); jax.tree.leaves(opt.momentum(0.1, 0.9).init_fn([v]))
jax.tree.leaves(opt.pack_optimizer_state(opt.unpack_optimizer_state(opt.adam(0.1).init_fn([v, v]))))
opt.unpack_optimizer_state(opt.momentum(0.1, 0.9).init_fn([v]))[0].subtree
jax.jit(opt.adam(0.1).update_fn)(1, [v], opt.adam(0.1).init_fn([v])).packed_state[0]
opt.momentum(0.1, 0.9).init_fn({'a': v}).tree_def == jax.tree.structure({'a': v})
"""


def expressions() -> list[str]:
    """Every expression, once."""
    return list(dict.fromkeys(split(CASES)))
