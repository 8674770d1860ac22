"""The example's own parts: in which order records arrive, and what counts as equal."""

import json
from datetime import UTC, datetime, timedelta

import pandas as pd

from examples.flights.arrivals import (
    END_OF_DATA,
    arrivals_of_flights,
    arrivals_of_weather,
    heartbeat,
    records,
)
from examples.flights.results import _table, difference
from examples.flights.table import FLIGHT_COLUMNS, WEATHER_COLUMNS, joined_by_pandas

BEGIN = datetime(2013, 2, 7, tzinfo=UTC)


def flights(count: int = 400) -> pd.DataFrame:
    hours = [BEGIN + timedelta(hours=number // 4) for number in range(count)]
    table = pd.DataFrame({name: range(count) for name in FLIGHT_COLUMNS})
    return table.assign(
        year=2013,
        month=2,
        day=[hour.day for hour in hours],
        dep_delay=[None if number % 10 == 3 else number / 7 for number in range(count)],
        carrier=["HA" if number % 40 == 5 else "UA" for number in range(count)],
        tailnum=[None if number % 25 == 7 else f"N{number % 30}" for number in range(count)],
        origin=[("LGA", "JFK")[number % 2] for number in range(count)],
        time_hour=[f"{hour:%Y-%m-%dT%H:00:00Z}" for hour in hours],
    )


def weather() -> pd.DataFrame:
    table = (
        flights()
        .drop_duplicates(["origin", "time_hour"])[["origin", "year", "month", "day", "time_hour"]]
        .reset_index(drop=True)
    )
    return table.assign(**dict.fromkeys(WEATHER_COLUMNS, table.index / 3))


def test_every_row_arrives_once_in_time_or_too_late() -> None:
    for table, found in (
        (flights(), arrivals_of_flights(flights())),
        (weather(), arrivals_of_weather(weather())),
    ):
        assert 0 < len(found.too_late) < len(found.in_time)
        both = pd.concat([found.in_time, found.too_late]).sort_index()
        pd.testing.assert_frame_equal(both, table)


def test_those_in_time_are_at_most_six_hours_late_and_some_are() -> None:
    found = arrivals_of_weather(weather())
    hours = pd.to_datetime(found.in_time["time_hour"])
    behind = (hours.cummax() - hours).max()
    assert timedelta(0) < behind <= timedelta(hours=6)
    assert found.late == len(found.in_time) // 10


def test_a_record_is_its_row_to_the_last_digit() -> None:
    table = flights()
    arrivals = list(records(table, "tailnum"))
    assert [arrival.key for arrival in arrivals[6:9]] == [b"N6", None, b"N8"]
    first = arrivals[0]
    assert first.timestamp_ms == BEGIN.timestamp() * 1000
    rows = [json.loads(arrival.value or b"") for arrival in arrivals]
    delays = [None if pd.isna(delay) else delay for delay in table["dep_delay"]]
    assert [row["dep_delay"] for row in rows] == delays


def test_a_heartbeat_is_after_the_data_and_has_no_row() -> None:
    beat = heartbeat(timedelta(days=1))
    assert beat.value is None
    assert beat.timestamp_ms == (END_OF_DATA + timedelta(days=1)).timestamp() * 1000


def joined() -> pd.DataFrame:
    return joined_by_pandas(flights(), weather())


def test_what_was_read_back_is_equal() -> None:
    wanted = joined()
    lines = wanted.to_json(orient="records", lines=True, double_precision=15).splitlines()
    rows = dict(zip([name.encode() for name in wanted.index], map(str.encode, lines), strict=True))
    whole = wanted.round(12)
    assert difference(_table(rows).round(12)[list(wanted.columns)], whole) is None


def test_whatever_differs_is_said() -> None:
    wanted = joined()
    assert difference(wanted, wanted) is None
    name = wanted.index[17]
    said = difference(wanted.drop(name), wanted)
    assert said is not None and "1 rows are missing" in said and str(name) in said
    assert "1 should not be there" in (difference(wanted, wanted.drop(name)) or "")
    for column, value in (("temp", 0.1), ("wind_gust", None), ("dep_delay", 1e-12)):
        other = wanted.copy()
        other.loc[name, column] = value
        assert f"1 rows differ, the first is {name}" in (difference(other, wanted) or "")
