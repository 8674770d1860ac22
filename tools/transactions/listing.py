"""Prints transactions: as tables or JSON documents."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tools.json_output import print_document
from tools.log_ends import place_name
from tools.magnitudes import duration
from tools.moments import iso_time
from tools.tables import count_of, print_table
from tools.transactions.explanation import Explanation, Stability
from tools.transactions.hanging import Open
from tools.transactions.survey import RUNNING, Listed, Producer, Transaction


def show_list(
    listed: Sequence[Listed], running: Mapping[str, Transaction], now_ms: int, *, as_json: bool
) -> None:
    """Print a line for each transactional id."""
    started = {name: each.start_ms for name, each in running.items()}
    if as_json:
        print_document(
            [{**asdict(each), "start_ms": started.get(each.transactional_id)} for each in listed]
        )
    elif not listed:
        print("There is no transactional id.")
    else:
        print_table(
            ("transactional id", "state", "open for", "producer id", "coordinator"),
            (
                (
                    each.transactional_id,
                    each.state,
                    _since(started.get(each.transactional_id), now_ms),
                    str(each.producer_id),
                    each.coordinator,
                )
                for each in listed
            ),
        )


def show_transactions(found: Sequence[Transaction], now_ms: int, *, as_json: bool) -> None:
    """Print everything about each transaction."""
    if as_json:
        print_document([_transaction(each) for each in found])
        return
    for each in found:
        print(f"{each.transactional_id}: {each.state}, coordinator {each.coordinator}")
        print(f"  producer {each.producer_id}, epoch {each.producer_epoch}")
        print(f"  timeout {duration(each.timeout_ms)}")
        if each.start_ms is not None and each.state in RUNNING:
            print(f"  open for {_since(each.start_ms, now_ms)}, since {iso_time(each.start_ms)}")
        if each.places:
            print(f"  partitions {' '.join(map(place_name, each.places))}")


def show_producers(found: Sequence[Producer], *, as_json: bool) -> None:
    """Print the producers of partitions."""
    if as_json:
        print_document([_producer(each) for each in found])
    elif not found:
        print("No producer is remembered: only idempotent ones are, and for a day.")
    else:
        print_table(
            ("partition", "producer id", "epoch", "sequence", "last record", "open since offset"),
            (
                (
                    place_name(each.place),
                    str(each.producer_id),
                    each.producer_epoch,
                    each.last_sequence,
                    iso_time(each.last_timestamp),
                    each.start_offset,
                )
                for each in found
            ),
        )


def show_hanging(found: Sequence[Open], looked_at: int, now_ms: int, *, as_json: bool) -> None:
    """Print the hanging transactions of so many partitions."""
    if as_json:
        print_document([_open(each) for each in found])
    elif not found:
        where = count_of(looked_at, "partition")
        print(f"No transaction hangs in {where}: those that this user may describe.")
    else:
        print_table(
            ("partition", "start offset", "producer id", "epoch", "silent for", "transactional id"),
            (
                (
                    place_name(each.producer.place),
                    str(each.producer.start_offset),
                    str(each.producer.producer_id),
                    each.producer.producer_epoch,
                    _since(each.producer.last_timestamp, now_ms),
                    each.transactional_id,
                )
                for each in found
            ),
        )
        print("End one with: pykafkalog transactions --abort PARTITION --start-offset OFFSET")


def show_why(stability: Stability, explanation: Explanation, *, as_json: bool) -> None:
    """Print what holds back read_committed consumers."""
    place, holder = stability.place, explanation.holder
    if as_json:
        print_document(
            {
                "topic": place[0],
                "partition": place[1],
                "last_stable_offset": stability.stable,
                "end": stability.end,
                "held_back": stability.held_back,
                "cause": explanation.cause.value,
                "what": explanation.what,
                "remedy": explanation.remedy,
                "holder": None if holder is None else _open(holder),
            }
        )
        return
    print_table(
        ("partition", "last stable offset", "end", "held back"),
        ((place_name(place), stability.stable, stability.end, stability.held_back),),
    )
    print(f"cause: {explanation.what}")
    print(f"do: {explanation.remedy}")


def _since(moment_ms: int | None, now_ms: int) -> str | None:
    return None if moment_ms is None else duration(max(now_ms - moment_ms, 0))


def _transaction(each: Transaction) -> dict[str, Any]:
    fields = asdict(each)
    places = fields.pop("places")
    return {**fields, "partitions": [{"topic": topic, "partition": p} for topic, p in places]}


def _producer(each: Producer) -> dict[str, Any]:
    fields = asdict(each)
    topic, partition = fields.pop("place")
    return {"topic": topic, "partition": partition, **fields}


def _open(each: Open) -> dict[str, Any]:
    return {
        **_producer(each.producer),
        "transactional_id": each.transactional_id,
        "hangs": None if each.hangs is None else each.hangs.value,
        "transaction": None if each.transaction is None else _transaction(each.transaction),
    }
