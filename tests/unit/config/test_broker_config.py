import typing
from pathlib import Path

import pytest

from config.broker_config import BrokerConfig, load_for_adoption
from config.broker_keys import BROKER_KEYS
from config.definition import ConfigError, ConfigType
from config.listener import Listener
from config.startup_checks import RACK_AWARE, REPLICA_SELECTORS


def parse(**props: str) -> BrokerConfig:
    return BrokerConfig.parse({key.replace("__", "."): value for key, value in props.items()})


def refused(**props: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(**props)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_the_defaults_are_kafkas() -> None:
    config = BrokerConfig.parse({})
    assert config.broker_id == -1
    assert config.num_io_threads == 8
    assert config.num_recovery_threads_per_data_dir == 2
    assert config.log_message_timestamp_after_max_ms == 3600000
    assert config.log_retention_ms == 604800000
    assert config.log_roll_ms == 604800000
    assert config.log_flush_interval_ms == (1 << 63) - 1
    assert config.listeners == (
        Listener(name="PLAINTEXT", host="", port=9092, protocol="PLAINTEXT"),
    )
    assert config.advertised_listeners == ()
    assert config.log_dirs == ("/tmp/kafka-logs",)


def test_a_config_does_not_change() -> None:
    config = BrokerConfig.parse({})
    with pytest.raises(AttributeError):
        config.broker_id = 5  # type: ignore[misc]
    other = config.with_broker_id(7)
    assert (other.broker_id, other.node_id, other.values["broker.id"]) == (7, 7, 7)
    assert config.broker_id == -1


def test_declared_attributes_are_the_effective_keys_with_their_types() -> None:
    """`BrokerConfig` declares the keys that the tables call effective, and no others."""
    import ast
    import inspect

    from config import broker_config

    tree = ast.parse(inspect.getsource(broker_config))
    declared = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign):
                    declared[ast.unparse(statement.target)] = ast.unparse(statement.annotation)
    effective = {key.attribute: key for key in BROKER_KEYS if key.effective}
    assert set(declared) == set(effective)
    special = {"listeners", "advertised_listeners", "super_users"}
    resolved = {"log_retention_ms", "log_roll_ms", "log_roll_jitter_ms", "log_flush_interval_ms"}
    types = {
        ConfigType.INT: "int",
        ConfigType.LONG: "int",
        ConfigType.SHORT: "int",
        ConfigType.BOOLEAN: "bool",
        ConfigType.DOUBLE: "float",
        ConfigType.STRING: "str",
        ConfigType.LIST: "tuple[str, ...]",
        ConfigType.CLASS: "str",
        ConfigType.PASSWORD: "Password",
    }
    for name, key in effective.items():
        if name in special:
            continue
        expected = types[key.type]
        if key.default is None and name not in resolved and name != "log_dirs":
            expected += " | None"
        assert declared[name] == expected, name
    assert typing.get_type_hints(BrokerConfig)


def test_s_ret_9_milliseconds_go_before_minutes_before_hours() -> None:
    assert parse(log__retention__hours="1").log_retention_ms == 3600000
    assert parse(log__retention__minutes="2", log__retention__hours="1").log_retention_ms == 120000
    assert parse(log__retention__ms="3", log__retention__minutes="2").log_retention_ms == 3
    assert parse(log__retention__ms="-1").log_retention_ms == -1
    assert parse(log__retention__hours="-1").log_retention_ms == -1
    assert parse(log__roll__hours="2").log_roll_ms == 7200000
    assert parse(log__roll__ms="5", log__roll__hours="2").log_roll_ms == 5
    assert parse(log__roll__jitter__hours="1").log_roll_jitter_ms == 3600000
    assert parse(log__flush__scheduler__interval__ms="9").log_flush_interval_ms == 9
    both = parse(log__flush__interval__ms="4", log__flush__scheduler__interval__ms="9")
    assert both.log_flush_interval_ms == 4


def test_the_old_timestamp_limit_stands_for_both_new_ones() -> None:
    config = parse(
        log__message__timestamp__difference__max__ms="5",
        log__message__timestamp__after__max__ms="7",
    )
    assert config.log_message_timestamp_before_max_ms == 5
    assert config.log_message_timestamp_after_max_ms == 7


