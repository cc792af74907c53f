"""Types by the names that shardings pickled by weft 0.1 before its modules moved have for them (decision 028)."""

from .base.mesh import AbstractMesh as AbstractMesh, PartitionSpec as PartitionSpec
