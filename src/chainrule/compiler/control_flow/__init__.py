"""Loops and branches in traces: `scan`, `while_loop`, `cond`."""
