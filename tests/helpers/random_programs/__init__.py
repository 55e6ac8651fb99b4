"""Random programs: their source, their operations, and runs in chainrule and in PyTorch."""
