"""Hand-written native kernels of eager operations."""
