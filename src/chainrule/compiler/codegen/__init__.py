"""Source code of programs: NumPy calls, loops, and what they run with."""
