"""Prints quotas, and who takes how much of them."""

from collections.abc import Sequence
from typing import Final

from tools.json_output import print_document
from tools.quotas.entities import Entity, Quotas
from tools.quotas.throttled import Taker
from tools.tables import Cell, print_table

DEFAULT: Final = "<default>"
UNITS: Final = {
    "producer_byte_rate": "bytes/s",
    "consumer_byte_rate": "bytes/s",
    "request_percentage": "% of a thread",
    "controller_mutation_rate": "partitions/s",
    "connection_creation_rate": "connections/s",
}


def show_quotas(found: Sequence[Quotas], *, as_json: bool) -> None:
    """Print a line for each quota."""
    if as_json:
        print_document([{"entity": each.entity, "quotas": each.values} for each in found])
    elif not found:
        print("No quota is set here.")
    else:
        print_table(
            ("user", "client id", "address", "quota", "value", "unit"),
            (
                (*_names(each.entity), key, _amount(value), UNITS.get(key))
                for each in found
                for key, value in each.values.items()
            ),
        )


def show_takers(found: Sequence[Taker], *, as_json: bool, everyone: bool) -> None:
    """Print a line for each client; `everyone`: also those who are not throttled."""
    if as_json:
        print_document(
            [
                {
                    "broker": each.broker,
                    "quota": each.key,
                    "user": each.user,
                    "client_id": each.client_id,
                    "rate": each.rate,
                    "bound": each.bound,
                    "throttled_ms": each.throttled_ms,
                }
                for each in found
            ]
        )
    elif not found:
        print("Nobody with a quota was here lately." if everyone else "Nobody is throttled.")
    else:
        print_table(
            ("broker", "user", "client id", "quota", "rate", "of", "unit", "throttled, ms"),
            (
                (
                    each.broker,
                    each.user,
                    each.client_id,
                    each.key,
                    _amount(each.rate),
                    _amount(each.bound),
                    UNITS.get(each.key),
                    each.throttled_ms,
                )
                for each in sorted(found, key=lambda taker: -taker.throttled_ms)
            ),
        )


def _names(entity: Entity) -> list[str | None]:
    return [
        (DEFAULT if entity[kind] is None else entity[kind]) if kind in entity else None
        for kind in ("user", "client-id", "ip")
    ]


def _amount(value: float) -> Cell:
    """A number as a cell, with a fraction only where it says something."""
    return int(value) if value == int(value) or value >= 1000 else f"{value:.3g}"
