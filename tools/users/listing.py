"""Prints users: as a table or a JSON document."""

from collections.abc import Mapping
from typing import Any

from tools.json_output import print_document

Users = dict[str, dict[str, int]]
"""Iterations by mechanism, by user."""


def show(users: Users, added: str | None, removed: str | None, *, as_json: bool) -> None:
    """Print what was done, or all users."""
    if as_json:
        print_document([{"user": name, "mechanisms": users[name]} for name in users])
    elif added is not None:
        print(f"User {added} has a password for {' and '.join(users[added])}.")
    elif removed is not None:
        left = users.get(removed)
        print(
            f"User {removed} still has a password for {' and '.join(left)}."
            if left
            else f"Removed user {removed}."
        )
    elif not users:
        print("There is no user with a password for SCRAM.")
    else:
        from tools.tables import print_table

        print_table(("user", "mechanism", "iterations"), list(_rows(users)))


def _rows(users: Mapping[str, Mapping[str, int]]) -> Any:
    for name, mechanisms in users.items():
        for mechanism, iterations in mechanisms.items():
            yield name, mechanism, iterations
