"""The brokers of one cluster, each with a kept link, for questions that only it can answer."""

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from protocol.errors import ErrorCode
from protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from protocol.schema import Message
from tools.connection import client_settings
from tools.dialing import Address
from tools.errors import CommandError
from tools.link import Link, ResponseT, linker
from tools.log_ends import Place, place_name
from tools.reachability import DEFAULT_PORT, require_broker
from tools.wire.refusals import require_done

TRANSACTION: Final = 1
"""The type of coordinator in FindCoordinator; 0 means groups."""

STARTING: Final = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)
"""Errors of a coordinator that is starting: the request is repeated for five seconds."""
TRIES: Final = 25
PAUSE_S: Final = 0.2

Topics = Mapping[str, MetadataResponseTopic]
"""A part of the metadata, by name."""


class Brokers:
    """A cluster, found through the first bootstrap server that answers.

    Every method raises CommandError.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._link: Final = linker(settings)
        self._first: Final = _first_link(str(settings["bootstrap.servers"]), self._link)
        self._links: Final[dict[int, Link]] = {}
        self._describe()

    def any(self) -> Link:
        """Return the broker that was reached first, for questions that every broker can answer."""
        return self._first

    def broker(self, broker_id: int) -> Link:
        """Return the link to this broker."""
        if broker_id not in self._links:
            if broker_id not in self.addresses:
                known = ", ".join(map(str, sorted(self.addresses)))
                raise CommandError(f"there is no broker {broker_id}; known: {known}")
            self._links[broker_id] = self._link(self.addresses[broker_id])
        return self._links[broker_id]

    def controller(self) -> Link:
        """Return the link to the controller, as the cluster was described last."""
        if self.cluster.controller_id < 0:
            raise CommandError("the cluster has no controller: try again when one is elected")
        return self.broker(self.cluster.controller_id)

    def ask_controller(
        self,
        request: Message,
        response: type[ResponseT],
        codes: Callable[[ResponseT], Iterable[int]],
    ) -> ResponseT:
        """Return the controller's response to a request that other brokers refuse.

        `codes` returns the error codes of a response. After NOT_CONTROLLER the controller is looked
        up again, and asked once more.
        """
        answer = self.controller().call(request, response)
        if ErrorCode.NOT_CONTROLLER in codes(answer):
            self._describe()
            answer = self.controller().call(request, response)
        return answer

    def every(self) -> Iterator[tuple[int, Link]]:
        """Yield all brokers by ascending id."""
        for broker_id in sorted(self.addresses):
            yield broker_id, self.broker(broker_id)

    def metadata(self, topics: Iterable[str] | None = None) -> MetadataResponse:
        """Return the metadata of these or all topics; asking creates none."""
        named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=named, allow_auto_topic_creation=False)
        return self._first.call(request, MetadataResponse, least=4)

    def topics(self) -> Topics:
        """Return every topic's part of the metadata, by name."""
        return {topic.name or "": topic for topic in self.metadata().topics}

    def coordinator(self, transactional_id: str) -> int:
        """Return the id of the coordinator of a transactional id."""
        request = FindCoordinatorRequest(
            key=transactional_id, key_type=TRANSACTION, coordinator_keys=[transactional_id]
        )
        for _ in range(TRIES):
            answer = self._first.call(request, FindCoordinatorResponse, least=1)
            found = answer.coordinators[0] if answer.coordinators else answer
            if found.error_code not in STARTING:
                break
            time.sleep(PAUSE_S)
        require_done(found.error_code, what=f"the coordinator of {transactional_id}")
        return int(found.node_id)

    def close(self) -> None:
        """Close all links."""
        for link in (self._first, *self._links.values()):
            link.close()

    def _describe(self) -> None:
        self.cluster = self._first.call(DescribeClusterRequest(), DescribeClusterResponse)
        require_done(self.cluster.error_code, self.cluster.error_message)
        self.addresses: dict[int, Address] = {
            broker.broker_id: (broker.host, broker.port) for broker in self.cluster.brokers
        }


@contextmanager
def brokers(args: argparse.Namespace) -> Iterator[Brokers]:
    """Open the cluster that the arguments name. Raises CommandError if no broker answers."""
    settings = client_settings(args)
    require_broker(settings)
    opened = Brokers(settings)
    try:
        yield opened
    finally:
        opened.close()


def leaders_of(topics: Topics, places: Sequence[Place]) -> dict[int, list[Place]]:
    """Group partitions by their leaders. Raises CommandError for one without a leader."""
    leaders = {
        (name, partition.partition_index): partition.leader_id
        for name, topic in topics.items()
        for partition in topic.partitions
    }
    found: dict[int, list[Place]] = {}
    for place in places:
        leader = leaders.get(place)
        if leader is None:
            raise CommandError(f"there is no partition {place_name(place)}")
        if leader < 0:
            raise CommandError(
                f"{place_name(place)} has no leader: its broker is not running;"
                " `pykafkalog cluster --health` says more"
            )
        found.setdefault(leader, []).append(place)
    return found


def partitions_of(topics: Topics) -> dict[str, list[int]]:
    """Return every topic's partitions, in the form of `tools.log_ends.known_partitions`."""
    return {
        name: sorted(partition.partition_index for partition in topic.partitions)
        for name, topic in topics.items()
    }


def _first_link(servers: str, link: Callable[[Address], Link]) -> Link:
    reasons = []
    for server in servers.split(","):
        address = server.strip().rpartition("://")[2]
        host, colon, port = address.rpartition(":")
        if not colon:
            host, port = address, str(DEFAULT_PORT)
        try:
            return link((host.strip("[]"), int(port)))
        except CommandError as error:
            reasons.append(str(error))
    raise CommandError("; ".join(reasons))
