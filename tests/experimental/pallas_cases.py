"""Kernels, each as (function, operands): `cases(jax, pl, call)`, for real JAX and for weft. `call` is pallas_call, as
real JAX runs it without a GPU.
"""

import functools

import numpy as np


def cases(jax, pl, call):
    jnp, lax = jax.numpy, jax.lax
    f32, i32 = jnp.float32, jnp.int32
    out = lambda *shape, dtype=f32: jax.ShapeDtypeStruct(shape, dtype)
    spec = pl.BlockSpec
    x8 = np.arange(8, dtype=np.float32)
    rng = np.random.RandomState(0)
    table = lambda *shape: rng.uniform(-2, 2, shape).astype(np.float32)
    a, b = table(32, 24), table(24, 16)
    found = {}

    def case(*args, **kwargs):
        def add(f):
            found[f.__name__] = (f(**kwargs), args)
            return f

        return add

    def add_kernel(x_ref, y_ref, o_ref):
        o_ref[...] = x_ref[...] + y_ref[...]

    half = spec((4,), lambda i: (i,))
    added = functools.partial(call, add_kernel, out(8), grid=(2,), in_specs=[half, half], out_specs=half)

    @case(x8, x8[::-1].copy())
    def add():
        return added()

    @case(x8, x8)
    def add_whole():
        return call(add_kernel, out(8))

    @case(x8, np.float32(2))
    def scalars():
        def kernel(x_ref, k_ref, o_ref):
            o_ref[...] = x_ref[...] * k_ref[...]

        return call(kernel, out(8), grid=2, in_specs=[half, spec((), lambda i: ())], out_specs=half)

    def matmul_kernel(x_ref, y_ref, o_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            o_ref[...] = jnp.zeros_like(o_ref)

        o_ref[...] += jnp.dot(x_ref[...], y_ref[...])

    def product(kernel, bm, bn, bk, **more):
        return call(
            kernel,
            out(32, 16),
            grid=(32 // bm, 16 // bn, 24 // bk),
            in_specs=[spec((bm, bk), lambda i, j, k: (i, k)), spec((bk, bn), lambda i, j, k: (k, j))],
            out_specs=spec((bm, bn), lambda i, j, k: (i, j)),
            **more,
        )

    @case(a, b)
    def matmul():
        return product(matmul_kernel, 16, 8, 8)

    @case(a, b)
    def matmul_in_one():
        return product(matmul_kernel, 32, 16, 24)

    @case(a, b)
    def matmul_in_scratch():
        def kernel(x_ref, y_ref, o_ref, acc_ref):
            @pl.when(pl.program_id(2) == 0)
            def _():
                acc_ref[...] = jnp.zeros_like(acc_ref)

            acc_ref[...] += x_ref[...] @ y_ref[...]

            @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
            def _():
                o_ref[...] = jnp.maximum(acc_ref[...], 0)

        return product(kernel, 8, 8, 6, scratch_shapes=[pl.ANY((8, 8), f32)])

    @case(a, b)
    def accumulated_first_axis():
        """The axis that accumulates is the slowest one."""

        def kernel(x_ref, y_ref, o_ref):
            @pl.when(pl.program_id(0) == 0)
            def _():
                o_ref[...] = jnp.zeros_like(o_ref)

            o_ref[...] += jnp.dot(x_ref[...], y_ref[...])

        return call(
            kernel,
            out(32, 16),
            grid=(3, 2, 2),
            in_specs=[spec((16, 8), lambda k, i, j: (i, k)), spec((8, 8), lambda k, i, j: (k, j))],
            out_specs=spec((16, 8), lambda k, i, j: (i, j)),
        )

    @case(table(10, 12))
    def softmax():
        def kernel(x_ref, o_ref):
            x = x_ref[...]
            e = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
            o_ref[...] = e / jnp.sum(e, axis=1, keepdims=True)

        rows = spec((2, 12), lambda i: (i, 0))
        return call(kernel, out(10, 12), grid=(5,), in_specs=[rows], out_specs=rows)

    def attention_kernel(q_ref, k_ref, v_ref, o_ref):
        q = q_ref[...]

        def step(t, carry):
            acc, top, total = carry
            k, v = k_ref[pl.ds(4 * t, 4), :], v_ref[pl.ds(4 * t, 4), :]
            scores = jnp.dot(q, k.T)
            new = jnp.maximum(top, scores.max(axis=1, keepdims=True))
            weights, old = jnp.exp(scores - new), jnp.exp(top - new)
            return acc * old + jnp.dot(weights, v), new, total * old + weights.sum(axis=1, keepdims=True)

        n, d = q.shape
        begin = (jnp.zeros((n, d), f32), jnp.full((n, 1), -jnp.inf, f32), jnp.zeros((n, 1), f32))
        acc, _, total = lax.fori_loop(0, k_ref.shape[0] // 4, step, begin)
        o_ref[...] = acc / total

    @case(table(2, 16, 8), table(2, 12, 8), table(2, 12, 8))
    def attention():
        q, kv = spec((None, 4, 8), lambda h, i: (h, i, 0)), spec((None, 12, 8), lambda h, i: (h, 0, 0))
        return call(attention_kernel, out(2, 16, 8), grid=(2, 4), in_specs=[q, kv, kv], out_specs=q)

    def copy_two(x_ref, o_ref, s_ref):
        o_ref[...] = x_ref[...]
        s_ref[...] = x_ref[...]

    for kind in ("float32", "int32", "uint8", "bool", "bfloat16"):
        found[f"beyond_the_edge_{kind}"] = (
            call(
                copy_two,
                [out(10, dtype=jnp.dtype(kind)), out(12, dtype=jnp.dtype(kind))],
                grid=(3,),
                in_specs=[half],
                out_specs=[half, half],
            ),
            ((np.arange(10) % 2 if kind == "bool" else np.arange(10)).astype(jnp.dtype(kind)),),
        )

    @case(table(7, 9))
    def beyond_two_edges():
        def kernel(x_ref, o_ref):
            o_ref[...] = 2 * x_ref[...]

        tile = spec((4, 4), lambda i, j: (i, j))
        return call(kernel, out(7, 9), grid=(2, 3), in_specs=[tile], out_specs=tile)

    @case(x8)
    def scratch_stays():
        def kernel(x_ref, o_ref, s_ref):
            o_ref[...] = s_ref[...]
            s_ref[...] = x_ref[...]

        return call(kernel, out(8), grid=2, in_specs=[half], out_specs=half, scratch_shapes=[pl.ANY((4,), f32)])

    @case(x8)
    def scratch_by_name():
        def kernel(x_ref, o_ref, *, total_ref):
            @pl.when(pl.program_id(0) == 0)
            def _():
                total_ref[...] = jnp.zeros_like(total_ref)

            total_ref[...] += x_ref[...].sum(keepdims=True)
            o_ref[...] = x_ref[...] + total_ref[...]

        return call(
            kernel, out(8), grid=2, in_specs=[half], out_specs=half, scratch_shapes=dict(total_ref=pl.ANY((1,), f32))
        )

    @case(x8)
    def not_written():
        return call(lambda x_ref, *o_refs: None, (out(3), out(2, dtype=i32), out(2, dtype=jnp.bool_)))

    @case(x8)
    def alias():
        def kernel(x_ref, o_ref):
            o_ref[1] = x_ref[0] + 50

        return call(
            kernel, out(8), grid=1, in_specs=[half], out_specs=spec((4,), lambda i: 1), input_output_aliases={0: 0}
        )

    @case(x8)
    def alias_is_no_window():
        """The operand is read as it was, whatever the result holds by then."""

        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] + 1

        return call(kernel, out(8), grid=(3,), input_output_aliases={0: 0})

    @case(x8)
    def writes_to_an_operand():
        def kernel(x_ref, o_ref):
            x_ref[...] = x_ref[...] + 1
            o_ref[pl.program_id(0)] = x_ref[0]

        return call(kernel, out(3), grid=3)

    @case(table(3, 4))
    def squeezed():
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] * 2

        return call(
            kernel,
            out(3, 4),
            grid=(3,),
            in_specs=[spec((None, 4), lambda i: (i, 0))],
            out_specs=spec((pl.squeezed, 4), lambda i: (2 - i, 0)),
        )

    @case(x8)
    def elements():
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...]

        rows = spec((None, 4), lambda i: (i, 0))
        return call(kernel, out(3, 4), grid=(3,), in_specs=[spec((pl.Element(4),), lambda i: (2 * i,))], out_specs=rows)

    @case(x8)
    def elements_with_padding():
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...]

        windows = spec((pl.Element(4, (1, 2)),), lambda i: (3 * i,))
        rows = spec((None, 4), lambda i: (i, 0))
        return call(kernel, out(3, 4), grid=(3,), in_specs=[windows], out_specs=rows)

    @case(table(4, 8))
    def two_results():
        def kernel(x_ref, total_ref, twice_ref):
            total_ref[...] = jnp.sum(x_ref[...], axis=1)
            twice_ref[...] = 2 * x_ref[...].T

        return call(
            kernel,
            [out(4), out(8, 4)],
            grid=(2,),
            in_specs=[spec((2, 8), lambda i: (i, 0))],
            out_specs=[spec((2,), lambda i: i), spec((8, 2), lambda i: (0, i))],
        )

    @case(x8)
    def reversed_blocks():
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...][::-1]

        return call(kernel, out(8), grid=2, in_specs=[half], out_specs=spec((4,), lambda i: 1 - i))

    @case(x8)
    def one_block_again_and_again():
        """Points write one block; the last one counts."""

        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] + pl.program_id(0)

        return call(kernel, out(4), grid=2, in_specs=[half])

    @case(x8)
    def block_out_of_range():
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...]

        return call(kernel, out(8), grid=2, in_specs=[spec((4,), lambda i: i + 1)], out_specs=half)

    @case(np.int32(3), x8)
    def slices_that_are_traced():
        def kernel(i_ref, x_ref, o_ref):
            i = i_ref[...]
            o_ref[pl.ds(i, 2)] = x_ref[pl.ds(i + 1, 2)]
            o_ref[0] = x_ref[i]
            o_ref[pl.ds(6, 2)] = x_ref[pl.ds(0, 2)]

        return call(kernel, out(8))

    @case(x8)
    def three_axes():
        def kernel(x_ref, o_ref):
            i, j, k = pl.program_id(0), pl.program_id(1), pl.program_id(2)
            o_ref[0, 0, 0] = 100 * i + 10 * j + k + x_ref[0].astype(i32)

        return call(
            kernel,
            out(2, 3, 2, dtype=i32),
            grid=(2, 3, 2),
            in_specs=[spec((1,), lambda i, j, k: (i + j + k,))],
            out_specs=spec((1, 1, 1), lambda i, j, k: (i, j, k)),
        )

    @case()
    def numbers_of_programs():
        def kernel(o_ref):
            o_ref[pl.program_id(0)] = pl.program_id(0) + 10 * pl.num_programs(0)

        return call(kernel, out(4, dtype=i32), grid=4)

    @case(x8)
    def no_points():
        return call(lambda x_ref, o_ref: o_ref.__setitem__(..., x_ref[...]), out(8), grid=(0,))

    @case({"a": x8, "b": (x8,)})
    def trees():
        def kernel(d, o):
            o["sum"][...] = d["a"][...] + d["b"][0][...]

        return call(kernel, {"sum": out(8)}, grid=2, in_specs=[{"a": half, "b": (half,)}], out_specs={"sum": half})

    @case(x8)
    def branches():
        def kernel(x_ref, o_ref):
            x = x_ref[...]
            o_ref[...] = lax.cond(pl.program_id(0) == 0, lambda: x + 1, lambda: x * 10)

            @pl.when(x[0] > 2)
            def _():
                o_ref[0] = jnp.float32(-1)

        return call(kernel, out(8), grid=2, in_specs=[half], out_specs=half)

    @case(x8)
    def loops():
        def kernel(x_ref, o_ref):
            o_ref[...] = jnp.zeros_like(o_ref)

            def body(i, total):
                o_ref[i] += total
                return total + x_ref[i]

            lax.fori_loop(0, 4, body, jnp.float32(0))

        return call(kernel, out(8), grid=2, in_specs=[half], out_specs=half)

    @case(x8)
    def loop_of_pallas():
        def kernel(x_ref, o_ref):
            @pl.loop(0, 4, step=2)
            def _(i):
                o_ref[i] = x_ref[i + 1]
                o_ref[i + 1] = x_ref[i]

        return call(kernel, out(8), grid=2, in_specs=[half], out_specs=half)

    @case(x8)
    def own_memory():
        def kernel(x_ref, o_ref):
            def body(s_ref):
                s_ref[0] = x_ref[0]
                o_ref[...] = s_ref[...]

            pl.run_scoped(body, pl.ANY((4,), f32))

        return call(kernel, out(8), grid=2, in_specs=[half], out_specs=half)

    @case(x8)
    def a_while_loop():
        def kernel(x_ref, o_ref):
            o_ref[...] = lax.while_loop(lambda x: x.sum() < 100, lambda x: x * 2 + 1, x_ref[...])

        return call(kernel, out(8), grid=2, in_specs=[half], out_specs=half)

    @case(table(3, 8), x8)
    def mapped():
        return jax.vmap(added(), in_axes=(0, None))

    @case(table(8, 3), table(3, 8))
    def mapped_other_axes():
        return jax.vmap(added(), in_axes=(1, 0), out_axes=1)

    @case(table(2, 3, 8), table(3, 8))
    def mapped_twice():
        return jax.vmap(jax.vmap(added()), in_axes=(0, None))

    @case(np.stack([x8, x8 + 10]))
    def mapped_indices():
        def kernel(x_ref, o_ref):
            i = pl.program_id(0)
            o_ref[i] = x_ref[i] * 2 + 100 * i + pl.num_programs(0)

        return jax.vmap(call(kernel, out(8), grid=(8,)))

    @case(np.stack([x8, x8 + 10]))
    def mapped_alias():
        def kernel(x_ref, o_ref):
            o_ref[0] = 2 * x_ref[1]

        return jax.vmap(call(kernel, out(8), input_output_aliases={0: 0}))

    @case(table(2, 32, 24), b)
    def mapped_matmul():
        return jax.vmap(product(matmul_kernel, 16, 8, 8), in_axes=(0, None))

    @case(x8, x8[::-1].copy())
    def derivative():
        def kernel(x_ref, y_ref, o_ref):
            o_ref[...] = x_ref[...] * jnp.sin(y_ref[...])

        f = call(kernel, out(8), grid=2, in_specs=[half, half], out_specs=half)
        return lambda x, y: jax.jvp(f, (x, y), (jnp.ones(8), x))

    @case(x8, x8[::-1].copy())
    def derivative_of_one():
        return lambda x, y: jax.jvp(lambda x: added()(x, y), (x,), (2 * x,))

    @case(x8)
    def forward_jacobian():
        def kernel(x_ref, o_ref):
            o_ref[...] = jnp.cumsum(x_ref[...] ** 2)

        return jax.jacfwd(call(kernel, out(8), grid=2, in_specs=[half], out_specs=half))

    @case(x8)
    def grid_spec():
        def kernel(x_ref, o_ref):
            o_ref[...] = -x_ref[...]

        return call(kernel, out(8), grid_spec=pl.GridSpec(grid=(2,), in_specs=[half], out_specs=half))

    @case(np.float32(3))
    def without_axes():
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] + 1

        return call(kernel, out())

    @case(np.array([5, 3, -1, 7], np.int32))
    def integers():
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[...] // 2 + (x_ref[...] % 3)

        part = spec((2,), lambda i: i)
        return call(kernel, out(4, dtype=i32), grid=2, in_specs=[part], out_specs=part)

    @case(x8)
    def integer_arrays_as_indices():
        def kernel(x_ref, o_ref):
            o_ref[...] = x_ref[jnp.arange(4) * 2 + pl.program_id(0)]

        return call(kernel, out(8), grid=2, out_specs=half)

    return found
