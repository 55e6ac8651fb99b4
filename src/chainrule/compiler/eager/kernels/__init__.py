"""Kernels of eager operations in machine code, written by hand."""
