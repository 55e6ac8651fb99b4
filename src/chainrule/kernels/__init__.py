"""Formulations of single operations that take more than a few lines, as functions of arrays.

Each takes the array module first, `numpy` or `cupy`: `backend` binds them to its namespaces.
"""
