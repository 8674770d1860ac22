"""The exception that a pipeline command ends with when it cannot do what was asked."""


class PipelineError(Exception):
    """A sentence for the person at the terminal: what went wrong, where, and what to do."""
