"""PYKAFKALOG_BOOTSTRAP stands for --bootstrap-server, and is named where it is wrong."""

from config.environment import bootstrap_help, default_bootstrap, is_it_right


def test_the_variable_goes_before_the_default_and_an_empty_one_is_none() -> None:
    assert default_bootstrap({}) == "localhost:9092"
    assert default_bootstrap({"PYKAFKALOG_BOOTSTRAP": ""}) == "localhost:9092"
    assert default_bootstrap({"PYKAFKALOG_BOOTSTRAP": "b:1"}) == "b:1"


def test_help_says_where_the_default_comes_from() -> None:
    assert bootstrap_help({}).endswith("(default: PYKAFKALOG_BOOTSTRAP, else localhost:9092)")
    said = bootstrap_help({"PYKAFKALOG_BOOTSTRAP": "b%1"})
    assert said.endswith("(default: b%%1, by PYKAFKALOG_BOOTSTRAP)")


def test_a_wrong_address_is_named_by_where_it_came_from() -> None:
    environment = {"PYKAFKALOG_BOOTSTRAP": "b:1"}
    assert "PYKAFKALOG_BOOTSTRAP=b:1 right?" in is_it_right(environment, "b:1")
    assert "--bootstrap-server right?" in is_it_right(environment, "c:1")
    assert "--bootstrap-server right?" in is_it_right({}, "localhost:9092")
