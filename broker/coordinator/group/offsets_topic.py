"""The topic that groups and their offsets are kept in."""

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
