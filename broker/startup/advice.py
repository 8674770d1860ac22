"""Advice for a failed start: a sentence that follows the reason.

The reason is the exception's own text; advice follows where the operator can remove the cause. The
text must be understood alone: an operator may see only the last line on standard error.
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
"""Errors at start-up that the operator can remove: reported without a traceback."""

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
    """Return the error's text, with advice for the operator if there is any."""
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
