"""Intermediate representation: programs, the shapes of their values, traits of operations."""
