"""Rows of the conformance table, one module for each family of primitives."""
