"""The origin of an append, which decides the checks in the log and in its producer state."""

from enum import Enum
from typing import Final


class AppendOrigin(Enum):
    """The origin of an appended batch (`org.apache.kafka…AppendOrigin`)."""

    CLIENT = "client"
    """A produce request: nothing is trusted."""
    COORDINATOR = "coordinator"
    """The broker's own coordinators: control batches are allowed, duplicates are not looked for."""
    REPLICATION = "replication"
    """A follower or recovery: the leader has checked the batches already."""


CLIENT: Final = AppendOrigin.CLIENT
REPLICATION: Final = AppendOrigin.REPLICATION
"""Appends use these names, because looking up an attribute of an enum costs a call."""
