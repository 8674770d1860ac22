"""The values that a read_committed consumer gets of a whole broker."""

from random import Random

from tests.simulation.readers import AssignedReader
from tests.support.whole_broker import WholeBroker

POLLS = 12


async def committed_values(broker: WholeBroker, *keys: str) -> list[str]:
    """Return the values of these partitions, up to what some polls find."""
    client = broker.client("reader")
    reader = AssignedReader(client, Random(1), keys, lambda moved: None)  # type: ignore[arg-type]
    await reader.open()
    found: list[str] = []
    for _ in range(POLLS):
        polled = await reader.poll(0.05, 1000)
        found += [value for pairs in polled.values() for _, value in pairs]
    return found
