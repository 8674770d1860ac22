from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from broker import api
from broker.membership.after_first_news import AfterFirstNews
from broker.membership.only_controller import OnlyController
from broker.registry import ADVERTISED, APIS, advertised, build_handlers, cluster_apis
from broker.services import Services
from protocol.api_keys import ApiKey
from protocol.messages.registry import SPECS

FILES = {path.stem for path in Path(api.__file__).parent.glob("*.py")} - {"__init__"}


def test_every_file_declares_the_api_of_its_name_and_all_are_served() -> None:
    declared = {name: import_module(f"broker.api.{name}").API for name in FILES}
    served = cluster_apis() | APIS
    assert declared == {SPECS[key].module: facts for key, facts in served.items()}
    assert all(facts.key is key for key, facts in served.items())
    assert all(key.name.lower() == SPECS[key].module for key in served)


def test_what_brokers_ask_each_other_is_served_in_a_cluster_only() -> None:
    assert cluster_apis().keys() >= APIS.keys()
    assert cluster_apis().keys() - APIS.keys() == {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
    }
    assert APIS.keys() == ADVERTISED.keys()


def test_a_member_serves_both_and_leaves_to_the_controller_what_is_its() -> None:
    fields: dict[str, Any] = {name: MagicMock() for name in Services.__dataclass_fields__}
    handlers = build_handlers(Services(**fields | {"allowed": None}))
    assert set(handlers) == set(advertised(cluster_apis().values()))
    of_the_controller = {
        key for key, served in handlers.items() if type(served.handler) is OnlyController
    }
    assert of_the_controller == {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
    }
    waiting = {key for key, served in handlers.items() if type(served.handler) is AfterFirstNews}
    assert waiting == {
        ApiKey.METADATA,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    }


def test_in_a_cluster_there_are_no_transactions_of_version_2() -> None:
    """Kafka 3.9 reads its transactions: it serves these APIs up to the same versions."""
    served, alone = advertised(cluster_apis().values()), ADVERTISED
    differ = {key: served[key] for key in alone if served[key] != alone[key]}
    assert differ == {
        ApiKey.PRODUCE: (0, 11),
        ApiKey.TXN_OFFSET_COMMIT: (0, 4),
        ApiKey.END_TXN: (0, 4),
    }


def test_handlers_are_made_for_exactly_what_is_advertised() -> None:
    fields: dict[str, Any] = {name: MagicMock() for name in Services.__dataclass_fields__}
    handlers = build_handlers(Services(**fields | {"allowed": None, "cluster": None}))
    assert set(handlers) == set(ADVERTISED)
    for key, (facts, handler, _) in handlers.items():
        assert facts is APIS[key]
        name = "".join(part.capitalize() for part in SPECS[key].module.split("_"))
        assert type(handler).__name__ == f"{name}Handler"
        assert callable(handler)
        assert callable(handler.error_response)


def test_the_apis_of_the_issue_are_served_in_their_versions() -> None:
    wanted = {
        ApiKey.PRODUCE: (0, 13),
        ApiKey.FETCH: (0, 18),
        ApiKey.METADATA: (0, 13),
        ApiKey.API_VERSIONS: (0, 5),
        ApiKey.CREATE_TOPICS: (0, 7),
        ApiKey.DELETE_TOPICS: (0, 6),
        ApiKey.CREATE_PARTITIONS: (0, 3),
        ApiKey.DESCRIBE_CONFIGS: (0, 4),
        ApiKey.ALTER_CONFIGS: (0, 2),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
        ApiKey.DESCRIBE_CLUSTER: (0, 2),
        ApiKey.DESCRIBE_LOG_DIRS: (0, 5),
        ApiKey.INIT_PRODUCER_ID: (0, 5),
        ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5),
        ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
        ApiKey.END_TXN: (0, 5),
        ApiKey.WRITE_TXN_MARKERS: (0, 2),
        ApiKey.TXN_OFFSET_COMMIT: (0, 6),
        ApiKey.DELETE_GROUPS: (0, 3),
        ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
        ApiKey.LIST_TRANSACTIONS: (0, 2),
        ApiKey.DESCRIBE_PRODUCERS: (0, 0),
        ApiKey.ELECT_LEADERS: (0, 2),
        ApiKey.LIST_CONFIG_RESOURCES: (0, 1),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, 0),
    }
    assert wanted.items() <= ADVERTISED.items()
