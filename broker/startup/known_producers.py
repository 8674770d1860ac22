"""Producer ids in the logs' producer state: none of them may be given to a new producer."""

from broker.cluster.producer_ids import BELIEVED_BELOW, ProducerIdAllocator
from storage.log_manager import LogManager


def reserve_known_producer_ids(logs: LogManager, producer_ids: ProducerIdAllocator) -> None:
    """Have the allocator continue above every id below `BELIEVED_BELOW` that the logs hold.

    The metadata store may be older than the logs, if it was restored from a copy or a directory was
    adopted.
    """
    for log in logs.all_logs():
        believed = (one for one in log.producers.producers if one < BELIEVED_BELOW)
        last = max(believed, default=None)
        if last is not None:
            producer_ids.note_used(last)
