"""Guards: the checks that a call has the signature that a program was made for."""
