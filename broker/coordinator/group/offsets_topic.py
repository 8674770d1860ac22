"""The topic that holds groups and their committed offsets."""

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
