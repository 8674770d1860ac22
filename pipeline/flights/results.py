"""What came out, as pandas tables that are compared with pandas' own: of a topic, of a lake."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

AT_ONCE = 10_000


@dataclass(frozen=True)
class Rows:
    """The latest value of each key, and how many records there were."""

    table: pd.DataFrame
    """As `table.joined_by_pandas` gives it: sorted by the flight's id."""
    records: int

    @property
    def repeated(self) -> int:
        """Records that a later one of their key has replaced."""
        return self.records - len(self.table)


def end_of(bootstrap: str, topic: str, timeout_s: float = 30) -> int:
    """How many offsets the topic has given out, over all partitions."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends"})
    try:
        return sum(_ends(consumer, topic, timeout_s).values())
    finally:
        consumer.close()


def read_topic(bootstrap: str, topic: str, timeout_s: float = 30) -> Rows:
    """Read it from its beginning to its end. Raises TimeoutError when the end does not come."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "results", "enable.auto.commit": False}
    )
    left = {number: end for number, end in _ends(consumer, topic, timeout_s).items() if end}
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in left])
    latest: dict[bytes, bytes] = {}
    count = 0
    while left:
        messages = consumer.consume(AT_ONCE, timeout_s)
        if not messages or messages[-1].error() is not None:
            raise TimeoutError(f"{topic} was not read to its end, {left} are missing")
        for message in messages:
            # A key's records are of one partition, which comes in order.
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
    return pd.DataFrame([json.loads(row) for row in latest.values()], index=names).sort_index()


def difference(got: pd.DataFrame, wanted: pd.DataFrame) -> str | None:
    """What differs, in a sentence; None when every cell is equal, to the last bit."""
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
