"""weft.experimental.buffer_callback, and colocated_python."""

import numpy as np
import pytest

import weft
import weft.numpy as jnp
from weft.experimental import colocated_python
from weft.experimental.buffer_callback import Buffer, ExecutionStage, buffer_callback

F3 = weft.ShapeDtypeStruct((3,), "float32")


def double(context, out, x):
    np.asarray(out)[...] = 2 * np.asarray(x)


@pytest.mark.parametrize("wrap", [lambda f: f, weft.jit])
def test_results_are_written_into_buffers(wrap):
    x = jnp.arange(3.0)
    assert wrap(buffer_callback(double, F3))(x).tolist() == [0, 2, 4]
    assert wrap(buffer_callback(double, F3, has_side_effect=True))(x).tolist() == [0, 2, 4]

    def tree(context, outs, x, *, k):
        np.asarray(outs["a"])[...] = np.asarray(x) * np.asarray(k)
        np.asarray(outs["b"])[...] = 7

    f = buffer_callback(tree, {"a": F3, "b": weft.ShapeDtypeStruct((), "int32")})
    out = wrap(f)(x, k=2.0)
    assert out["a"].tolist() == [0, 2, 4] and out["b"] == 7 and out["b"].dtype == "int32"


def test_what_a_callback_is_given():
    seen = []

    def look(context, out, x):
        seen.append((context.stage, out.writeable, x.writeable, x.ndim, x.shape, str(x.dtype), repr(x)))
        assert isinstance(x, Buffer) and x.unsafe_raw_buffer_pointer() > 0
        assert np.from_dlpack(out).shape == (3,)
        with pytest.raises(weft.errors.BackendError, match="no stream"):
            context.stream
        with pytest.raises(ValueError, match="read-only"):
            np.asarray(x)[0] = 1
        double(context, out, x)

    assert buffer_callback(look, F3)(jnp.ones(3)).tolist() == [2, 2, 2]
    assert seen == [(ExecutionStage.EXECUTE, True, False, 1, (3,), "float32", "Buffer(float32[3])")]


def test_a_result_may_hold_an_argument():
    f = buffer_callback(lambda context, out, x: None, F3, input_output_aliases={0: 0})
    assert f(jnp.arange(3.0)).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"shape \(2,\) can't be the memory of result 0"):
        f(jnp.ones(2))
    with pytest.raises(ValueError, match="name arguments 0 to 0"):
        buffer_callback(double, F3, input_output_aliases={1: 0})(jnp.ones(3))


@pytest.mark.parametrize("method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"])
def test_transformations(method):
    x = jnp.arange(6.0).reshape(2, 3)
    f = buffer_callback(double, F3, vmap_method=method)
    assert weft.vmap(f)(x).tolist() == (2 * x).tolist()
    assert weft.jit(weft.vmap(f))(x).tolist() == (2 * x).tolist()
    with pytest.raises(NotImplementedError, match="vmap_method"):
        weft.vmap(buffer_callback(double, F3))(x)
    with pytest.raises(ValueError, match="JVP"):
        weft.grad(lambda x: f(x).sum())(x[0])


def test_functions_run_beside_devices_in_this_process():
    twice = colocated_python.colocated_python(lambda x: x * 2).specialize(devices=weft.devices())
    assert twice(jnp.arange(3)).tolist() == [0, 2, 4]
    assert colocated_python.colocated_python_class(dict)(a=1) == {"a": 1}
    cpus = weft.devices("cpu")
    assert colocated_python.colocated_cpu_devices(cpus) is cpus
    mesh = weft.sharding.Mesh(weft.devices("reference")[:1], ("x",))
    assert colocated_python.colocated_cpu_devices(mesh).flat_devices == tuple(cpus[:1])
    with pytest.raises(ValueError, match="jax_num_cpu_devices"):
        colocated_python.colocated_cpu_devices(weft.devices("reference")[:1] * (len(cpus) + 1))
