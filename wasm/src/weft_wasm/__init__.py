"""weft's kernel compiler: a loop IR, its schedules, and emitters of WebAssembly and WGSL."""

__version__ = "0.1.0"
