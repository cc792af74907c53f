"""orbax: a training state is saved asynchronously at some steps, and comes back on another mesh."""

import os
import pathlib
import tempfile

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import weft.as_jax  # noqa: F401  `import jax` gives weft
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import NamedSharding, PartitionSpec as P


@jax.jit
def step(state):
    gradient = jax.grad(lambda w: jnp.mean((jnp.tanh(w) - 0.5) ** 2))(state["w"])
    return {"w": state["w"] - gradient, "momentum": state["momentum"] + 1, "step": state["step"] + 1}


def main() -> dict:
    devices = jax.devices()[:8]
    n = len(devices)  # one, where a backend has no more
    one = jax.make_mesh((n // 2 or 1, min(n, 2)), ("x", "y"), devices=devices)
    other = jax.make_mesh((min(n, 2), n // 2 or 1), ("a", "b"), devices=devices)
    state = {
        "w": jax.device_put(np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8), NamedSharding(one, P("x", "y"))),
        "momentum": jax.device_put(jnp.zeros((8,), jnp.bfloat16), NamedSharding(one, P("x"))),
        "step": jnp.int32(0),
    }
    with tempfile.TemporaryDirectory() as folder:
        options = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=2)
        with ocp.CheckpointManager(pathlib.Path(folder) / "run", options=options) as manager:
            for i in range(8):
                state = step(state)
                manager.save(i, args=ocp.args.StandardSave(state))
            manager.wait_until_finished()
            kept = list(manager.all_steps())
            like = {
                "w": jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=NamedSharding(other, P("b", "a"))),
                "momentum": jax.ShapeDtypeStruct((8,), jnp.bfloat16, sharding=NamedSharding(other, P("b"))),
                "step": jax.ShapeDtypeStruct((), jnp.int32, sharding=NamedSharding(other, P())),
            }
            back = manager.restore(kept[-1], args=ocp.args.StandardRestore(like))
    assert back["w"].sharding.spec == P("b", "a") and back["momentum"].dtype == jnp.bfloat16
    return {
        "kept": len(kept),
        "first kept": kept[0],
        "step": int(back["step"]),
        "momentum": float(back["momentum"].sum()),
        "w": float(back["w"].sum()),
        "norm": float(jnp.linalg.norm(back["w"])),
    }


if __name__ == "__main__":
    print(main())
