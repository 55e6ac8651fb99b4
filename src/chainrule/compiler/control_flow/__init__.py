"""Tracing of loops and branches: `scan`, `while_loop`, `cond`, and their derivatives."""
