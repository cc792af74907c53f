"""How arrays lie over several devices, by jax.sharding's names.

Example:
    >>> import weft
    >>> mesh = weft.make_mesh((1,), ("x",))
    >>> weft.sharding.NamedSharding(mesh, weft.P("x")).shard_shape((4, 2))
    (4, 2)
"""

from .base.mesh import (
    AbstractDevice as AbstractDevice,
    AbstractMesh as AbstractMesh,
    AxisType as AxisType,
    Mesh as Mesh,
    NamedSharding as NamedSharding,
    P as P,
    PartitionSpec as PartitionSpec,
    Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding,
    get_abstract_mesh as get_abstract_mesh,
    get_mesh as get_mesh,
    make_single_device_sharding as make_single_device_sharding,
    set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
    use_mesh as use_mesh,
)
from .base.shard import Shard as Shard
from .api.explicit import auto_axes as auto_axes, explicit_axes as explicit_axes, reshard as reshard
