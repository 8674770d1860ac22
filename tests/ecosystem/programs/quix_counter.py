"""Quix Streams, exactly once: counts the records of each key. Runs in its own environment.

Arguments: bootstrap servers, topic to read, topic to write, directory of its state.
"""

import sys
from typing import Any

from quixstreams import Application, State

bootstrap, source, target, directory = sys.argv[1:]

app = Application(
    broker_address=bootstrap,
    consumer_group="quix-counter",
    auto_offset_reset="earliest",
    processing_guarantee="exactly-once",
    commit_interval=0.2,
    state_dir=directory,
    consumer_extra_config={"session.timeout.ms": 6000},
    producer_extra_config={"transaction.timeout.ms": 10000},
)


def count(value: dict[str, Any], state: State) -> dict[str, Any]:
    """The record with its number among those of its key."""
    number = state.get("count", 0) + 1
    state.set("count", number)
    return {"id": value["id"], "count": number}


frame = app.dataframe(app.topic(source, value_deserializer="json"))
frame = frame.apply(count, stateful=True)
frame.to_topic(app.topic(target, value_serializer="json"))
app.run()
