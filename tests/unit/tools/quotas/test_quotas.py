"""The arguments of `pykafkalog quotas`, and the throttled clients in a broker's metrics."""

import json
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from protocol.messages.alter_client_quotas import QuotaAlterationResult
from protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribedQuotas,
    QuotaEntityPart,
    QuotaValue,
)
from tests.support.quota_calls import description, entity
from tests.support.serving import serving_http
from tools.__main__ import build_parser
from tools.errors import CommandError
from tools.quotas import command, entities, listing
from tools.quotas.throttled import Taker, _reachable, takers

METRICS = """\
# HELP kafka_server_quota_byte_rate Bytes per second, by client
# TYPE kafka_server_quota_byte_rate gauge
kafka_server_quota_byte_rate{resource="Produce",user="",clientId="a \\"b\\""} 2048.5
kafka_server_quota_byte_rate{resource="Fetch",user="na%2Fme",clientId=""} 7
kafka_server_quota_request_time{resource="Request",user="",clientId="c"} 12.25
kafka_server_quota_bound{resource="Produce",user="",clientId="a \\"b\\""} 1024
kafka_server_quota_bound{resource="Fetch",user="na%2Fme",clientId=""} 8.0
kafka_server_quota_bound{resource="Request",user="",clientId="c"} 50.0
kafka_server_quota_throttle_time{resource="Request",user="",clientId="c"} nan
kafka_server_quota_throttled_ms{resource="Produce",user="",clientId="a \\"b\\""} 900
kafka_server_quota_throttled_ms{resource="Fetch",user="na%2Fme",clientId=""} 0
kafka_server_quota_throttled_ms{resource="Request",user="",clientId="c"} 1000
kafka_server_quota_queue_size{resource="Produce"} 3.0
kafka_server_quota_exempt_request_time 0.0
kafka_log_log_size{topic="t",partition="0"} 5
"""


def answer_metrics(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200 if request.path == "/metrics" else 404)
    request.end_headers()
    request.wfile.write(METRICS.encode())


def run(*words: str) -> None:
    command.run(build_parser().parse_args(["quotas", *words]))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--add", "producer_byte_rate=1"), "say whose"),
        (("--client", "c", "--add", "producer_byte_rate=much"), "not a number"),
        (("--client", "c", "--dry-run"), "--dry-run goes with"),
        (("--client", "c", "--throttled"), "--throttled goes with"),
        (("--throttled", "--delete", "producer_byte_rate"), "--throttled goes with"),
        (("--all",), "go with --throttled"),
        (("--metrics", "a:1"), "go with --throttled"),
        (("--throttled", "--metrics", "127.0.0.1:1"), "Connection refused"),
    ],
)
def test_what_cannot_be_done_is_said_before_a_broker_is_asked(
    words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(CommandError, match=said):
        run(*words)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ((), {}),
        (("--user", "u", "--client-defaults"), {"user": "u", "client-id": None}),
        (("--client", ""), {"client-id": ""}),
        (("--ip-defaults",), {"ip": None}),
    ],
)
def test_arguments_name_an_entity(words: tuple[str, ...], meant: dict[str, Any]) -> None:
    assert command._entity(build_parser().parse_args(["quotas", *words])) == meant


def test_either_a_name_or_the_default() -> None:
    with pytest.raises(SystemExit):
        build_parser().parse_args(["quotas", "--user", "u", "--user-defaults"])


class Broker:
    """Has nothing for the first `late` questions, and answers the later ones."""

    def __init__(self, late: int = 0) -> None:
        self.late = late
        self.asked: list[Any] = []

    def any(self) -> Any:
        return self

    def call(self, request: Any, response: Any) -> Any:
        self.asked.append(request)
        quotas = DescribedQuotas(
            entity=[QuotaEntityPart(entity_type="user", entity_name=None)],
            values=[QuotaValue(key="request_percentage", value=2.5)],
        )
        return response(entries=[quotas] if self.late < len(self.asked) else [])


def test_the_filter_that_is_asked_for() -> None:
    broker: Any = Broker()
    found = entities.describe(broker, {"user": "u", "client-id": None}, strict=True)
    assert found == [entities.Quotas({"user": None}, {"request_percentage": 2.5})]
    assert broker.asked == [description(("user", 0, "u"), ("client-id", 1, None), strict=True)]


