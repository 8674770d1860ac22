"""What a person may do about a broker that did not start: a sentence behind the reason.

The reason is the exception's own text; only causes that are the operator's have advice. Whoever
reads it sees the last line on standard error and nothing else.
"""

import errno
from typing import Final

from broker.cluster.metadata_store import MetadataStoreError
from broker.world.transport import BindError
from config.definition import ConfigError
from storage.errors import (
    DirectoryLocked,
    InconsistentBrokerId,
    InconsistentClusterId,
    InconsistentMetaProperties,
    StorageError,
)

OPERATOR_ERRORS: Final = (
    ConfigError,
    BindError,
    DirectoryLocked,
    InconsistentBrokerId,
    InconsistentClusterId,
    InconsistentMetaProperties,
    MetadataStoreError,
    StorageError,
)
"""Reasons not to start that a person can do something about: told without a traceback."""

_IN_USE: Final = "Is another broker running? --override listeners=PLAINTEXT://:PORT takes another."
_ELSEWHERE: Final = (
    "A listener's host is an address of this machine: PLAINTEXT://127.0.0.1:9092 serves this"
    " machine only, PLAINTEXT://:9092 all of its addresses. The name that clients are told belongs"
    " into advertised.listeners."
)
_PRIVILEGED: Final = "Ports below 1024 are for root: take another."
_METRICS: Final = "metrics.http.listener is HOST:PORT of this machine with a free port."
_BY_ERRNO: Final = {
    errno.EADDRINUSE: _IN_USE,
    errno.EADDRNOTAVAIL: _ELSEWHERE,
    errno.EACCES: _PRIVILEGED,
}


def explained(error: Exception) -> str:
    """The error, and what a person may do about it."""
    advice = _advice(error)
    return f"{str(error).rstrip('.')}. {advice}" if advice else str(error)


def _advice(error: Exception) -> str:
    match error:
        case BindError(for_metrics=True):
            return _METRICS
        case BindError(errno=None):
            return _ELSEWHERE
        case BindError(errno=int(number)):
            return _BY_ERRNO.get(number, "")
        case DirectoryLocked():
            return "Stop it, or take another directory: --override log.dirs=DIR."
        case StorageError():
            return "May this user write there? Another directory: --override log.dirs=DIR."
    return "" if isinstance(error, OPERATOR_ERRORS) else "This is a bug: the log has the details."
