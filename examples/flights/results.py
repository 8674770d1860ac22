"""Results from a topic or a lake as pandas tables, to compare with those that pandas computes."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.json
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from examples.flights.table import FLIGHT_COLUMNS, WEATHER_COLUMNS

AT_ONCE = 10_000
ROW_COLUMNS = [*FLIGHT_COLUMNS, *WEATHER_COLUMNS]


@dataclass(frozen=True)
class Rows:
    """The latest value of each key, and the number of records."""

    table: pd.DataFrame
    """In the form of `table.joined_by_pandas`: sorted by the flight's id."""
    records: int

    @property
    def repeated(self) -> int:
        """Number of records that a later one of their key has replaced."""
        return self.records - len(self.table)


def wait_for_more(
    bootstrap: str, topic: str, while_waiting: Callable[[], None], timeout_s: float = 30
) -> None:
    """Return as soon as the topic has another record; `while_waiting` may raise."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends"})
    try:
        before = _ends(consumer, topic, timeout_s)
        places = [TopicPartition(topic, number) for number in before]
        while before == {
            place.partition: consumer.get_watermark_offsets(place, timeout_s)[1] for place in places
        }:
            while_waiting()
    finally:
        consumer.close()


def read_topic(bootstrap: str, topic: str, timeout_s: float = 30) -> Rows:
    """Read a topic from its beginning to its end. Raises TimeoutError if the end is not reached."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "results", "enable.auto.commit": False}
    )
    left = {number: end for number, end in _ends(consumer, topic, timeout_s).items() if end}
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in left])
    latest: dict[bytes, bytes] = {}
    count = 0
    deadline = time.monotonic() + timeout_s
    while left:
        messages = consumer.consume(AT_ONCE, 0.2)  # seconds, the wait for the last messages
        if messages:
            deadline = time.monotonic() + timeout_s
        elif time.monotonic() > deadline:
            raise TimeoutError(f"{topic} was not read to its end: {left}")
        for message in messages:
            if message.error() is not None:
                raise TimeoutError(f"{topic} was not read to its end: {message.error()}")
            # A key's records are in one partition, which is read in order.
            latest[message.key()] = message.value()
        count += len(messages)
        for message in messages:
            if message.offset() + 1 >= left.get(message.partition(), 0):
                left.pop(message.partition(), None)
    consumer.close()
    return Rows(_table(latest), count)


def read_lake(directory: Path) -> Rows:
    """Read a Parquet table of the topic's records: the value of the highest offset of each key."""
    frame = pd.read_parquet(directory, columns=["key", "value", "offset"])
    latest = frame.sort_values("offset").drop_duplicates("key", keep="last")
    return Rows(_table(dict(zip(latest["key"], latest["value"], strict=True))), len(frame))


def _ends(consumer: Any, topic: str, timeout_s: float) -> dict[int, int]:
    partitions = consumer.list_topics(topic, timeout=timeout_s).topics[topic].partitions
    return {
        number: consumer.get_watermark_offsets(TopicPartition(topic, number), timeout_s)[1]
        for number in partitions
    }


def _table(latest: dict[bytes, bytes]) -> pd.DataFrame:
    names = pd.Index([key.decode() for key in latest], name="id")
    # Explicit, because inference would turn these texts into times.
    as_text = pa.json.ParseOptions(explicit_schema=pa.schema({"time_hour": pa.string()}))
    rows = pa.json.read_json(BytesIO(b"\n".join(latest.values())), parse_options=as_text)
    table: pd.DataFrame = rows.select(ROW_COLUMNS).to_pandas().set_index(names)
    return table.sort_index()


def difference(got: pd.DataFrame, wanted: pd.DataFrame) -> str | None:
    """Return a sentence about the differences; None if every cell is equal, to the last bit."""
    missing, extra = wanted.index.difference(got.index), got.index.difference(wanted.index)
    if len(missing) or len(extra):
        return (
            f"{len(missing):,} rows are missing {list(missing[:3])}, "
            f"{len(extra):,} should not be there {list(extra[:3])}"
        )
    if list(got.columns) != list(wanted.columns):
        return f"columns {list(got.columns)}, not {list(wanted.columns)}"
    unequal = ~((got == wanted) | (got.isna() & wanted.isna())).all(axis=1)
    if unequal.any():
        first = unequal.idxmax()
        return (
            f"{unequal.sum():,} rows differ, the first is {first}: "
            f"{got.loc[first].to_dict()}, not {wanted.loc[first].to_dict()}"
        )
    return None
