"""The order in which records arrive: by event time, some late, some too late.

The timestamp of a record is its event time, `time_hour`. Three kinds of lateness are made:

* Late. Each tenth reading and each twentieth flight arrives one to six hours after its hour. The
  watermark waits for them (`join.DELAY`), so they are joined like all others.
* Too late. LaGuardia's readings of the blizzard of 8 and 9 February, and the flights of Hawaiian
  Airlines in that month, arrive at the end of the year. The watermark has long passed.
* Never. 1,556 flights have no reading at all; the join has to wait for the watermark to know.

A heartbeat is a record without a value that only moves event time on. Without one, the last flights
would wait for ever, because a watermark moves only with records.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pandas as pd

HEARTBEAT_KEY = b"heartbeat"
END_OF_DATA = datetime(2014, 1, 1, 5, tzinfo=UTC)
"""A time after the hour of the last flight."""


class Arrival(NamedTuple):
    """One record of a topic."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int


@dataclass(frozen=True)
class Arrivals:
    """A table in two parts, each in the order in which its rows arrive."""

    in_time: pd.DataFrame
    too_late: pd.DataFrame
    late: int
    """Number of rows in time that arrive after their hour."""


def arrivals_of_flights(flights: pd.DataFrame) -> Arrivals:
    """Return the flights' arrivals; all but Hawaiian's February are in time."""
    return _arrivals(flights, (flights["carrier"] == "HA") & (flights["month"] == 2), each=20)


def arrivals_of_weather(weather: pd.DataFrame) -> Arrivals:
    """Return the readings' arrivals; all but LaGuardia's blizzard are in time."""
    blizzard = (weather["month"] == 2) & weather["day"].isin([8, 9])
    return _arrivals(weather, (weather["origin"] == "LGA") & blizzard, each=10)


def _arrivals(table: pd.DataFrame, too_late: "pd.Series[bool]", each: int) -> Arrivals:
    in_time = table[~too_late]
    number = pd.Series(range(len(in_time)), index=in_time.index)
    is_late = number % each == each - 1
    hours = (number // each % 6 + 1).where(is_late, 0)
    arrives = pd.to_datetime(in_time["time_hour"]) + pd.to_timedelta(hours, unit="h")
    ordered = in_time.loc[arrives.sort_values(kind="stable").index]
    return Arrivals(ordered, table[too_late], int(is_late.sum()))


def records(table: pd.DataFrame, key: str) -> Iterator[Arrival]:
    """Yield the table's rows in order, each as a JSON object, keyed by one of its columns.

    A missing key is null (2,512 flights have no tail number).
    """
    times = pd.to_datetime(table["time_hour"]).dt.as_unit("ms").astype("int64").tolist()
    columns = [table[name].astype(object).where(table[name].notna(), None) for name in table]
    names = list(table.columns)
    # Not with pandas' own to_json, which rounds to fifteen digits.
    encode = json.JSONEncoder(separators=(",", ":")).encode
    for timestamp, *cells in zip(times, *columns, strict=True):
        row = dict(zip(names, cells, strict=True))
        found = row[key]
        yield Arrival(None if found is None else found.encode(), encode(row).encode(), timestamp)


def heartbeat(after_end: timedelta) -> Arrival:
    """Return a heartbeat whose event time is `after_end` after the end of the data."""
    return Arrival(HEARTBEAT_KEY, None, int((END_OF_DATA + after_end).timestamp() * 1000))
