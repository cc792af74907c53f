"""Programs over eight devices whose printed results weft and jax share. `m` has the modules of one of the two."""


def cases(m):
    """Functions without arguments by name; each returns text or lists of text and numbers."""
    jax, jnp, np, P = m.jax, m.jnp, m.np, m.sharding.PartitionSpec
    devices = jax.devices("cpu")[:8]
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(m.sharding.AxisType.Auto,) * 2, devices=devices)
    other = jax.make_mesh((2,), ("z",), axis_types=(m.sharding.AxisType.Auto,), devices=devices[4:6])
    S = lambda *spec, **kind: m.sharding.NamedSharding(mesh, P(*spec), **kind)
    one = m.sharding.SingleDeviceSharding
    X = np.arange(64.0, dtype=np.float32).reshape(8, 8)
    Format, Layout = m.layout.Format, m.layout.Layout

    def addressable_data():
        x = jax.device_put(X, S("x", "y"))
        return [[x.addressable_data(i).tolist(), str(x.addressable_data(i).sharding)] for i in (0, 3, 7)]

    def shards():
        found = [jax.device_put(X, s) for s in (S("x", "y"), S("x"), S(None, ("y", "x")), S())]
        parts = lambda x, name: [[s.device.id, str(s.index), s.replica_id, str(s.data.shape)] for s in getattr(x, name)]
        return [[parts(x, "addressable_shards"), parts(x, "global_shards")] for x in found]

    def callbacks():
        made = [jax.make_array_from_callback((8, 8), s, lambda i: X[i]) for s in (S("x"), S("x", "y"), S(), S("y"))]
        scalar = jax.make_array_from_callback((), S(), lambda i: np.float32(3))
        return [[str(x.sharding), np.asarray(x).tolist(), str(x.dtype)] for x in [*made, scalar]]

    def single_device_arrays():
        x = jax.device_put(X, S("x", "y"))
        data = [s.data for s in x.addressable_shards]
        out = []
        for parts in (data, data[::-1]):
            y = jax.make_array_from_single_device_arrays((8, 8), S("x", "y"), parts)
            out.append([str(y.sharding), np.asarray(y).tolist()])
        return out

    def process_local_data():
        tree = jax.make_array_from_process_local_data({"a": S("x"), "b": S()}, {"a": X, "b": X[0]})
        whole = jax.make_array_from_process_local_data(S("x"), X, (8, 8))
        return [[str(v.sharding), str(v.shape)] for v in (tree["a"], tree["b"], whole)]

    def put_from_any_to_any():
        places = [S("x", "y"), S(("x", "y")), S(None, ("y", "x")), S(), S("y"), devices[3], one(devices[5])]
        places.append(m.sharding.NamedSharding(other, P("z")))
        out = []
        for a in places:
            y = jax.device_put(jnp.asarray(X), a)
            for b in places:
                z = jax.device_put(y, b)
                out.append([str(z.sharding), bool((np.asarray(z) == X).all()), z.committed])
        return out

    def lie_under_a_mesh(types):
        """Where results lie while a mesh is set: on it, but for arrays that were put elsewhere."""
        where = jax.make_mesh((4, 2), ("x", "y"), axis_types=types, devices=devices)
        alien = jax.make_mesh((2, 4), ("a", "b"), axis_types=(m.sharding.AxisType.Explicit,) * 2, devices=devices)
        free, host = jnp.arange(8.0), np.ones(8, np.float32)
        divided = jax.device_put(X[0], m.sharding.NamedSharding(where, P("x")))
        stranger = jax.device_put(X[0], m.sharding.NamedSharding(alien, P("a")))
        committed = jax.device_put(X[0], devices[3])
        jit = lambda *args, **options: jax.jit(lambda *args: sum(args, jnp.ones(8)), **options)(*args)
        compute = {
            "arange": lambda: jnp.arange(8),
            "zeros": lambda: jnp.zeros((8, 2)),
            "asarray": lambda: jnp.asarray(host),
            "array of an array": lambda: jnp.array(free),
            "a list": lambda: jnp.array([1.0, 2.0]),
            "a number": lambda: jnp.float32(3),
            "device_put": lambda: jax.device_put(host),
            "device_put to a device": lambda: jax.device_put(host, devices[2]),
            "device_put to a spec": lambda: jax.device_put(free, P("y")),
            "device_put of a committed array": lambda: jax.device_put(committed, P("y")),
            "an operator": lambda: free + 1,
            "a function": lambda: jnp.sin(free),
            "with a divided operand": lambda: divided + free,
            "with a host array": lambda: divided + host,
            "committed": lambda: committed + 1,
            "committed, a function": lambda: jnp.sin(committed),
            "committed and divided": lambda: divided + committed,
            "of another mesh": lambda: stranger + 1,
            "jit": lambda: jit(free),
            "jit of a host array": lambda: jit(host),
            "jit without arguments": lambda: jit(),
            "jit of a divided array": lambda: jit(divided),
            "jit of a committed array": lambda: jit(committed),
            "jit that closes over an array": lambda: jax.jit(lambda: free * 2)(),
            "in_shardings": lambda: jit(free, in_shardings=P("x")).sum(),
            "out_shardings": lambda: jit(free, out_shardings=P("x")),
            "a key": lambda: jax.random.key(0),
            "random numbers": lambda: jax.random.normal(jax.random.key(0), (8,)),
            "grad": lambda: jax.grad(lambda x: jnp.sum(x**2))(free),
            "vmap": lambda: jax.vmap(lambda x: x * 2)(free),
            "scan": lambda: jax.lax.scan(lambda c, x: (c + x, c), jnp.float32(0), free)[0],
            "a row": lambda: free[1],
            "the first row of a divided array": lambda: [*divided][0],
            "inv": lambda: jnp.linalg.inv(jnp.eye(3)),
        }
        out = {}
        with jax.set_mesh(where):
            for name, f in compute.items():
                try:
                    x = f()
                except ValueError:
                    out[name] = "ValueError"
                    continue
                axes = list(getattr(getattr(x.sharding, "mesh", None), "axis_names", ()))
                shape = x.sharding.shard_shape(x.shape)
                out[name] = [axes, list(shape), len(x.sharding.device_set), x.committed, str(jax.typeof(x))]
        after = jnp.arange(3)
        return [out, len(after.sharding.device_set), after.committed]

    def under_a_mesh():
        return [lie_under_a_mesh((kind,) * 2) for kind in (m.sharding.AxisType.Explicit, m.sharding.AxisType.Auto)]

    def trees():
        made = jax.device_put({"a": X, "b": [X, X[0]]}, {"a": S("x"), "b": S("y")})
        return [str(made["a"].sharding), *[str(v.sharding) for v in made["b"]]]

    def donation():
        x = jax.device_put(X, S("x", "y"))
        y = jax.device_put(x, S("y", "x"), donate=True)
        f = jax.jit(lambda x: x + 1, donate_argnums=0, out_shardings=S("x"))
        z = jax.device_put(X, S("x"))
        return [bool((np.asarray(y) == X).all()), str(f(z).sharding), z.is_deleted()]

    def memory_kinds():
        device = devices[0]
        kinds = [memory.kind for memory in device.addressable_memories()]
        s = S("x", memory_kind="pinned_host")
        x = jax.device_put(X, s)
        single = jax.device_put(X, one(devices[1], memory_kind="unpinned_host"))
        return [
            kinds,
            device.default_memory().kind,
            str(s),
            str(s.with_memory_kind("device")),
            str(x.sharding),
            [str(p.data.sharding) for p in x.addressable_shards],
            str(jax.device_put(x, S("x")).sharding),
            str(jax.device_put(x, S("y", memory_kind="device")).sharding),
            str(single.sharding),
        ]

    def spaces():
        space = jax.memory.Space
        x, y = jax.device_put(X, space.Host), jax.device_put(jax.device_put(X, S("x")), space.Host)
        f = jax.jit(lambda x: jax.device_put(x * 2, space.Host))
        g = jax.jit(lambda x: x * 2, out_shardings=S("x", memory_kind="pinned_host"))
        h = jax.jit(
            lambda x: jax.device_put(x, S("x", memory_kind="device")) * 2,
            in_shardings=S("x", memory_kind="pinned_host"),
        )
        there = jax.device_put(X, S("x", memory_kind="pinned_host"))
        return [
            [repr(s) for s in space],
            *[str(v.sharding) for v in (x, jax.device_put(x, space.Device), y, f(jnp.asarray(X)), g(X), h(there))],
        ]

    def formats():
        x = jax.device_put(X, Format(Layout((1, 0)), one(devices[0])))
        y = jax.device_put(X, Format(Layout((1, 0)), S("x", "y")))
        z = jax.device_put(y, Format(Layout((0, 1)), S("y", "x")))
        return [[str(v.format), np.asarray(v).tolist()] for v in (x, y, z, jnp.asarray(X))]

    def formats_of_programs():
        where = Format(Layout((1, 0)), S("x", "y"))
        f = jax.jit(lambda x: x.T + 1, in_shardings=where, out_shardings=where)
        y = f(jax.device_put(X, where))
        compiled = f.lower(jax.ShapeDtypeStruct((8, 8), jnp.float32)).compile()
        auto = jax.jit(
            lambda x: x.T + 1, in_shardings=Format(Layout.AUTO, S("x", "y")), out_shardings=Format(Layout.AUTO)
        )
        chosen = auto.lower(jax.ShapeDtypeStruct((8, 8), jnp.float32)).compile()
        return [
            str(y.format),
            np.asarray(y).tolist(),
            str(compiled.input_formats),
            str(compiled.output_formats),
            str(chosen.input_formats[0][0].layout),
            str(chosen.output_formats.layout),
        ]

    def names_of_formats():
        a, b = Format(Layout((1, 0)), S("x")), Format(Layout((1, 0)), S("x"))
        return [a == b, hash(a) == hash(b), str(a), str(Format()), repr(Layout((0, 1), tiling=((8, 128),)))]

    def alike():
        a, b = m.shard_alike(jax.device_put(X, S("x", "y")), jnp.zeros((8, 8)))
        f = lambda x: sum(v.sum() * k for k, v in enumerate(m.shard_alike(x, x * 2), 1))
        return [
            str(a.sharding),
            str(b.sharding),
            jax.grad(f)(jnp.asarray(X)).tolist(),
            jax.vmap(f)(jnp.asarray(X)).tolist(),
            str(jax.make_jaxpr(lambda x: m.shard_alike(x, x * 2))(X)),
        ]

    def types_of_results():
        def shown(f):
            try:
                return str(f().sharding)
            except ValueError:
                return "ValueError"

        explicit = jax.make_mesh((4,), ("x",), axis_types=(m.sharding.AxisType.Explicit,))
        auto = jax.make_mesh((4,), ("x",), axis_types=(m.sharding.AxisType.Auto,))
        one = jax.make_mesh((1,), ("x",), axis_types=(m.sharding.AxisType.Auto,))
        x = jax.device_put(np.arange(8.0), m.sharding.NamedSharding(explicit, P("x")))
        ones, twice = jnp.ones(8), lambda x: x * 2
        replicated = m.sharding.NamedSharding(explicit, P())
        struct = jax.ShapeDtypeStruct((8,), jnp.float32, sharding=m.sharding.NamedSharding(explicit, P("x")))
        found = [repr(jax.ShapeDtypeStruct((8,), jnp.float32)), "sharding=NamedSharding(" in repr(struct)]
        for mesh in (explicit, auto, one):
            for argument in (x, ones, struct) if mesh is explicit else (ones,):
                with jax.set_mesh(mesh):
                    found.append(shown(lambda: jax.eval_shape(twice, argument)))
                    found.append(shown(lambda: jax.jit(twice).eval_shape(argument)))
            with jax.set_mesh(mesh):  # says where programs run, as a device does
                for given in (dict(device=devices[0]), dict(backend="cpu")):
                    f = jax.jit(twice, **given)
                    found += [shown(lambda: f(ones)), shown(lambda: f.lower(ones).out_info)]
                    found.append(shown(lambda: jax.jit(lambda x: f(x))(ones)))
        found.append(shown(lambda: jax.eval_shape(twice, x)))
        found.append(shown(lambda: jax.jit(twice, out_shardings=replicated).eval_shape(x)))
        found.append(shown(lambda: jax.jit(twice, out_shardings=replicated).lower(x).compile().out_info))
        return found

    def where_results_lie():
        x = jax.device_put(X, S("x", "y"))
        made = [x[0], x.T, x @ x, x.sum(0), x.reshape(64), x.copy(), jnp.array(x)]
        fresh = [jnp.zeros((8, 8), device=S("x")), jnp.arange(8, device=S("y")), jnp.full((8,), 2, device=S("x"))]
        moved = [jnp.asarray(X).to_device(devices[4]), jnp.asarray(X).to_device(S("x"))]
        return [str(v.sharding) for v in (*made, *fresh, *moved)]

    return {
        name: f
        for name, f in locals().items()
        if callable(f) and getattr(f, "__module__", "") == __name__ and name not in ("S", "lie_under_a_mesh")
    }
