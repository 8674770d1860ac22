"""The controller of a cluster: the work under way, how long its events and requests take.

The numbers of a broker that stands alone (topics, partitions, leaders) are in `families`. This
module is imported in a cluster only.
"""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import GaugeMetricFamily

from broker.controller.events import ControllerActivity
from broker.controller.statistics import ClusterControllerStatistics
from broker.metrics.samples import Family, labelled, summary

_CONTROLLER: Final = "kafka_controller_kafkacontroller_"
_STATS: Final = "kafka_controller_controllerstats_"
_EVENTS: Final = "kafka_controller_controllereventmanager_"
_CHANNELS: Final = "kafka_controller_controllerchannelmanager_"

_OTHER_NAMES: Final = {
    ControllerActivity.BROKER_CHANGE: "leaderelection",
    ControllerActivity.ALTER_PARTITION_REASSIGNMENT: "partitionreassignment",
}
"""The names of Kafka's metrics that differ from the names of their states."""


def controller_families(found: ClusterControllerStatistics) -> Iterator[Family]:
    """Return the families of one broker's part as controller."""
    for name, text, value in (
        (
            "controllerstate",
            "The work of the controller: "
            + ", ".join(f"{one.value} {one.name.lower()}" for one in ControllerActivity),
            found.events.activity.value,
        ),
        (
            "replicastodeletecount",
            "Replicas of topics to be deleted that are not deleted yet",
            found.replicas_to_delete_count,
        ),
        (
            "topicsineligibletodeletecount",
            "Topics to be deleted that cannot be now: a replica is offline, or being moved",
            found.topics_ineligible_to_delete_count,
        ),
        (
            "replicasineligibletodeletecount",
            "Replicas of topics to be deleted that could not be deleted",
            found.replicas_ineligible_to_delete_count,
        ),
        ("activebrokercount", "Registered brokers", found.active_broker_count),
        ("fencedbrokercount", "Always 0: ZooKeeper knows no fenced brokers", 0),
    ):
        yield GaugeMetricFamily(_CONTROLLER + name, text, value=value)
    for activity, times in found.events.times.items():
        name = _OTHER_NAMES.get(activity, activity.name.lower().replace("_", ""))
        text = f"Time that the controller took for events of the kind {activity.name.lower()}, ms"
        yield summary(f"{_STATS}{name}rateandtimems", text, {"": times}, None)
    yield GaugeMetricFamily(
        _EVENTS + "eventqueuesize", "Events that wait for the controller", value=found.events.queued
    )
    yield summary(
        _EVENTS + "eventqueuetimems",
        "Time that events waited for the controller, ms",
        {"": found.events.queue_times},
        None,
    )
    yield GaugeMetricFamily(
        _CHANNELS + "totalqueuesize",
        "Requests that wait for brokers",
        value=sum(one.queued for one in found.channels.values()),
    )
    yield labelled(
        GaugeMetricFamily,
        _CHANNELS + "queuesize",
        "Requests that wait for one broker",
        "broker_id",
        {str(broker_id): one.queued for broker_id, one in found.channels.items()},
    )
    yield summary(
        _CHANNELS + "requestrateandqueuetimems",
        "Time that requests waited for one broker, ms",
        {str(broker_id): one.queue_times for broker_id, one in found.channels.items()},
        "broker_id",
    )
