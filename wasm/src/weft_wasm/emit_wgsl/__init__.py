"""The second emitter of the loop IR: WGSL kernels and the plan that runs them, for WebGPU in a page and wgpu-py
outside of it.
"""

from weft_wasm.emit_wgsl.module import DEFAULT_LIMITS, as_words, compile_webgpu, from_words, memory_plan
from weft_wasm.emit_wgsl.shader import WgslError

__all__ = ["DEFAULT_LIMITS", "WgslError", "as_words", "compile_webgpu", "from_words", "memory_plan"]
