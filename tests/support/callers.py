"""A caller of handler workers that is no connection."""

from typing import Any

from broker.fairness import NOBODY, Client
from broker.network.request_channel import RequestChannel
from storage.waits import call


class FakeCaller:
    """A `Caller` that keeps the outcomes of its calls."""

    def __init__(self, client: Client = NOBODY) -> None:
        self.client = client
        self.started: float | None = None
        self.answers: list[Any] = []
        self.errors: list[BaseException] = []

    def answered(self, answer: Any, error: BaseException | None) -> None:
        if error is None:
            self.answers.append(answer)
        else:
            self.errors.append(error)


def add(channel: RequestChannel, work: Any, *values: Any) -> FakeCaller:
    """Have a worker call `work`; return the caller."""
    caller = FakeCaller()
    channel.add(call(work, *values), caller)
    return caller
