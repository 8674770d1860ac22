"""The worked example, end to end: a year of flights through the broker and through Spark.

Starts a broker of its own on a free port, then:

1. produces all 336,776 flights as JSON keyed by tail number (confluent-kafka, idempotent, lz4);
2. reads them with a group of three kafka-python members, the third joining in the middle;
3. aggregates them per carrier with Spark Structured Streaming, back into a topic, and compares
   what comes out with what pandas says of the same table;
4. kills the broker with -9, starts it again on the same directory, and reads everything once
   more: the flights, the group's offsets, the totals.

Every comparison that fails ends the run with exit code 1 and says what differs.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from confluent_kafka import Consumer, TopicPartition  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: E402
from rich.table import Table  # noqa: E402

from pipeline.flights import aggregate, consume, produce  # noqa: E402
from pipeline.flights.table import CarrierTotals, load_table, records, totals_by_pandas  # noqa: E402
from tests.support.apache_kafka import ApacheKafka  # noqa: E402
from tests.support.broker_process import BrokerProcess  # noqa: E402

SOURCE = "flights"
SINK = "carrier-totals"
GROUP = "flight-readers"
PARTITIONS = 6

console = Console()


class Differs(Exception):
    """What was read is not what was written."""


def expect(what: str, got: Any, wanted: Any) -> None:
    """Raise Differs unless they are equal; say so when they are."""
    if got != wanted:
        raise Differs(f"{what}: got {str(got)[:500]}, wanted {str(wanted)[:500]}")
    console.print(f"  [green]✓[/] {what}")


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


def committed_total(bootstrap: str) -> int:
    """The sum of the group's committed offsets over all partitions."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    places = [TopicPartition(SOURCE, n) for n in range(PARTITIONS)]
    total = sum(p.offset for p in consumer.committed(places, timeout=30))
    consumer.close()
    return total


def show(totals: dict[str, CarrierTotals]) -> None:
    """The totals as a table."""
    table = Table("carrier", *CarrierTotals._fields)
    for carrier, row in sorted(totals.items(), key=lambda item: -item[1].flights):
        table.add_row(carrier, *(f"{value:,}" for value in row))
    console.print(table)


def run(broker: BrokerProcess | ApacheKafka, directory: Path) -> None:
    """All steps. Raises Differs at the first comparison that fails."""
    table = load_table()
    flights = list(records(table))
    wanted = totals_by_pandas(table)
    values = sorted(flight.value for flight in flights)

    with step("broker started"):
        broker.start()
    with step("flights produced", len(flights)) as progress:
        produce.create_topic(broker.bootstrap, SOURCE, PARTITIONS)
        acknowledged = produce.produce(broker.bootstrap, SOURCE, flights, progress)
    expect(f"{len(flights):,} flights acknowledged", acknowledged, len(flights))

    with step("flights read by a group of three", len(flights)) as progress:
        reading = consume.consume_with_group(
            broker.bootstrap, SOURCE, GROUP, len(flights), progress
        )
    expect("the group read every flight, equal", sorted(reading.values.values()), values)
    expect("none was handed out twice", reading.repeated, 0)
    expect("all three members read", [n for n, c in reading.by_member.items() if not c], [])
    expect("the group rebalanced in the middle", reading.rebalances >= 4, True)
    expect("the group's offsets are committed", committed_total(broker.bootstrap), len(flights))

    with step("Spark started"):
        spark = aggregate.start_spark()
    try:
        with step("aggregated by Spark, topic to topic"):
            produce.create_topic(broker.bootstrap, SINK, 1)
            aggregate.run_streaming_job(
                spark, broker.bootstrap, SOURCE, SINK, directory / "checkpoint"
            )
        got = aggregate.read_totals(broker.bootstrap, SINK)
        show(got)
        expect("the totals equal pandas'", got, wanted)

        with step("broker killed with -9 and started again"):
            broker.kill()
            broker.start()
        with step("flights read again", len(flights)) as progress:
            again = consume.consume_with_group(
                broker.bootstrap, SOURCE, f"{GROUP}-2", len(flights), progress
            )
        expect("every flight is still there, at its offset", again.values == reading.values, True)
        expect(
            "the group's offsets are still there", committed_total(broker.bootstrap), len(flights)
        )
        expect("the totals are still there", aggregate.read_totals(broker.bootstrap, SINK), wanted)
        with step("aggregated by Spark once more, in one batch"):
            got = aggregate.totals_by_batch_read(spark, broker.bootstrap, SOURCE)
        expect("and equal pandas' again", got, wanted)
    finally:
        spark.stop()


def main() -> int:
    """Parse the arguments, run the steps on a broker of their own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--directory",
        type=Path,
        help="where the broker and Spark keep their files (default: a new one)",
    )
    parser.add_argument(
        "--apache", action="store_true", help="run the same steps on Apache Kafka instead"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flights-") as temporary:
        directory = args.directory or Path(temporary)
        broker = (ApacheKafka if args.apache else BrokerProcess)(directory / "broker")
        try:
            run(broker, directory)
        except Differs as difference:
            console.print(f"[bold red]✗ {difference}[/]")
            return 1
        finally:
            broker.stop()
    console.print("[bold green]All of it holds.[/]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
