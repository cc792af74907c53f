#!/bin/sh
# Finds a Vulkan driver for wgpu-py; as root on Debian installs the software one (lavapipe) where there is none.
# usage: tools/find-vulkan.sh PYTHON
has_adapter() { # one of OpenGL, which desktop libraries bring along, does not do
  "$1" -c 'import sys, wgpu; sys.exit(wgpu.gpu.request_adapter_sync().info["backend_type"].startswith("OpenGL"))' >/dev/null 2>&1
}
has_adapter "$1" && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing the Vulkan software driver (libvulkan1, mesa-vulkan-drivers)"
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q libvulkan1 mesa-vulkan-drivers; } >/dev/null 2>&1
  has_adapter "$1" && exit 0
fi
echo "no Vulkan driver was found: the WebGPU tests under wgpu-py will be skipped. Install one (Debian: libvulkan1 mesa-vulkan-drivers)."