def test_a_change_is_shown_when_the_broker_shows_it() -> None:
    broker: Any = Broker(late=2)
    found = entities.describe_settled(broker, {"user": None}, {"request_percentage": 2.5}, [])
    assert found[0].values == {"request_percentage": 2.5}
    assert len(broker.asked) == 3


def test_a_change_as_it_is_sent() -> None:
    class Altering(Broker):
        def call(self, request: Any, response: Any) -> Any:
            if isinstance(request, DescribeClientQuotasRequest):
                return super().call(request, response)
            self.asked.append(request)
            return response(
                entries=[QuotaAlterationResult(error_code=42, error_message="too much")]
            )

    broker: Any = Altering()
    with pytest.raises(CommandError, match="too much"):
        entities.alter(
            broker, {"user": None}, {"a": 1.0}, ["request_percentage"], validate_only=True
        )
    described, request = broker.asked
    assert described == description(("user", 1, None), strict=True)
    assert request.validate_only is True
    [entry] = request.entries
    assert entry.entity == entity(user=None)
    assert [(op.key, op.value, op.remove) for op in entry.ops] == [
        ("a", 1.0, False),
        ("request_percentage", 0.0, True),
    ]


def test_a_quota_that_is_not_set_cannot_be_deleted() -> None:
    broker: Any = Broker()
    with pytest.raises(CommandError, match="no quota x to delete: request_percentage is set"):
        entities.alter(broker, {"user": None}, {}, ["x"], validate_only=False)
    assert len(broker.asked) == 1, "nothing was changed"


def test_the_metrics_show_the_throttled_clients(capsys: pytest.CaptureFixture[str]) -> None:
    with serving_http(answer_metrics) as url:
        metrics = url.removeprefix("http://")
        found = list(takers("7", metrics))
        run("--throttled", "--metrics", metrics, "--json")
        told = json.loads(capsys.readouterr().out)
        run("--throttled", "--all", "--metrics", metrics)
        lines = capsys.readouterr().out.splitlines()
    assert found[1] == Taker(
        broker="7",
        key="consumer_byte_rate",
        user="na/me",
        client_id="",
        rate=7.0,
        bound=8.0,
        throttled_ms=0,
    )
    assert [each.client_id for each in found] == ['a "b"', "", "c"]
    assert [(each["quota"], each["throttled_ms"]) for each in told] == [
        ("producer_byte_rate", 900),
        ("request_percentage", 1000),
    ]
    assert [line.split()[-1] for line in lines] == ["ms", "1000", "900", "0"]
    assert "12.2 " in lines[1]


@pytest.mark.parametrize(
    ("listener", "host", "where"),
    [
        (":9404", "broker-1", "broker-1:9404"),
        ("0.0.0.0:9404", "::5", "[::5]:9404"),
        ("[::]:9404", "broker-1", "broker-1:9404"),
        ("127.0.0.1:9404", "localhost", "127.0.0.1:9404"),
        ("192.0.2.7:9404", "broker-1", "192.0.2.7:9404"),
    ],
)
def test_the_address_of_the_metrics(listener: str, host: str, where: str) -> None:
    assert _reachable(1, listener, host) == where


@pytest.mark.parametrize(
    ("listener", "said"), [("", "is not set"), ("127.0.0.1:9404", "to its own machine only")]
)
def test_listeners_without_metrics(listener: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        _reachable(1, listener, "broker-1")


def test_the_table_of_quotas(capsys: pytest.CaptureFixture[str]) -> None:
    listing.show_quotas([], as_json=False)
    assert capsys.readouterr().out == "No quota is set here.\n"
    found = [
        entities.Quotas({"user": "u", "client-id": None}, {"request_percentage": 12.5}),
        entities.Quotas({"ip": "192.0.2.7"}, {"connection_creation_rate": 3.0}),
    ]
    listing.show_quotas(found, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == [
        *("u", "<default>", "-", "request_percentage"),
        *("12.5", "%", "of", "a", "thread"),
    ]
    assert lines[2].split()[-2:] == ["3", "connections/s"]
    listing.show_takers([], as_json=False, everyone=False)
    assert capsys.readouterr().out == "Nobody is throttled.\n"
