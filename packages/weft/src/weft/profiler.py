"""Profiles: what a program does and for how long, written for TensorBoard, XProf and Perfetto."""

from typing import Any

from .runtime import profiler as _profiler
from .runtime.kernel_times import KernelTime as KernelTime, kernel_times as kernel_times
from .runtime.profiler import (
    StepTraceAnnotation as StepTraceAnnotation,
    TraceAnnotation as TraceAnnotation,
    annotate_function as annotate_function,
    device_memory_profile as device_memory_profile,
    register_subprocess as register_subprocess,
    save_device_memory_profile as save_device_memory_profile,
    start_server as start_server,
    start_trace as start_trace,
    stop_server as stop_server,
    stop_trace as stop_trace,
    trace as trace,
)

_NAMES = ("ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane")


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return _profiler.class_of_xla(name)
    raise AttributeError(f"module 'weft.profiler' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*(name for name in globals() if not name.startswith("_") and name != "Any"), *_NAMES])
