"""Parallel execution of compiled loops: a team of spinning threads that share iterations."""
