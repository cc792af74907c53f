"""The binary format of WebAssembly, written and read."""
