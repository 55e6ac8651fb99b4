"""Settings under the names of `torch.backends.cudnn`, without effect."""

enabled = False
benchmark = False
deterministic = True  # results always are
allow_tf32 = False


def is_available() -> bool:
    """Return False: cuDNN is not used."""
    return False


def version() -> None:
    """Return None: cuDNN is not used."""
