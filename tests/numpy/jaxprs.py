"""Functions whose jaxprs must read like real JAX's; `python jaxprs.py jax` or `weft` prints them as JSON."""

import importlib
import json
import sys
import warnings

SETUP = """
x = jnp.ones((3, 4)); v = jnp.ones(3); i = jnp.arange(3); k = jax.random.key(0); raw = jax.random.PRNGKey(0)
"""

FUNCTIONS = """
lambda x: jnp.where(x > 0, x, 0.) | x
lambda x: x.mean(0) | x
lambda x: jnp.var(x) | x
lambda x: x.std(0) | x
lambda x: x[0] | x
lambda x: x[-1] | x
lambda x: x[1:, ::2] | x
lambda x: x[::-1] | x
lambda x, i: x[i] | x, i
lambda x, i: x[i, 0] | x, i
lambda x: x.at[0].set(1.) | x
lambda x: x.at[1:].set(0.) | x
lambda x: jax.nn.softmax(x) | x
lambda x: jax.nn.log_softmax(x) | x
lambda x: jax.nn.relu(x) | x
lambda i: jax.nn.one_hot(i, 5) | i
lambda x: jax.nn.silu(x) | x
lambda x: jax.nn.gelu(x) | x
lambda x: jax.nn.sigmoid(x) | x
lambda x: jnp.logaddexp(x, x) | x
lambda x: jnp.clip(x, 0., 1.) | x
lambda x: x.argmax(-1) | x
lambda x: x @ x.T | x
lambda x: jnp.einsum('ij,kj->ik', x, x) | x
lambda x, v: jnp.dot(v, x) | x, v
lambda x: x ** 2 | x
lambda x: x ** 3. | x
lambda x: x ** x | x
lambda i: i / 2 | i
lambda i: i // 2 | i
lambda i: i % 2 | i
lambda x: x % 2 | x
lambda x, v: x + v[:, None] | x, v
lambda x: x + x[0] | x
lambda x: x * 2.0 | x
lambda: jnp.arange(5) |
lambda: jnp.linspace(0, 1, 5) |
lambda: jnp.zeros((3,)) |
lambda: jnp.eye(3) |
lambda x: jnp.concatenate([x, x]) | x
lambda x: jnp.array([x[0, 0], 1., x[0, 1]]) | x
lambda i: i.sum() | i
lambda x: (x > 0).sum() | x
lambda x: (x > 0).any() | x
lambda v: jnp.sort(v) | v
lambda v: jnp.argsort(v) | v
lambda v: jnp.cumsum(v) | v
lambda i: jnp.sqrt(i) | i
lambda x, i: jnp.take(x, i, axis=0) | x, i
lambda v: jnp.linalg.norm(v) | v
lambda x: abs(-x) | x
lambda x: jnp.maximum(x, 0) | x
lambda x: x.reshape(-1) | x
lambda x: x.T | x
lambda x: x.astype(int) | x
lambda n: jnp.full((3,), n) | 2
lambda x: jnp.isnan(x) | x
lambda x: jnp.round(x) | x
lambda i: jnp.floor(i) | i
lambda x: jnp.tril(x) | x
lambda v: jnp.outer(v, v) | v
lambda v: jnp.flip(v) | v
lambda v: jnp.diag(v) | v
lambda x: jnp.trace(x) | x
lambda v: jnp.repeat(v, 2) | v
lambda x: jnp.expand_dims(x, 1) | x
lambda x: x[None].squeeze(0) | x
lambda x: jnp.fft.fft(x) | x
lambda x: jnp.fft.rfft(x) | x
lambda x: jnp.fft.irfft(x) | x
lambda k: jax.random.uniform(k, (3,)) | k
lambda k: jax.random.normal(k, (3,)) | raw
lambda k: jax.random.split(k) | raw
lambda k: jax.random.randint(k, (3,), 0, 10) | k
lambda k: jax.random.permutation(k, 5) | k
lambda k: jax.random.categorical(k, jnp.ones((3, 4))) | k
lambda k: jax.random.bernoulli(k, 0.3, (3,)) | k
"""


def texts(jax, jnp) -> dict:
    scope = {"jax": jax, "jnp": jnp}
    exec(SETUP, scope)
    out = {}
    for line in FUNCTIONS.strip().splitlines():
        source, _, args = line.rpartition("|")
        function, values = eval(source, scope), eval(f"({args.strip()},)" if args.strip() else "()", scope)
        out[source.strip()] = str(jax.make_jaxpr(function)(*values))
    return out


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    module = importlib.import_module(sys.argv[1])
    print(json.dumps(texts(module, importlib.import_module(sys.argv[1] + ".numpy"))))
