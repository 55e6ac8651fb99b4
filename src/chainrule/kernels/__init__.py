"""Kernels: array functions that compute single operations, for NumPy and CuPy.

Each takes the array module (`numpy` or `cupy`) first; `backend` binds them to its namespaces.
"""
