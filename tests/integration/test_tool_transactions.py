"""`pykafkalog transactions` against a real broker: what goes on, what hangs, what ends it."""

from collections.abc import Iterator

import pytest

from protocol.api_keys import ApiKey
from protocol.records.builder import build_batch
from tests.support.command_in_process import BrokerTool
from tests.support.produce_requests import one_batch
from tests.support.raw_transactions import RawTransaction
from tests.support.topics import make_topic
from tests.support.wire_client import WireClient

VERIFICATION = "transaction.partition.verification.enable"


@pytest.fixture
def transactions(bootstrap: str) -> BrokerTool:
    return BrokerTool("transactions", bootstrap)


@pytest.fixture
def made(bootstrap: str, topic: str) -> str:
    make_topic(bootstrap, topic, partitions=2)
    return topic


@pytest.fixture
def begun(
    bootstrap: str, transactions: BrokerTool, made: str, group: str
) -> Iterator[RawTransaction]:
    """A transaction of the id `group` with one record in partition 0."""
    port = int(bootstrap.rpartition(":")[2])
    transaction = RawTransaction(group, version=2)
    transaction.begin(port)
    transaction.send(port, made, 0, b"v", at=1_700_000_000_000)
    yield transaction
    transactions.run("--fence", group)


@pytest.fixture
def unverified(bootstrap: str) -> Iterator[None]:
    """Brokers take transactional batches of partitions that no transaction has."""
    configs = BrokerTool("configs", bootstrap)
    configs("--cluster-default", "--add", f"{VERIFICATION}=false")
    yield
    configs("--cluster-default", "--delete", VERIFICATION)


def test_a_transaction_is_listed_described_and_explained(
    transactions: BrokerTool, made: str, begun: RawTransaction
) -> None:
    name = begun.transactional_id
    listed = {each["transactional_id"]: each for each in transactions.parsed()}
    assert (listed[name]["state"], listed[name]["coordinator"]) == ("Ongoing", 1)
    ongoing = transactions.parsed("--state", "Ongoing")
    assert name in [each["transactional_id"] for each in ongoing]
    long = transactions.parsed("--longer-than", "1h")
    assert name not in [each["transactional_id"] for each in long]
    (described,) = transactions.parsed("--describe", name)
    assert described["partitions"] == [{"topic": made, "partition": 0}]
    assert described["producer_id"] == begun.producer_id
    (producer,) = transactions.parsed("--producers", made)
    assert (producer["partition"], producer["start_offset"]) == (0, 0)
    why = transactions.parsed("--why", f"{made}:0")
    assert (why["last_stable_offset"], why["end"], why["held_back"]) == (0, 1, 1)
    assert why["cause"] == "open transaction"
    assert why["holder"]["transactional_id"] == name
    assert transactions.parsed("--why", f"{made}:1")["cause"] == "nothing"


def test_one_that_goes_on_is_fenced_and_not_aborted_in_a_single_partition(
    bootstrap: str, transactions: BrokerTool, made: str, begun: RawTransaction
) -> None:
    name = begun.transactional_id
    said = transactions.refusal("--abort", f"{made}:0", "--start-offset", "0")
    assert f"pykafkalog transactions --fence {name}" in said
    assert transactions.parsed("--find-hanging", made, "--longest", "1ms") == []
    transactions.parsed("--fence", name)
    assert transactions.parsed("--why", f"{made}:0")["cause"] == "nothing"
    with pytest.raises(AssertionError, match=r"INVALID_PRODUCER_EPOCH|PRODUCER_FENCED"):
        begun.end(int(bootstrap.rpartition(":")[2]), commit=True)


@pytest.mark.usefixtures("unverified")
def test_one_that_hangs_is_found_explained_and_aborted(
    bootstrap: str, transactions: BrokerTool, made: str
) -> None:
    batch = build_batch(
        [(1_700_000_000_000, None, b"v", [])],
        producer_id=9_000_001,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    request = one_batch(made, batch, partition=1, transactional_id="nobody")
    with WireClient(int(bootstrap.rpartition(":")[2])) as client:
        answer = client.call(ApiKey.PRODUCE, 9, request)
    assert answer.responses[0].partition_responses[0].error_code == 0
    (found,) = transactions.parsed("--find-hanging", made)
    assert (found["partition"], found["producer_id"], found["start_offset"]) == (1, 9_000_001, 0)
    why = transactions.parsed("--why", f"{made}:1")
    assert why["cause"] == "hanging transaction"
    assert f"pykafkalog transactions --abort {made}:1 --start-offset 0" in why["remedy"]
    said = transactions.refusal("--abort", f"{made}:1", "--start-offset", "5")
    assert "open ones begin at: 0" in said
    transactions.parsed("--abort", f"{made}:1", "--start-offset", "0")
    assert transactions.parsed("--why", f"{made}:1")["held_back"] == 0
    assert transactions.parsed("--find-hanging", made) == []


def test_unknown_ids_states_and_partitions_are_refused(transactions: BrokerTool, made: str) -> None:
    assert "there is no transactional id nobody" in transactions.refusal("--describe", "nobody")
    assert "there is no state Asleep" in transactions.refusal("--state", "Asleep")
    assert f"{made}: name one partition, as {made}:0" in transactions.refusal("--why", made)
    assert "go together" in transactions.refusal("--abort", f"{made}:0")
