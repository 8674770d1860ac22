"""Rules, passwords and quotas of a KRaft metadata log become nodes of Kafka's ZooKeeper tree."""

import pytest

from broker.cluster.kraft_access import KraftAccess
from protocol.acls.rules import Rule
from protocol.acls.vocabulary import Operation, PatternType, PermissionType, ResourceType
from protocol.messages.metadata_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    QuotaEntity,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)

READ_ORDERS = Rule(
    ResourceType.TOPIC,
    "orders",
    PatternType.PREFIXED,
    "User:alice",
    "10.0.0.0/8",
    Operation.READ,
    PermissionType.DENY,
)


def entry(rule_id: bytes, rule: Rule = READ_ORDERS) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(id=rule_id, **rule._asdict())


def quota(
    key: str, value: float, *, remove: bool = False, **entity: str | None
) -> ClientQuotaRecord:
    return ClientQuotaRecord(
        entity=[
            QuotaEntity(entity_type=kind.replace("_", "-"), entity_name=name)
            for kind, name in entity.items()
        ],
        key=key,
        value=value,
        remove=remove,
    )


def password(name: str, mechanism: int) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism,
        salt=b"salt",
        stored_key=b"\xff\xfe",
        server_key=b"key",
        iterations=4096,
    )


def applied(*records: object) -> KraftAccess:
    access = KraftAccess()
    for record in records:
        access.apply(record)  # type: ignore[arg-type]  # any record is applied
    return access


def test_rules_are_told_apart_by_their_ids() -> None:
    access = applied(
        entry(b"1" * 16), entry(b"2" * 16), RemoveAccessControlEntryRecord(id=b"1" * 16)
    )
    assert access.rules == {b"2" * 16: READ_ORDERS}
    assert applied(entry(b"1" * 16), RemoveAccessControlEntryRecord(id=b"1" * 16)) == KraftAccess()


@pytest.mark.parametrize("field", ["resource_type", "pattern_type", "operation", "permission_type"])
def test_a_rule_with_a_word_of_the_future_is_left_out_and_told(field: str) -> None:
    record = entry(b"1" * 16)
    setattr(record, field, 100)
    access = applied(record)
    assert not access.rules
    (told,) = access.unknown.values()
    assert "orders" in told
    assert "User:alice" in told
    access.apply(RemoveAccessControlEntryRecord(id=b"1" * 16))
    assert access == KraftAccess()


def test_passwords_stand_at_their_users_as_in_zookeeper() -> None:
    access = applied(password("alice", 1), password("alice", 2), password("a/b*", 2))
    held = "salt=c2FsdA==,stored_key=//4=,server_key=a2V5,iterations=4096"
    assert access.credentials == {
        "/config/users/alice": {"SCRAM-SHA-256": held, "SCRAM-SHA-512": held},
        "/config/users/a%2Fb%2A": {"SCRAM-SHA-512": held},
    }
    access.apply(RemoveUserScramCredentialRecord(name="alice", mechanism=1))
    assert set(access.credentials["/config/users/alice"]) == {"SCRAM-SHA-512"}
    access.apply(RemoveUserScramCredentialRecord(name="alice", mechanism=2))
    assert set(access.credentials) == {"/config/users/a%2Fb%2A"}


def test_a_password_for_a_mechanism_of_the_future_is_left_out_and_told() -> None:
    access = applied(password("alice", 9))
    assert not access.credentials
    assert "alice" in "".join(access.unknown.values())
    access.apply(RemoveUserScramCredentialRecord(name="alice", mechanism=9))
    assert access == KraftAccess()


def test_quotas_stand_at_their_entities() -> None:
    access = applied(
        quota("producer_byte_rate", 1024.0, user="alice"),
        quota("request_percentage", 12.5, user="alice"),
        quota("consumer_byte_rate", 7.0, user=None, client_id="c d"),
        quota("consumer_byte_rate", 8.0, client_id=None),
        quota("connection_creation_rate", 3.0, ip="10.0.0.1"),
        quota("connection_creation_rate", 4.0, ip=None),
    )
    assert access.quotas == {
        "/config/users/alice": {"producer_byte_rate": "1024", "request_percentage": "12.5"},
        "/config/users/<default>/clients/c%20d": {"consumer_byte_rate": "7"},
        "/config/clients/<default>": {"consumer_byte_rate": "8"},
        "/config/ips/10.0.0.1": {"connection_creation_rate": "3"},
        "/config/ips/<default>": {"connection_creation_rate": "4"},
    }
    access.apply(quota("producer_byte_rate", 0.0, user="alice", remove=True))
    assert access.quotas["/config/users/alice"] == {"request_percentage": "12.5"}
    access.apply(quota("connection_creation_rate", 0.0, ip=None, remove=True))
    assert "/config/ips/<default>" not in access.quotas


@pytest.mark.parametrize(
    "record",
    [
        quota("producer_byte_rate", 1.0, group="g"),
        quota("producer_byte_rate", 1.0, ip="10.0.0.1", user="alice"),
        quota("connection_creation_rate", 1.0, ip="../a"),
        quota("producer_byte_rate", 1.0, user=""),
        quota("producer_byte_rate", 1.0, ip=None),
        quota("connection_creation_rate", 1.0, user="alice"),
        quota("producer_byte_rate", -1.0, user="alice"),
        quota("something_rate", 1.0, user="alice"),
        quota("producer_byte_rate", 1.0),
    ],
)
def test_a_quota_that_nothing_can_hold_is_left_out_and_told(record: ClientQuotaRecord) -> None:
    access = applied(record)
    assert not access.quotas
    assert record.key in "".join(access.unknown.values())
    record.remove = True
    access.apply(record)
    assert access == KraftAccess()


def test_a_later_value_takes_the_place_of_one_that_nothing_can_hold() -> None:
    wrong = quota("producer_byte_rate", 0.5, user="alice")
    access = applied(wrong, quota("producer_byte_rate", 2.0, user="alice"))
    assert access.quotas == {"/config/users/alice": {"producer_byte_rate": "2"}}
    assert not access.unknown
