"""Commands for a device of wgpu-py, encoded by the functions of wgpu-native that its objects call: for a small kernel
the objects take longer than the functions (`bench/webgpu_calls.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import wgpu
from wgpu.backends.wgpu_native import ffi, lib

from wgpu.backends.wgpu_native._api import libf  # the same functions, with their errors as exceptions

NONE = ffi.NULL


class Commands:
    """The commands since the last submit. An error in one of them is raised by `submit`, which finishes them.

    Args:
        device: the device of wgpu-py.
    """

    def __init__(self, device: wgpu.GPUDevice):
        self.device, self.queue = device._internal, device.queue._internal
        self.encoder = self.compute = NONE  # the compute pass, while one is open
        self.finished = ffi.new("WGPUCommandBuffer[1]")

    def dispatch(self, pipeline: wgpu.GPUComputePipeline, group: wgpu.GPUBindGroup, groups: Sequence[int]) -> None:
        """A kernel on buffers; groups: how many workgroups along x, y and z."""
        if not self.compute:
            self.compute = lib.wgpuCommandEncoderBeginComputePass(self._encoder(), NONE)
        lib.wgpuComputePassEncoderSetPipeline(self.compute, pipeline._internal)
        lib.wgpuComputePassEncoderSetBindGroup(self.compute, 0, group._internal, 0, NONE)
        lib.wgpuComputePassEncoderDispatchWorkgroups(self.compute, *groups)

    def copy(
        self, source: wgpu.GPUBuffer, source_offset: int, target: wgpu.GPUBuffer, target_offset: int, nbytes: int
    ) -> None:
        """A copy between buffers, of whole words."""
        self._end_pass()
        lib.wgpuCommandEncoderCopyBufferToBuffer(
            self._encoder(), source._internal, source_offset, target._internal, target_offset, -(-nbytes // 4) * 4
        )

    def submit(self) -> None:
        """Queues the commands. Raises wgpu.GPUError for one that the device refuses."""
        self._end_pass()
        encoder, self.encoder = self._encoder(), NONE
        try:
            self.finished[0] = libf.wgpuCommandEncoderFinish(encoder, NONE)
        finally:
            lib.wgpuCommandEncoderRelease(encoder)
        try:
            libf.wgpuQueueSubmit(self.queue, 1, self.finished)
        finally:
            lib.wgpuCommandBufferRelease(self.finished[0])

    @property
    def pending(self) -> bool:
        """Whether there is anything to submit."""
        return bool(self.encoder)

    def drop(self) -> None:
        """Forgets what was not submitted."""
        self._end_pass()
        if self.encoder:
            lib.wgpuCommandEncoderRelease(self.encoder)
            self.encoder = NONE

    def _encoder(self) -> Any:
        if not self.encoder:
            self.encoder = lib.wgpuDeviceCreateCommandEncoder(self.device, NONE)
        return self.encoder

    def _end_pass(self) -> None:
        if self.compute:
            lib.wgpuComputePassEncoderEnd(self.compute)
            lib.wgpuComputePassEncoderRelease(self.compute)
            self.compute = NONE
