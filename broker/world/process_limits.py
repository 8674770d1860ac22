"""Claims as many file descriptors as the operating system lets this process have.

The soft limit (`ulimit -n`) is 1,024 in most shells, for the sake of old programs. A broker needs
more: one for each client's connection and several for each partition's files. A process may raise
its soft limit up to the hard one.
"""

import logging
import resource

from broker.world.descriptors import LOW, UNLIMITED, DescriptorBudget

logger = logging.getLogger(__name__)


def claim_descriptors() -> DescriptorBudget:
    """Raise the soft limit of open files to the hard one, log it, and return the budget."""
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = before
    if before != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:  # above the maximum of this system
            logger.warning("The limit of open files stays at %d: %s", before, error)
        else:
            limit = hard
    budget = UNLIMITED if limit == resource.RLIM_INFINITY else DescriptorBudget.of(limit)
    _tell(budget, before)
    return budget


def _tell(budget: DescriptorBudget, before: int) -> None:
    logger.log(
        logging.WARNING if budget.limit < LOW else logging.INFO,
        "Open files: %d may be open (the soft limit was %d): %d connections, %d files of logs, %d "
        "in reserve.%s",
        budget.limit,
        before,
        budget.connections,
        budget.files,
        budget.reserve,
        " That is little: raise the hard limit (ulimit -Hn, LimitNOFILE= of a systemd unit, "
        "--ulimit nofile= of a container) to 100000 or more."
        if budget.limit < LOW
        else "",
    )


_BLOCK_BYTES = 512
"""The unit of getrusage, whatever the block size of the file system is."""


def disk_bytes() -> tuple[int, int]:
    """Return (read, written): bytes that the kernel read from and wrote to disks for this process.

    The numbers of /proc/self/io's read_bytes and write_bytes, without child processes that ended.
    """
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_inblock * _BLOCK_BYTES, usage.ru_oublock * _BLOCK_BYTES
