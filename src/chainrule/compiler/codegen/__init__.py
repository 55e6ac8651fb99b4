"""Code generation: NumPy source of programs, and the functions that it calls."""
