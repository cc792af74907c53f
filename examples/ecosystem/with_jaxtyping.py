"""jaxtyping: shapes and dtypes in annotations, checked at run time, inside jit too."""

import weft.as_jax  # noqa: F401  `import jax` gives weft
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree, jaxtyped


@jax.jit
@jaxtyped(typechecker=None)  # names of axes are bound once for each call
def nearest(
    points: Float[Array, "n d"],  # noqa: F722  axes are named
    centres: Float[Array, "k d"],  # noqa: F722
) -> Int[Array, " n"]:  # noqa: F722
    if not isinstance(points, Float[Array, "n d"]) or not isinstance(centres, Float[Array, "k d"]):
        raise TypeError(f"points {points} and centres {centres} don't fit")
    found = jnp.argmin(((points[:, None] - centres[None]) ** 2).sum(-1), axis=1)
    assert isinstance(found, Int[Array, " n"]) and not isinstance(found, Int[Array, " k"])
    return found


def refused(*args) -> bool:
    try:
        nearest(*args)
    except TypeError:
        return True
    return False


def main() -> dict:
    points = jax.random.normal(jax.random.key(0), (50, 3))
    found = nearest(points, points[:4])
    assert list(found[:4]) == [0, 1, 2, 3]
    assert (
        refused(points, points[:4, :2]) and refused(points, jnp.arange(12).reshape(4, 3)) and refused(points[0], points)
    )
    assert isinstance(jax.random.key(0), Key[Array, ""]) and not isinstance(points, Key[Array, "..."])
    assert isinstance({"a": points, "b": [points]}, PyTree[Float[Array, "50 3"]]) and not isinstance(
        {"a": found}, PyTree[Float[Array, "..."]]
    )
    return {"points near each centre": float((found * jnp.arange(50)).sum())}


if __name__ == "__main__":
    print(main())
