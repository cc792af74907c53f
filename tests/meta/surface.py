"""What is public beyond the modules of names.json: names of smaller modules, and the members of instances."""

from __future__ import annotations

import inspect
from typing import Any

# Modules whose names are compared. Of those marked with ! only what they define themselves is public: they show what
# they import.
MODULES = """
jax.api_util jax.core jax.custom_batching jax.custom_derivatives jax.dlpack jax.errors jax.example_libraries.optimizers!
jax.example_libraries.stax! jax.extend.backend jax.extend.core jax.extend.core.primitives jax.extend.linear_util
jax.extend.mlir jax.extend.random jax.extend.sharding jax.extend.source_info_util jax.ffi jax.interpreters.ad
jax.interpreters.batching jax.interpreters.partial_eval jax.interpreters.pxla jax.interpreters.xla jax.lib
jax.experimental jax.experimental.buffer_callback jax.experimental.colocated_python
jax.experimental.compilation_cache.compilation_cache jax.experimental.hijax jax.experimental.jet!
jax.experimental.key_reuse jax.experimental.layout jax.experimental.mesh_utils! jax.experimental.multihost_utils!
jax.experimental.ode! jax.experimental.pjit jax.experimental.random jax.experimental.rnn!
jax.experimental.scheduling_groups! jax.experimental.serialize_executable! jax.experimental.sparse
jax.experimental.sparse.linalg! jax.experimental.sparse.util! jax.experimental.topologies!
jax.experimental.xla_metadata jax.monitoring jax.profiler jax.ref jax.stages jax.test_util jax.tree jax.typing
""".split()
# Expressions over `jax`, `jnp` and `np`, and the members of what they give.
INSTANCES = {
    "Array": "jnp.ones(2)",
    "Array of keys": "jax.random.key(0)",
    "Array.at": "jnp.ones(2).at",
    "Array.at[0]": "jnp.ones(2).at[0]",
    "Device": "jax.devices('cpu')[0]",
    "ShapeDtypeStruct": "jax.ShapeDtypeStruct((2,), 'float32')",
    "NamedSharding": "jax.NamedSharding(mesh, jax.P('a'))",
    "SingleDeviceSharding": "jax.sharding.SingleDeviceSharding(jax.devices('cpu')[0])",
    "Mesh": "mesh",
    "AbstractMesh": "mesh.abstract_mesh",
    "PartitionSpec": "jax.P('a')",
    "Shard": "jnp.ones(2).addressable_shards[0]",
    "jit": "jax.jit(jnp.sin)",
    "Traced": "jax.jit(jnp.sin).trace(1.)",
    "Lowered": "jax.jit(jnp.sin).lower(1.)",
    "Compiled": "jax.jit(jnp.sin).lower(1.).compile()",
    "custom_jvp": "jax.custom_jvp(lambda x: x)",
    "custom_vjp": "jax.custom_vjp(lambda x: x)",
    "custom_vmap": "jax.custom_batching.custom_vmap(lambda x: x)",
    "Partial": "jax.tree_util.Partial(max, 1)",
    "PyTreeDef": "jax.tree.structure([1])",
    "Jaxpr": "jax.make_jaxpr(lambda x: x * 2)(1.).jaxpr",
    "ClosedJaxpr": "jax.make_jaxpr(lambda x: x * 2)(1.)",
    "JaxprEqn": "jax.make_jaxpr(lambda x: x * 2)(1.).eqns[0]",
    "Var": "jax.make_jaxpr(lambda x: x * 2)(1.).jaxpr.invars[0]",
    "Literal": "jax.make_jaxpr(lambda x: x * 2)(1.).eqns[0].invars[1]",
    "Primitive": "jax.lax.add_p",
    "ShapedArray": "jax.typeof(jnp.ones(2))",
    "Tracer": "traced()",
    "Ref": "jax.new_ref(jnp.ones(2))",
    "Exported": "jax.export.export(jax.jit(jnp.sin))(1.)",
    "checkify.Error": "jax.experimental.checkify.checkify(jnp.sin)(1.)[0]",
    "finfo": "jnp.finfo('float32')",
    "iinfo": "jnp.iinfo('int32')",
    "ufunc": "jnp.frompyfunc(lambda x, y: x + y, 2, 1)",
    "config": "jax.config",
    "VJP": "jax.vjp(jnp.sin, 1.)[1]",
    "GatherDimensionNumbers": "jax.lax.GatherDimensionNumbers((), (0,), (0,))",
    "ScatterDimensionNumbers": "jax.lax.ScatterDimensionNumbers((), (0,), (0,))",
    "ConvDimensionNumbers": "jax.lax.conv_dimension_numbers((1, 1, 1), (1, 1, 1), None)",
    "Rotation": "jax.scipy.spatial.transform.Rotation.from_euler('x', 0.5)",
    "RegularGridInterpolator": "jax.scipy.interpolate.RegularGridInterpolator((jnp.arange(2.),), jnp.arange(2.))",
    "gaussian_kde": "jax.scipy.stats.gaussian_kde(jnp.arange(3.))",
    "BCOO": "jax.experimental.sparse.eye(2)",
    "BCSR": "jax.experimental.sparse.BCSR.fromdense(jnp.eye(2))",
    "COO": "jax.experimental.sparse.COO.fromdense(jnp.eye(2))",
    "CSR": "jax.experimental.sparse.CSR.fromdense(jnp.eye(2))",
    "ProfileOptions": "jax.profiler.ProfileOptions()",
    "TraceAnnotation": "jax.profiler.TraceAnnotation('x')",
}


def scope(jax: Any, np: Any) -> dict[str, Any]:
    """The names of the expressions."""

    def traced() -> Any:
        seen = []
        jax.jit(lambda x: seen.append(x) or x)(1.0)
        return seen[0]

    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:1]), ("a",))
    return {"jax": jax, "jnp": jax.numpy, "np": np, "mesh": mesh, "traced": traced}


def members(value: Any) -> list[str]:
    """The public members of an instance."""
    return [name for name in dir(value) if not name.startswith("_")]


def names(module: Any, own: bool) -> list[str]:
    """The public names of a module of jax: not what it imports from elsewhere."""
    found = []
    for name in dir(module):
        if name.startswith("_"):
            continue
        try:
            value = getattr(module, name)
        except AttributeError:  # deprecated and gone
            continue
        where = getattr(value, "__module__", None) or ""
        if inspect.ismodule(value):
            if value.__name__.startswith("jax.") and not value.__name__.startswith("jax._src") and not own:
                found.append(name)
        elif own:
            if where == module.__name__:
                found.append(name)
        elif not where.startswith(("typing", "collections", "functools", "contextlib", "numpy")):
            found.append(name)
    return found
