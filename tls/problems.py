"""The one error of this room."""


class TlsProblem(Exception):
    """A store, a key, a certificate or a setting that cannot be used.

    The text is a sentence or two for the operator: what is wrong, and what to do.
    """
