"""PJRT clients: the CPU, and CUDA and TPU where their plugins are installed."""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import pathlib

import numpy as np
import jaxlib._jax as _jax
from jaxlib import xla_client as xc
from weft.base.config import config, num_cpu_devices
from weft.base.errors import BackendError

from . import bootstrap, cluster, compat

PLATFORMS = ("tpu", "cuda", "cpu")


def cpu_client():
    """The CPU client, with `num_cpu_devices` devices, or as many as XLA_FLAGS asks for."""
    count = config.num_cpu_devices
    extra = {"num_devices": count} if count > 0 else {}
    return xc.make_cpu_client(asynchronous=config.cpu_enable_async_dispatch, **cluster.cpu_options(), **extra)


def _package_folder(name: str) -> pathlib.Path | None:
    """The folder of a package, found without importing it."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return pathlib.Path(places[0]) if places else None


def _cuda_plugin() -> tuple[str, pathlib.Path]:
    """('13' or '12', the plugin's shared library)."""
    for major in ("13", "12"):
        # The namespace package `jax_plugins` belongs to the plugins; nothing of jax is imported for it.
        folder = _package_folder(f"jax_plugins.xla_cuda{major}")
        if folder is not None and (folder / "xla_cuda_plugin.so").exists():
            return major, folder / "xla_cuda_plugin.so"
    release = ".".join(map(str, compat.RELEASE))
    raise BackendError(
        'no CUDA plugin is installed. On a machine with an NVIDIA GPU: pip install "weft[cuda13]", or for this jaxlib'
        f' pip install "jax-cuda13-plugin[with-cuda]=={release}". `python -m weft.doctor` says what else is missing.'
    )


# The libraries that the plugin links against, in an order in which each finds those it needs.
_NVIDIA_LIBRARIES = (
    ("cuda_runtime", "libcudart.so"),
    ("cu", "libcudart.so"),
    ("cu", "libnvrtc.so"),
    ("cu", "libnvJitLink.so"),
    ("cu", "libcublasLt.so"),
    ("cu", "libcublas.so"),
    ("cu", "libcufft.so"),
    ("cu", "libcusparse.so"),
    ("cu", "libcusolver.so"),
    ("cu", "libcupti.so"),
    ("nvjitlink", "libnvJitLink.so"),
    ("cuda_nvrtc", "libnvrtc.so"),
    ("cublas", "libcublasLt.so"),
    ("cublas", "libcublas.so"),
    ("cufft", "libcufft.so"),
    ("cusparse", "libcusparse.so"),
    ("cusolver", "libcusolver.so"),
    ("cuda_cupti", "libcupti.so"),
    ("cudnn", "libcudnn.so"),
    ("nccl", "libnccl.so"),
    ("nvshmem", "libnvshmem_host.so"),
)


def _preload_nvidia_libraries(major: str) -> pathlib.Path | None:
    """Loads the libraries of NVIDIA's wheels, which no search path names; returns their folder."""
    root = _package_folder("nvidia")
    if root is None:
        return None
    for package, library in _NVIDIA_LIBRARIES:
        folder = root / (f"cu{major}" if package == "cu" else package) / "lib"
        for found in sorted(folder.glob(library + ".*"))[:1]:
            try:
                ctypes.CDLL(str(found), mode=ctypes.RTLD_GLOBAL)
            except OSError:  # not needed by this plugin, or found later by the system's loader
                pass
    for name in (f"cu{major}", "cuda_nvcc"):
        if (root / name).is_dir():
            return root / name
    return None


cuda_data_folder: str | None = None  # where XLA finds libdevice and ptxas; set with the CUDA client


def cuda_client():
    """The client of the CUDA plugin."""
    global cuda_data_folder
    major, library = _cuda_plugin()
    data = _preload_nvidia_libraries(major)
    cuda_data_folder = str(data) if data is not None else None
    try:
        c_api = xc.load_pjrt_plugin_dynamically("cuda", str(library))
        profiler = importlib.import_module("jaxlib._profiler")
        profiler.register_plugin_profiler(c_api)
        _register_cuda_kernels(major, c_api)
        if not xc.pjrt_plugin_initialized("cuda"):
            xc.initialize_pjrt_plugin("cuda")
        return xc.make_c_api_client(
            "cuda", {**xc.generate_pjrt_gpu_plugin_options(), **cluster.gpu_options()}, cluster.runtime_client()
        )
    except (RuntimeError, ImportError) as e:
        raise BackendError(
            f"the CUDA plugin is installed but gives no device: {e}. `python -m weft.doctor --only cuda` says whether"
            " there is a GPU, and whether its driver and the plugin fit."
        ) from e


def _register_cuda_kernels(major: str, c_api) -> None:
    """The plugin's custom calls (linear algebra, callbacks)."""
    extension = importlib.import_module(f"jax_cuda{major}_plugin.cuda_plugin_extension")
    xc.register_custom_type_handler("CUDA", functools.partial(extension.register_custom_type, c_api))
    xc.register_custom_call_handler("CUDA", functools.partial(extension.register_custom_call_target, c_api))
    for name, value in extension.ffi_types().items():
        xc.register_custom_type(name, value, platform="CUDA")
    for name, value in extension.ffi_handlers().items():
        xc.register_custom_call_target(name, value, platform="CUDA", api_version=1)
    for family in ("gpu_solver", "gpu_sparse", "gpu_prng", "gpu_linalg"):
        module = importlib.import_module("jaxlib." + family)
        for platform, targets in getattr(module, "registrations", dict)().items():
            for name, value, api_version in targets:
                xc.register_custom_call_target(name, value, platform=platform, api_version=api_version)


def tpu_client():
    """The client of libtpu."""
    if importlib.util.find_spec("libtpu") is None:
        raise BackendError(
            'libtpu is not installed. On a TPU machine: pip install "weft[tpu]" (libtpu 0.0.42.* for jaxlib 0.10.2,'
            " 0.0.48.* for 0.11, 0.0.50.* for 0.12)."
        )
    libtpu = importlib.import_module("libtpu")
    try:
        if not xc.pjrt_plugin_loaded("tpu"):
            xc.load_pjrt_plugin_dynamically("tpu", libtpu.get_library_path())
        if not xc.pjrt_plugin_initialized("tpu"):
            xc.initialize_pjrt_plugin("tpu")
        return _jax.get_c_api_client("tpu", {}, None)
    except RuntimeError as e:
        raise BackendError(f"libtpu is installed but gives no device: {e}. Another process may hold the TPU.") from e


_MAKERS = {"cpu": cpu_client, "cuda": cuda_client, "tpu": tpu_client}
_clients: dict = cluster.made_clients
# the message only: an error would keep alive the values in the frames of its traceback
_failures: dict[str, str] = {}


def client_for(platform: str):
    """The client of a platform, made at the first call. Raises BackendError, with the reason, if there is none."""
    if platform in _clients:
        return _clients[platform]
    if platform in _failures:
        raise BackendError(_failures[platform])
    if platform not in _MAKERS:
        raise BackendError(f"XLA has no platform {platform!r} here; it has {', '.join(PLATFORMS)}.")
    try:
        client = _MAKERS[platform]()
    except BackendError as e:
        _failures[platform] = str(e)
        raise
    bootstrap.prime(client)
    _clients[platform] = client
    return client


def _check_count(option: str) -> None:
    """The number of virtual devices can't change after the client is made."""
    number = num_cpu_devices.option
    if (
        option == "num_cpu_devices"
        and "cpu" in _clients
        and number.default > 0
        and number.default != _clients["cpu"].local_device_count()
    ):
        number.default = _clients["cpu"].local_device_count()
        raise RuntimeError(
            f"jax_num_cpu_devices can't change any more: there are {number.default} CPU devices since the first array"
            " was made. Set it at the start of the program, or as the environment variable JAX_NUM_CPU_DEVICES."
        )


config.listen(_check_count)


def forget_clients() -> None:
    """Drops all clients; new ones are made when a device is next looked up."""
    _clients.clear()
    _failures.clear()


# Options of a build that are not flags of XLA.
_BUILD_OPTIONS = (
    "exec_time_optimization_effort",
    "memory_fitting_effort",
    "optimization_level",
    "memory_fitting_level",
)


def compile_options(devices, pairs=()):
    """XLA's options for a program over some devices; `pairs` are (flag, value) of its debug options."""
    options = xc.CompileOptions()
    options.num_replicas, options.num_partitions = 1, len(devices)
    build = options.executable_build_options
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    options.device_assignment = xc.DeviceAssignment.create(np.array([[d.id for d in devices]], dtype=np.int32))
    if len(devices) > 1:  # the compiler chooses the layout of results for which none was requested
        build.allow_spmd_sharding_propagation_to_output = [True]
    if devices[0].platform in ("gpu", "cuda") and cuda_data_folder is not None:
        build.debug_options.xla_gpu_cuda_data_dir = cuda_data_folder
    for name, value in pairs:
        if name in _BUILD_OPTIONS and hasattr(build, name):
            setattr(build, name, value)
    options.env_option_overrides = [
        (name, value if isinstance(value, bool) else str(value)) for name, value in pairs if name not in _BUILD_OPTIONS
    ]
    return options
