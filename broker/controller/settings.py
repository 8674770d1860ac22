"""The part of the configuration that the controller uses."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """Settings of one broker's controller; changed as a whole while it runs."""

    broker_id: int
    inter_broker_listener: str
    """The name of the listener on which brokers talk (`inter.broker.listener.name`)."""
    auto_leader_rebalance_enable: bool = True
    """Whether leaders come back to preferred replicas on their own."""
    leader_imbalance_check_interval_s: float = 300
    leader_imbalance_per_broker_percentage: int = 10
    """The share of a broker's partitions that others may lead before they are given back."""
    request_timeout_s: float = 30.0
    """How long a broker may take for a request before the connection is made anew."""
    unclean_leader_election_enable: bool = False
    """For topics that say nothing else."""
    delete_topic_enable: bool = True
