"""Which names a topic may have (Kafka's `Topic.java`, S-META-1)."""

import re

MAX_LENGTH = 249
"""Keeps `<topic>-<partition>.<32 hex digits>-delete` within the length of a file name."""

CLUSTER_METADATA = "__cluster_metadata"
"""Not allowed as a topic, because its directory would be that of KRaft's metadata log."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+\Z")


def invalid_name_reason(name: str) -> str | None:
    """Return why `name` is not allowed for a topic, in Kafka's words; None if it is."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return "Topic name is invalid: '.' or '..' is not allowed"
    if len(name) > MAX_LENGTH:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length "
            f"{MAX_LENGTH}"
        )
    if not _LEGAL.match(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        )
    return None
