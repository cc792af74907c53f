"""Kernels that are more than a loop nest over the output: GEMM, sort. Written in loop IR, once for both targets."""