def test_log_dirs_goes_before_log_dir() -> None:
    assert parse(log__dir="/a").log_dirs == ("/a",)
    assert parse(log__dir="/a", log__dirs="/b/, /c").log_dirs == ("/b", "/c")
    assert parse(log__dirs="/").log_dirs == ("/",)
    assert parse(log__dirs="/a, /b,/a").log_dirs == ("/a", "/b")
    assert "values must not be empty" in refused(log__dirs="/a,")
    assert "At least one log directory" in refused(log__dirs="")
    assert "duplicates" in refused(log__dirs="/a,/a/")


def test_s_start_6_broker_id_and_node_id() -> None:
    assert parse(node__id="5").broker_id == 5
    assert parse(broker__id="5").node_id == 5
    assert parse(broker__id="5", node__id="5").broker_id == 5
    assert refused(broker__id="5", node__id="6") == (
        "You must set `node.id` to the same value as `broker.id`."
    )
    message = (
        "broker.id must be greater than or equal to -1 and not greater than reserved.broker.max.id"
    )
    assert refused(broker__id="1001") == message
    assert refused(broker__id="-2") == message
    assert parse(broker__id="1001", reserved__broker__max__id="2000").broker_id == 1001
    assert parse(broker__id="5000", broker__id__generation__enable="false").broker_id == 5000
    assert refused(broker__id__generation__enable="false") == (
        "broker.id must be greater than or equal to 0"
    )


def test_s_cfg_1_unknown_keys_are_kept_for_a_warning() -> None:
    config = BrokerConfig.parse(
        {
            "my.plugin.key": "1",
            "listener.name.plaintext.max.connections": "5",
            "listener.name.sasl.plain.sasl.jaas.config": "x",
            "listener.name.x": "1",
            "num.partitions": "3",
        }
    )
    assert config.unknown == ("my.plugin.key", "listener.name.x")
    assert config.originals["my.plugin.key"] == "1"


def test_s_cfg_6_keys_for_one_listener() -> None:
    config = BrokerConfig.parse({"listener.name.plaintext.max.connections": "5"})
    assert config.for_listener("PLAINTEXT", "max.connections") == 5
    assert config.for_listener("OTHER", "max.connections") is None


