"""The platforms wasm and webgpu, as weft's runtime asks for them."""
