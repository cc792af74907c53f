"""einops: a patch embedding and attention with heads as rearrangements, and einops' own layers of axes through jit
and grad.
"""

import weft.as_jax  # noqa: F401  `import jax` gives weft
import jax
import jax.numpy as jnp
import numpy as np
from einops import einsum, pack, rearrange, reduce, repeat, unpack


def attention(weights, image, heads=4):
    x = rearrange(image, "b (h p) (w q) c -> b (h w) (p q c)", p=4, q=4) @ weights["embed"]
    q, k, v = rearrange(x @ weights["qkv"], "b n (three h d) -> three b h n d", three=3, h=heads)
    scores = einsum(q, k, "b h i d, b h j d -> b h i j") / q.shape[-1] ** 0.5
    out = einsum(jax.nn.softmax(scores, -1), v, "b h i j, b h j d -> b h i d")
    return reduce(rearrange(out, "b h n d -> b n (h d)"), "b n d -> b d", "mean")


def main() -> dict:
    keys = jax.random.split(jax.random.key(0), 3)
    weights = {"embed": jax.random.normal(keys[0], (48, 32)) / 7, "qkv": jax.random.normal(keys[1], (32, 96)) / 6}
    image = jax.random.normal(keys[2], (2, 16, 16, 3))
    out = jax.jit(attention)(weights, image)
    assert out.shape == (2, 32) and np.allclose(out, attention(weights, image), atol=1e-5)
    grads = jax.grad(lambda w: (attention(w, image) ** 2).sum())(weights)
    packed, shapes = pack([out, repeat(out, "b d -> b two d", two=2)], "b * d")
    first, second = unpack(packed, shapes, "b * d")
    assert packed.shape == (2, 3, 32) and np.array_equal(first, out) and np.array_equal(second[:, 1], out)
    try:
        rearrange(image, "b (h p) w c -> b h p w c", p=5)
        raise SystemExit("a size that doesn't divide was accepted")
    except Exception as e:
        assert "divide" in str(e), e
    return {"output": float(jnp.abs(out).sum()), "gradient": float(jnp.abs(grads["qkv"]).sum())}


if __name__ == "__main__":
    print(main())