@pytest.mark.parametrize(
    ("props", "message"),
    [
        ({"log.roll.ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
        ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms must be greater than or equal to 0"),
        (
            {"log.retention.ms": "0"},
            "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        ),
        (
            {"log.cleaner.dedupe.buffer.size": "1048576"},
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        ),
        (
            {"replica.socket.timeout.ms": "499"},
            "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to "
            "prevent unnecessary socket timeouts",
        ),
        (
            {"replica.lag.time.max.ms": "499"},
            "replica.fetch.wait.max.ms should always be less than or equal to "
            "replica.lag.time.max.ms to prevent frequent changes in ISR",
        ),
        (
            {"offsets.commit.required.acks": "4"},
            "offsets.commit.required.acks must be greater or equal -1 and less or equal to "
            "offsets.topic.replication.factor",
        ),
        (
            {"queued.max.request.bytes": "1"},
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
        ),
        (
            {"max.connections.per.ip": "0"},
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides "
            "property is set.",
        ),
        (
            {"connections.max.idle.ms": "100"},
            "connection.failed.authentication.delay.ms=100 should always be less than "
            "connections.max.idle.ms=100 to prevent failed authentication responses from timing "
            "out",
        ),
        (
            {"compression.type": "brotli"},
            "Invalid value brotli for configuration compression.type: String must be one of: "
            "uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        (
            {"num.io.threads": "0"},
            "Invalid value 0 for configuration num.io.threads: Value must be at least 1",
        ),
        (
            {"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"},
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable "
            "IP address.",
        ),
        (
            {
                "listeners": "PLAINTEXT://:9092",
                "advertised.listeners": "PLAINTEXT://h:1,OTHER://h:2",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
            },
            "advertised.listeners listener names must be equal to or a subset of the ones defined "
            "in listeners. Found PLAINTEXT,OTHER. The valid options based on the current "
            "configuration are PLAINTEXT",
        ),
        (
            {
                "listeners": "A://:1",
                "listener.security.protocol.map": "A:PLAINTEXT",
            },
            "inter.broker.listener.name must be a listener name defined in advertised.listeners. "
            "The valid options based on currently configured listeners are A, and not PLAINTEXT",
        ),
        (
            {"inter.broker.listener.name": "A", "security.inter.broker.protocol": "PLAINTEXT"},
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be "
            "set.",
        ),
        (
            {"control.plane.listener.name": "PLAINTEXT"},
            "control.plane.listener.name, when defined, should have a different value from the "
            "inter broker listener name. Currently they both have the value PLAINTEXT",
        ),
        (
            {"log.cleaner.min.compaction.lag.ms": "5", "log.cleaner.max.compaction.lag.ms": "4"},
            "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (4)",
        ),
    ],
)
def test_start_up_checks_are_worded_as_kafkas(props: dict[str, str], message: str) -> None:
    assert refused(**props) == message


def test_what_asks_for_protection_that_is_not_there_stops_the_start() -> None:
    assert "Kerberos" in refused(
        listeners="SASL_SSL://:9093", security__inter__broker__protocol="SASL_SSL"
    )
    assert "no Java classes" in refused(authorizer__class__name="kafka.security.Acl")
    assert "tiered" in refused(remote__log__storage__system__enable="true")


BUILDER = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
ENGINES = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"


@pytest.mark.parametrize(
    ("key", "value", "instead"),
    [
        ("principal.builder.class", "com.corp.Builder", "have other principals than access rules"),
        ("principal.builder.class", BUILDER + "2", "have other principals than access rules"),
        ("principal.builder.class", ENGINES, "have other principals than access rules"),
        ("listener.name.plaintext.principal.builder.class", " c.B ", "other principals"),
        ("ssl.engine.factory.class", "com.corp.Engines", "TLS would be what the other ssl.… keys"),
        ("listener.name.plaintext.ssl.engine.factory.class", "c.E", "TLS would be"),
        ("security.providers", "com.corp.Providers", "let in, and data encrypted, without them"),
        ("client.quota.callback.class", "com.corp.Quotas", "limited by other quotas"),
        ("create.topic.policy.class.name", "c.P", "topics would be made that it refuses"),
        ("alter.config.policy.class.name", "c.P", "configs would be changed to what it refuses"),
    ],
)
def test_a_java_class_that_decides_about_requests_stops_the_start(
    key: str, value: str, instead: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.parse({key: value})
    told = caught.value.message
    assert told.startswith(
        f"Invalid value {value.strip()} for configuration {key}: this broker runs no Java classes"
    )
    assert instead in told


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("principal.builder.class", BUILDER),
        ("listener.name.plaintext.principal.builder.class", f" {BUILDER} "),
        ("listener.name.not_opened.principal.builder.class", "com.corp.Builder"),
        ("ssl.engine.factory.class", ENGINES),
        ("listener.name.plaintext.ssl.engine.factory.class", ENGINES),
        ("listener.name.not_opened.ssl.engine.factory.class", "com.corp.Engines"),
        ("security.providers", ""),
        ("client.quota.callback.class", ""),
        ("create.topic.policy.class.name", ""),
        ("alter.config.policy.class.name", ""),
    ],
)
def test_kafkas_own_classes_do_not(key: str, value: str) -> None:
    BrokerConfig.parse({key: value})


def test_what_zookeeper_is_asked_for_is_there_or_refused() -> None:
    assert parse(zookeeper__connect="a:1,b/kafka").zookeeper_connect == "a:1,b/kafka"
    assert "must not end with a /" in refused(zookeeper__connect="a:1/kafka/")
    assert "no port" in refused(zookeeper__connect="a:x")
    zookeeper = {"zookeeper__connect": "a"}
    assert "KRaft" in refused(**zookeeper, process__roles="broker")
    assert "zookeeper.set.acl" in refused(**zookeeper, zookeeper__set__acl="true")
    assert "revocation" in refused(**zookeeper, zookeeper__ssl__crl__enable="true")
    assert "OCSP" in refused(**zookeeper, zookeeper__ssl__ocsp__enable="true")
    parse(zookeeper__set__acl="true", zookeeper__ssl__ocsp__enable="true")


@pytest.mark.parametrize("version", [None, "3.9", "3.9-IV0", "3.9.0", "3.9.1-SNAPSHOT"])
def test_a_member_of_a_cluster_speaks_3_9(version: str | None) -> None:
    given = {} if version is None else {"inter__broker__protocol__version": version}
    parse(zookeeper__connect="a", **given)


@pytest.mark.parametrize(
    "version",
    ["3.8", "3.8-IV0", "309", "3.90", "13.9", "3.9-IV1", "3.9-", "3", "2.8", "4.0", "x", ""],
)
def test_a_member_of_a_cluster_speaks_no_other_protocol(version: str) -> None:
    given = {"inter__broker__protocol__version": version}
    told = refused(zookeeper__connect="a", **given)
    assert f"Invalid value {version} for configuration inter.broker.protocol.version:" in told
    assert "take the line out" in told
    parse(**given)  # a broker that stands alone speaks with nobody


def test_a_cluster_on_its_way_to_kraft_is_not_joined() -> None:
    migrating = {"zookeeper__metadata__migration__enable": "true"}
    told = refused(zookeeper__connect="a", **migrating)
    assert "for configuration zookeeper.metadata.migration.enable: " in told
    assert "migration to KRaft" in told
    assert parse(**migrating).unknown == ()
    parse(zookeeper__connect="a", zookeeper__metadata__migration__enable="false")


def test_replica_selectors_of_others_are_refused() -> None:
    for known in (*REPLICA_SELECTORS, ""):
        assert parse(replica__selector__class=known).replica_selector_class == known
    told = refused(replica__selector__class="com.foo.Bar")
    assert told.startswith("Invalid value com.foo.Bar for configuration replica.selector.class:")
    assert "no Java classes" in told
    assert RACK_AWARE in told


def test_a_refusal_names_what_is_missing_and_no_rule_that_follows_from_it() -> None:
    assert refused(listeners="SASL_SSL://:9093").startswith(
        "Listener SASL_SSL://:9093 would offer the SASL mechanism GSSAPI (Kerberos)"
    )
    kraft = {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}
    assert "named in controller.listener.names" in refused(**kraft)
    assert "FROB:PLAINTEXT" in refused(listeners="FROB://:9093")
    controller = {"listeners": "CONTROLLER://:9093", "controller__listener__names": "CONTROLLER"}
    assert "file of a KRaft controller" in refused(**controller)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("zookeeper.connect=localhost:2181", "take the line out"),
        ("listeners=SASL_SSL://:9093", "listener.name.sasl_ssl.sasl.enabled.mechanisms"),
        ("listeners=SSL://:9093", "inter.broker.listener.name must be"),
        ("authorizer.class.name=kafka.Acl", "no Java classes"),
        ("principal.builder.class=c.B", "no Java classes"),
        ("listener.name.plaintext.principal.builder.class=c.B", "no Java classes"),
        ("listener.name.plaintext.ssl.engine.factory.class=c.E", "no Java classes"),
        ("ssl.engine.factory.class=c.E", "no Java classes"),
        ("security.providers=c.P", "no Java classes"),
        ("client.quota.callback.class=c.Q", "no Java classes"),
        ("create.topic.policy.class.name=c.P", "no Java classes"),
        ("alter.config.policy.class.name=c.P", "no Java classes"),
        ("replica.selector.class=com.foo.Bar", "no Java classes"),
        ("broker.rack=a", None),
    ],
)
def test_a_file_of_kafkas_does_for_adoption(line: str, reason: str | None, tmp_path: Path) -> None:
    def load(more: str = "") -> tuple[BrokerConfig, str | None]:
        file = tmp_path / "server.properties"
        file.write_text(f"broker.id=7\nlog.dirs=/d\n{line}\n{more}")
        return load_for_adoption(str(file), {})

    config, hindrance = load()
    assert (config.broker_id, config.log_dirs) == (7, ("/d",))
    assert hindrance is None if reason is None else reason in (hindrance or "")
    with pytest.raises(ConfigError, match=r"num\.partitions"):
        load("num.partitions=x")


def test_an_idle_limit_of_minus_one_is_no_limit() -> None:
    assert parse(connections__max__idle__ms="-1").connections_max_idle_ms == -1


def test_a_server_properties_of_kafka_4_runs_stand_alone() -> None:
    config = BrokerConfig.parse(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "inter.broker.listener.name": "PLAINTEXT",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
            "num.network.threads": "3",
            "offsets.topic.replication.factor": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "log.segment.bytes": "1073741824",
        }
    )
    assert config.unknown == ()
    assert [str(listener) for listener in config.listeners] == ["PLAINTEXT://:9092"]
    assert [str(listener) for listener in config.advertised_listeners] == [
        "PLAINTEXT://localhost:9092"
    ]
    assert config.broker_id == 1


def test_parsing_is_quick() -> None:
    """Start-up has half a second in all; generous here, for a machine that is busy."""
    import timeit

    best = min(timeit.repeat(lambda: BrokerConfig.parse({"a.b": "c"}), number=1, repeat=20))
    assert best < 0.01
