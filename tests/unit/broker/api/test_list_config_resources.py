from collections.abc import Sequence

import pytest

from broker.api.list_config_resources import ListConfigResourcesHandler
from broker.cluster.image import BrokerImage, MetadataImage
from broker.resource_configs.resources import ConfigResourceType as Kind
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.support.api_calls import call
from tests.support.group_handlers import topic_image

KEY = ApiKey.LIST_CONFIG_RESOURCES
BROKERS = {("1", Kind.BROKER)}
LOGGERS = {("1", Kind.BROKER_LOGGER)}
TOPICS = {("a", Kind.TOPIC), ("b", Kind.TOPIC)}


@pytest.fixture
def handler() -> ListConfigResourcesHandler:
    image = MetadataImage()
    image.set_broker(BrokerImage(broker_id=1, endpoints=()))
    image.set_topic(topic_image("a", bytes(16), 1))
    image.set_topic(topic_image("b", b"1" * 16, 1))
    return ListConfigResourcesHandler(image)


@pytest.mark.parametrize(
    ("types", "found"),
    [
        ([], BROKERS | LOGGERS | TOPICS),
        ([Kind.TOPIC], TOPICS),
        ([Kind.BROKER], BROKERS),
        ([Kind.BROKER_LOGGER], LOGGERS),
        ([Kind.TOPIC, Kind.BROKER, Kind.TOPIC], TOPICS | BROKERS),
        ([Kind.CLIENT_METRICS, Kind.GROUP], set()),
    ],
)
def test_the_types_asked_for(
    handler: ListConfigResourcesHandler, types: Sequence[int], found: set[tuple[str, int]]
) -> None:
    response = call(handler, KEY, 1, ListConfigResourcesRequest(resource_types=types))
    assert response.error_code == 0
    resources = response.config_resources
    assert {(one.resource_name, one.resource_type) for one in resources} == found
    assert len(resources) == len(found)


@pytest.mark.parametrize("wrong", [Kind.UNKNOWN, 3, 99, -1])
def test_a_type_that_has_no_configs(handler: ListConfigResourcesHandler, wrong: int) -> None:
    response = call(handler, KEY, 1, ListConfigResourcesRequest(resource_types=[2, wrong]))
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert not response.config_resources


def test_v0_asks_for_client_metrics_alone(handler: ListConfigResourcesHandler) -> None:
    response = call(handler, KEY, 0, ListConfigResourcesRequest())
    assert response.error_code == 0
    assert not response.config_resources
