"""Namespaces of other packages, so that their users' programs run with other imports alone."""
