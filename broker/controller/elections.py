"""The leader of a partition: Kafka's four kinds of election, each a function of the known state.

All choose the first replica, in the order of the assignment, that is alive and in sync:

* OFFLINE, for a partition without a leader. If no replica in sync lives, and unclean elections are
  allowed, the first live one leads. Records that only the others had are then lost, so the
  partition is marked as recovering until its leader says that it has recovered. The ISR keeps its
  live replicas.
* REASSIGNMENT: among the target replicas; the ISR stays.
* PREFERRED: only the first replica of the assignment; the ISR stays.
* CONTROLLED_SHUTDOWN: away from brokers that are shutting down, which leave the ISR. These count
  as alive, so that one of them may keep the lead if nobody else can; then there is no new leader.

Pure. Sources: `kafka.controller.Election`, `PartitionLeaderElectionAlgorithms` (3.9).
"""

from collections.abc import Collection
from enum import Enum
from typing import NamedTuple

from broker.cluster.leader_and_isr import LeaderAndIsr


class Strategy(Enum):
    """The kind of an election."""

    OFFLINE = "for a partition without a leader"
    OFFLINE_UNCLEAN = "the same, and unclean whatever the topic's configuration says"
    REASSIGNMENT = "to one of a reassignment's targets"
    PREFERRED = "to the preferred replica"
    CONTROLLED_SHUTDOWN = "away from brokers that are shutting down"


class Elected(NamedTuple):
    """The outcome of an election."""

    leadership: LeaderAndIsr | None
    """The new leadership, to be written; None: nobody can lead."""
    recipients: tuple[int, ...]
    """The brokers that get the new leadership."""
    unclean: bool = False


def leader_for_offline(
    replicas: tuple[int, ...],
    current: LeaderAndIsr,
    alive: Collection[int],
    *,
    unclean_allowed: bool,
) -> Elected:
    """Elect for a partition without a leader. `alive`: those of replicas and ISR that live."""
    recipients = tuple(broker for broker in replicas if broker in alive)
    for leader in recipients:
        if leader in current.isr:
            isr = tuple(broker for broker in current.isr if broker in alive)
            return Elected(current.led_by(leader, isr), recipients)
    if unclean_allowed and recipients:
        leader = recipients[0]
        elected = current.led_by(leader, (leader,))._replace(recovering=True)
        return Elected(elected, recipients, unclean=True)
    return Elected(None, recipients)


def leader_for_reassignment(
    target: tuple[int, ...], current: LeaderAndIsr, alive: Collection[int]
) -> Elected:
    """Elect one of the target replicas."""
    for leader in target:
        if leader in alive and leader in current.isr:
            return Elected(current.led_by(leader), target)
    return Elected(None, target)


def preferred_leader(
    replicas: tuple[int, ...], current: LeaderAndIsr, alive: Collection[int]
) -> Elected:
    """Elect the preferred replica."""
    if replicas and replicas[0] in alive and replicas[0] in current.isr:
        return Elected(current.led_by(replicas[0]), replicas)
    return Elected(None, replicas)


def leader_for_controlled_shutdown(
    replicas: tuple[int, ...],
    current: LeaderAndIsr,
    alive: Collection[int],
    shutting_down: Collection[int],
) -> Elected:
    """Elect a broker that stays. `alive` has the brokers that are shutting down too."""
    recipients = tuple(broker for broker in replicas if broker in alive)
    for leader in recipients:
        if leader in current.isr and leader not in shutting_down:
            isr = tuple(broker for broker in current.isr if broker not in shutting_down)
            return Elected(current.led_by(leader, isr), recipients)
    return Elected(None, recipients)
