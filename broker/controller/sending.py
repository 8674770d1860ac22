"""Requests to brokers: one batch per step of the controller, sent when the step is done."""

from collections.abc import Callable, Iterable

from broker.controller.cluster_state import ControllerState
from broker.controller.request_batch import Outgoing, RequestBatch
from protocol.types import TopicPartition
from storage.waits import PAUSE


class Sending:
    """Makes batches and sends them."""

    def __init__(
        self,
        state: ControllerState,
        broker_id: int,
        listener: str,
        send: Callable[[Outgoing], None],
    ) -> None:
        self._state = state
        self._broker_id = broker_id
        self._listener = listener
        self._send = send

    def batch(self) -> RequestBatch:
        """A batch for one step."""
        return RequestBatch(self._state, self._broker_id, self._listener)

    async def send(self, batch: RequestBatch) -> None:
        """Queue the requests of a step."""
        for outgoing in await batch.requests():
            self._send(outgoing)
            await PAUSE

    async def metadata(
        self, brokers: Iterable[int], partitions: Iterable[TopicPartition] = ()
    ) -> None:
        """Tell brokers which brokers live, and the state of `partitions`."""
        batch = self.batch()
        batch.add_metadata(brokers, partitions)
        await self.send(batch)
