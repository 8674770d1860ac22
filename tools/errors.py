"""The one exception that a command ends with when it cannot do what was asked."""


class CommandError(Exception):
    """A sentence for the person at the terminal: what went wrong and what to do."""


class NoSuchTopic(CommandError):
    """A topic was named that the cluster does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no topic {name}; `pykafkalog topics` lists what there is")
