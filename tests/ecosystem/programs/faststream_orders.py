"""FastStream: validated orders in, invoices out. Runs in its own environment.

BOOTSTRAP and CLIENT (aiokafka or confluent) are in the process's environment.
"""

import asyncio
import os

from faststream import AckPolicy, FastStream
from pydantic import BaseModel

if os.environ["CLIENT"] == "aiokafka":
    from faststream.kafka import KafkaBroker as Broker
else:
    from faststream.confluent import KafkaBroker as Broker  # type: ignore[assignment]

broker = Broker(os.environ["BOOTSTRAP"])
app = FastStream(broker)


class Order(BaseModel):
    """A record of the topic that the program reads."""

    number: int
    pieces: int
    price: float


class Invoice(BaseModel):
    """A record of the topic that the program writes."""

    number: int
    total: float


@broker.subscriber(
    "orders",
    group_id="billing",
    auto_offset_reset="earliest",
    ack_policy=AckPolicy.NACK_ON_ERROR,
)
@broker.publisher("invoices")
async def bill(order: Order) -> Invoice:
    """One order's invoice."""
    return Invoice(number=order.number, total=order.pieces * order.price)


if __name__ == "__main__":
    asyncio.run(app.run())
