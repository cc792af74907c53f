"""Runtimes of artifacts: wasmtime and wgpu on the desktop, the engine and the GPU of a page."""
