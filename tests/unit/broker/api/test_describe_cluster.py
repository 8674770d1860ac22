import pytest

from broker.api.describe_cluster import API, DescribeClusterHandler
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.describe_cluster import DescribeClusterRequest
from tests.support.api_calls import acall
from tests.support.cluster_fakes import Cluster, start_cluster

KEY = ApiKey.DESCRIBE_CLUSTER


@pytest.mark.parametrize("version", range(API.versions[1] + 1))
async def test_the_cluster_in_every_version(version: int) -> None:
    cluster = await start_cluster(broker_id=4, broker_rack="r")
    handler = DescribeClusterHandler(cluster.image)
    response = await acall(handler, KEY, version, DescribeClusterRequest())
    assert response.error_code == ErrorCode.NONE
    assert (response.cluster_id, response.controller_id) == ("c" * 22, 4)
    (broker,) = response.brokers
    assert (broker.broker_id, broker.host, broker.port, broker.rack) == (
        4,
        "127.0.0.1",
        9092,
        "r",
    )
    assert response.cluster_authorized_operations == -(1 << 31)
    asked = DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = await acall(handler, KEY, version, asked)
    assert response.cluster_authorized_operations == 0x1FA0


async def test_this_is_no_controller_endpoint(cluster: Cluster) -> None:
    handler = DescribeClusterHandler(cluster.image)
    for kind, code in (
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ):
        response = await acall(handler, KEY, 1, DescribeClusterRequest(endpoint_type=kind))
        assert response.error_code == code
        assert response.error_message
