"""The exceptions that end a command when it cannot do its work."""


class CommandError(Exception):
    """A sentence for the person at the terminal: what went wrong and what to do."""


class NoSuchTopic(CommandError):
    """The cluster has no topic of the given name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no topic {name}; `pykafkalog topics` lists what there is")


class LoginRefused(CommandError):
    """The broker answers, and does not let the command in."""
