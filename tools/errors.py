"""The one exception that a command ends with when it cannot do what was asked."""


class CommandError(Exception):
    """A sentence for the person at the terminal: what went wrong and what to do."""
