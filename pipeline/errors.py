"""The exception that ends a pipeline command when it cannot do its work."""


class PipelineError(Exception):
    """A sentence for the person at the terminal: what went wrong, where, and what to do."""
