"""What the operating system lets this process have: as many descriptors as it may, and told.

`ulimit -n` is 1,024 in most shells, for the sake of old programs; what a process may have is the
hard limit, and a broker has a connection for each client and a file for each partition.
"""

import logging
import resource

from broker.world.descriptors import LOW, DescriptorBudget

logger = logging.getLogger(__name__)


def claim_descriptors() -> DescriptorBudget:
    """Raise the soft limit of open files to the hard one, and share out what there is."""
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = before
    if before != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:  # above what this system counts to
            logger.warning("The limit of open files stays at %d: %s", before, error)
        else:
            limit = hard
    budget = DescriptorBudget.of(UNCOUNTED if limit == resource.RLIM_INFINITY else limit)
    _tell(budget, before)
    return budget


UNCOUNTED = 1 << 30
"""No limit."""


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
