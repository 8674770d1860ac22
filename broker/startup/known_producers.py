"""Producer ids that the logs remember: none of them may be given to a new producer."""

from broker.cluster.producer_ids import BELIEVED_BELOW, ProducerIdAllocator
from storage.log_manager import LogManager


def reserve_known_producer_ids(logs: LogManager, producer_ids: ProducerIdAllocator) -> None:
    """Let the allocator go on above every id in the logs, however old the metadata store is.

    A store may be older than the logs: a copy that was put back, or a directory that was adopted.
    """
    for log in logs.all_logs():
        believed = (one for one in log.producers.producers if one < BELIEVED_BELOW)
        last = max(believed, default=None)
        if last is not None:
            producer_ids.note_used(last)
