"""Explanations of recorded graphs: pictures, derivations, reports and displays in notebooks."""
