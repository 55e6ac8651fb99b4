"""`torch.backends.mps`: Apple's GPUs are not used."""


def is_available() -> bool:
    """Return False: Apple's GPUs are not used."""
    return False


is_built = is_available
