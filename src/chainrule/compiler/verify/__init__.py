"""Verification of compiled calls: the state that a call changes, and the comparison."""
