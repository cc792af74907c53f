"""weft.scipy.spatial.transform: rotations in three dimensions, as unit quaternions (x, y, z, w).

K. Shoemake, "Animating rotation with quaternion curves" (1985); E. Bernardes and S. Viollet, "Quaternion to Euler
angles conversion" (2022); F. Markley et al., "Averaging quaternions" (2007).
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Sequence

from ...base.annotations import override
from ...base import dtypes
from ... import numpy as jnp, random
from ...base.source_info import api_boundary

__all__ = ["Rotation", "Slerp"]

_AXES = {"x": 0, "y": 1, "z": 2}


def _floats(name: str, x, last: tuple):
    x = jnp.asarray(x)
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"Rotation.{name} takes real numbers, got dtype {dtypes.name(x.dtype)}.")
    x = jnp.asarray(x, x.dtype if dtypes.is_float(x.dtype) else float)
    if last and x.shape[-len(last) :] != last:
        raise ValueError(f"Rotation.{name} takes an array of shape (…, {', '.join(map(str, last))}), got {x.shape}.")
    return x


def _length(x):
    """The norm along the last axis, kept as an axis of size 1; its derivative at zero is zero."""
    square = jnp.sum(x * x, -1, keepdims=True)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)


def _product(p, q):
    """The quaternion of the rotation q followed by p."""
    u, a, v, b = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    return jnp.concatenate([a * v + b * u + jnp.cross(u, v), a * b - jnp.sum(u * v, -1, keepdims=True)], -1)


def _positive(quat):
    """Of q and -q, the one whose w, or else the first of x, y, z that is not 0, is positive."""
    sign = jnp.zeros_like(quat[..., 3])
    for k in (3, 0, 1, 2):
        sign = jnp.where(sign == 0, jnp.sign(quat[..., k]), sign)
    return jnp.where(sign < 0, -1, 1)[..., None] * quat


def _sequence(name: str, seq: str) -> tuple[list[int], bool]:
    """(axes, whether they are fixed in space)."""
    fixed = bool(re.fullmatch("[xyz]{1,3}", seq))
    if not fixed and not re.fullmatch("[XYZ]{1,3}", seq):
        raise ValueError(
            f"Rotation.{name}: seq must be one to three letters, of 'xyz' (fixed axes) or of 'XYZ' (axes that move"
            f" along), got {seq!r}."
        )
    axes = [_AXES[c] for c in seq.lower()]
    if any(a == b for a, b in zip(axes, axes[1:])):
        raise ValueError(f"Rotation.{name}: consecutive axes of seq must differ, got {seq!r}.")
    return axes, fixed


class Rotation(NamedTuple):
    """One rotation, or an array of them: a pytree of quaternions (x, y, z, w) of shape (…, 4). Make one with a `from_…`
    method.

    `a * b` rotates by b, then by a; `len` and indexing see the first axis.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy.spatial.transform import Rotation
        >>> r = Rotation.from_euler('z', 90, degrees=True)
        >>> r.apply(jnp.array([1., 0., 0.])).round(4) + 0
        Array([0., 1., 0.], dtype=float32)
    """

    quat: Any

    @classmethod
    def from_quat(cls, quat) -> "Rotation":
        """From quaternions (x, y, z, w), which are normalized."""
        quat = _floats("from_quat", quat, (4,))
        return cls(quat / _length(quat))

    @classmethod
    def from_matrix(cls, matrix) -> "Rotation":
        """From orthogonal matrices (…, 3, 3)."""
        m = _floats("from_matrix", matrix, (3, 3))
        d = jnp.diagonal(m, axis1=-2, axis2=-1)
        trace = jnp.sum(d, -1)
        options = []
        for i in range(3):  # each is right where its own component is not small
            j, k = (i + 1) % 3, (i + 2) % 3
            part = {
                i: 1 - trace + 2 * d[..., i],
                j: m[..., j, i] + m[..., i, j],
                k: m[..., k, i] + m[..., i, k],
                3: m[..., k, j] - m[..., j, k],
            }
            options.append(jnp.stack([part[n] for n in range(4)], -1))
        options.append(
            jnp.stack(
                [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1], 1 + trace], -1
            )
        )
        best = jnp.argmax(jnp.concatenate([d, trace[..., None]], -1), -1)
        return cls.from_quat(jnp.take_along_axis(jnp.stack(options, -2), best[..., None, None], -2)[..., 0, :])

    @classmethod
    def from_rotvec(cls, rotvec, degrees: bool = False) -> "Rotation":
        """From vectors (…, 3) along the axes, as long as the angles."""
        v = _floats("from_rotvec", rotvec, (3,))
        v = jnp.deg2rad(v) if degrees else v
        angle = _length(v)
        small = angle < 1e-3
        scale = jnp.where(small, 0.5 - angle**2 / 48 + angle**4 / 3840, jnp.sin(angle / 2) / jnp.where(small, 1, angle))
        return cls(jnp.concatenate([scale * v, jnp.cos(angle / 2)], -1))

    @classmethod
    def from_mrp(cls, mrp) -> "Rotation":
        """From modified Rodrigues parameters (…, 3): the axis times tan(angle / 4)."""
        v = _floats("from_mrp", mrp, (3,))
        square = jnp.sum(v * v, -1, keepdims=True)
        return cls(jnp.concatenate([2 * v, 1 - square], -1) / (1 + square))

    @classmethod
    def from_euler(cls, seq: str, angles, degrees: bool = False) -> "Rotation":
        """From angles about the axes of `seq`: 'xyz' are fixed, 'XYZ' move along. One axis takes an angle or (n,), n
        axes take (…, n).
        """
        axes, fixed = _sequence("from_euler", seq)
        angles = _floats("from_euler", angles, ())
        angles = jnp.deg2rad(angles) if degrees else angles
        if len(axes) == 1 and (angles.ndim == 0 or angles.shape[-1] != 1 or angles.ndim == 1):
            angles = angles[..., None]
        if angles.shape[-1:] != (len(axes),):
            raise ValueError(
                f"Rotation.from_euler: angles for seq={seq!r} must be of shape (…, {len(axes)}), got {angles.shape}."
            )
        total = None
        for k, axis in enumerate(axes):
            half = angles[..., k] / 2
            parts = [jnp.zeros_like(half)] * 3 + [jnp.cos(half)]
            parts[axis] = jnp.sin(half)
            one = jnp.stack(parts, -1)
            total = one if total is None else _product(one, total) if fixed else _product(total, one)
        return cls(total)

    @classmethod
    def identity(cls, num: int | None = None, dtype=float) -> "Rotation":
        """The rotation that changes nothing, or `num` of them."""
        one = jnp.array([0, 0, 0, 1], dtype)
        return cls(one if num is None else jnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key, num: int | None = None) -> "Rotation":
        """A rotation, or `num` of them, drawn uniformly."""
        return cls.from_quat(random.normal(random_key, (4,) if num is None else (num, 4)))

    @classmethod
    def concatenate(cls, rotations: Sequence) -> "Rotation":
        """All of several rotations, along one axis."""
        return cls(jnp.concatenate([r.quat.reshape(-1, 4) for r in rotations]))

    @override
    def __getitem__(self, indexer) -> "Rotation":
        if self.single:
            raise TypeError("a single Rotation can't be indexed.")
        return Rotation(self.quat[indexer])

    @override
    def __len__(self) -> int:
        if self.single:
            raise TypeError("a single Rotation has no len().")
        return self.quat.shape[0]

    def __bool__(self) -> bool:
        return True

    @override
    def __mul__(self, other) -> "Rotation":
        return Rotation.from_quat(_product(*jnp.broadcast_arrays(self.quat, other.quat)))

    @property
    def single(self) -> bool:
        """Whether it is one rotation and not an array of them."""
        return jnp.ndim(self.quat) == 1

    @api_boundary
    def apply(self, vectors, inverse: bool = False):
        """Vectors (…, 3), rotated; backwards with `inverse`."""
        v = _floats("apply", vectors, (3,))
        return jnp.einsum("...kj,...k->...j" if inverse else "...jk,...k->...j", self.as_matrix(), v)

    def as_matrix(self):
        """Matrices (…, 3, 3)."""
        x, y, z, w = jnp.unstack(self.quat, axis=-1)
        rows = [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
        ]
        return jnp.stack([jnp.stack(row, -1) for row in rows], -2)

    def as_quat(self, canonical: bool = False, scalar_first: bool = False):
        """Quaternions (…, 4); `canonical` makes w positive, `scalar_first` gives (w, x, y, z)."""
        quat = _positive(self.quat) if canonical else self.quat
        return jnp.roll(quat, 1, -1) if scalar_first else quat

    def as_rotvec(self, degrees: bool = False):
        """Vectors (…, 3) along the axes, as long as the angles."""
        quat = _positive(self.quat)
        size = _length(quat[..., :3])
        angle = 2 * jnp.arctan2(size, quat[..., 3:])
        small = angle < 1e-3
        scale = jnp.where(
            small, 2 + angle**2 / 12 + 7 * angle**4 / 2880, angle / jnp.where(small, 1, jnp.sin(angle / 2))
        )
        return scale * quat[..., :3] * (180 / jnp.pi if degrees else 1)

    def as_mrp(self):
        """Modified Rodrigues parameters (…, 3)."""
        sign = jnp.where(self.quat[..., 3:] < 0, -1, 1)
        return sign * self.quat[..., :3] / (1 + sign * self.quat[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False):
        """Angles (…, 3) about the three axes of `seq`, as for `from_euler`; where they are not unique, one of them
        is 0.
        """
        axes, fixed = _sequence("as_euler", seq)
        if len(axes) != 3:
            raise ValueError(f"Rotation.as_euler: seq must have three axes, got {seq!r}.")
        i, j, k = axes if fixed else axes[::-1]
        proper = i == k
        k = 3 - i - j if proper else k
        sign = (i - j) * (j - k) * (k - i) // 2
        q = [self.quat[..., n] for n in range(4)]
        a, b, c, d = (
            (q[3], q[i], q[j], q[k] * sign)
            if proper
            else (q[3] - q[j], q[i] + q[k] * sign, q[j] + q[3], q[k] * sign - q[i])
        )
        middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
        total, difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
        none, full = jnp.abs(middle) <= 1e-7, jnp.abs(middle - jnp.pi) <= 1e-7
        first = jnp.where(none, 2 * total, jnp.where(full, 2 * difference * (-1 if fixed else 1), total - difference))
        third = jnp.where(none | full, 0, total + difference)
        first, third = (
            (first, third)
            if fixed
            else (jnp.where(none | full, 0, total - difference), jnp.where(none | full, first, total + difference))
        )
        if not proper:
            first, third = (first, third * sign) if fixed else (first, third * sign)
            middle = middle - jnp.pi / 2
        angles = jnp.stack([first, middle, third] if fixed else [third, middle, first], -1)
        angles = jnp.where(
            angles < -jnp.pi, angles + 2 * jnp.pi, jnp.where(angles > jnp.pi, angles - 2 * jnp.pi, angles)
        )
        return jnp.rad2deg(angles) if degrees else angles

    def inv(self) -> "Rotation":
        """The inverse rotation."""
        return Rotation(self.quat * jnp.array([-1, -1, -1, 1], self.quat.dtype))

    def magnitude(self):
        """The angles, from 0 to pi."""
        return 2 * jnp.arctan2(_length(self.quat[..., :3])[..., 0], jnp.abs(self.quat[..., 3]))

    def mean(self, weights=None) -> "Rotation":
        """The rotation with the least weighted sum of squared distances to all."""
        quat = self.quat.reshape(-1, 4)
        weights = jnp.ones(quat.shape[0], quat.dtype) if weights is None else _floats("mean", weights, (quat.shape[0],))
        return Rotation.from_quat(jnp.linalg.eigh(jnp.einsum("n,ni,nj->ij", weights, quat, quat))[1][:, -1])


class Slerp(NamedTuple):
    """Rotations between rotations, with constant angular velocity; make one with `init`, and call it with times.

    Example:
        >>> import weft.numpy as jnp
        >>> from weft.scipy.spatial.transform import Rotation, Slerp
        >>> turn = Slerp.init(jnp.array([0., 2.]), Rotation.from_euler('z', jnp.array([0., 1.])))
        >>> turn(jnp.array([1.])).as_euler('xyz').round(3) + 0
        Array([[0. , 0. , 0.5]], dtype=float32)
    """

    times: Any
    timedelta: Any
    rotations: Any
    rotvecs: Any

    @classmethod
    def init(cls, times, rotations: Rotation) -> "Slerp":
        """From increasing times (n,) and the n rotations at them."""
        if not isinstance(rotations, Rotation):
            raise TypeError(f"Slerp.init: rotations must be a Rotation, got {type(rotations).__name__}.")
        if rotations.single or len(rotations) < 2:
            raise ValueError("Slerp.init: rotations must be at least two.")
        times = _floats("Slerp.init", times, ())
        if times.shape != (len(rotations),):
            raise ValueError(
                f"Slerp.init: times must have shape ({len(rotations)},), one for each rotation, got {times.shape}."
            )
        starts: Any = rotations[:-1]
        return cls(times, jnp.diff(times), starts, (starts.inv() * rotations[1:]).as_rotvec())

    def __call__(self, times) -> Rotation:
        times = jnp.asarray(times)
        if times.ndim > 1:
            raise ValueError(f"Slerp: times must be a number or of shape (n,), got shape {times.shape}.")
        k = jnp.clip(jnp.searchsorted(self.times, times, side="right") - 1, 0, self.timedelta.shape[0] - 1)
        part = (times - self.times[k]) / self.timedelta[k]
        return self.rotations[k] * Rotation.from_rotvec(self.rotvecs[k] * part[..., None])


def __dir__() -> list[str]:
    return sorted(__all__)
