from pathlib import Path

import pytest

from config.broker_config import load_broker_config
from config.definition import ConfigError
from config.properties import load_properties, parse_override


def test_s_cfg_1_java_properties_syntax() -> None:
    text = (
        "# comment\n"
        "! comment\n"
        "  a = 1\n"
        "b:2\n"
        "c 3\n"
        "d=one,\\\n   two\n"
        "e=\\u00e4\\t|\n"
        "f\\ g=x\n"
        "empty=\n"
        "bare\n"
        "a=later wins\n"
    )
    assert load_properties(text) == {
        "a": "later wins",
        "b": "2",
        "c": "3",
        "d": "one,two",
        "e": "ä\t|",
        "f g": "x",
        "empty": "",
        "bare": "",
    }


def test_s_cfg_1_a_broken_escape_is_one_clear_line() -> None:
    with pytest.raises(ConfigError, match="Malformed"):
        load_properties("a=\\u00zz\n")


def test_s_start_1_overrides() -> None:
    assert parse_override("a.b=c=d") == ("a.b", "c=d")
    assert parse_override(" a = b ") == ("a", "b")
    assert parse_override("a=") == ("a", "")
    for bad in ("a", "=b", ""):
        with pytest.raises(ConfigError, match="Invalid command line properties"):
            parse_override(bad)


def test_s_start_1_an_override_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nlog.dirs=/x\n")
    config = load_broker_config(str(file), {"num.partitions": "5"})
    assert config.num_partitions == 5
    assert config.log_dirs == ("/x",)


def test_s_cfg_1_the_file_is_latin_1(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes(b"log.dirs=/caf\xe9\nrack=\xc3\xa9\xff\n")
    config = load_broker_config(str(file))
    assert config.log_dirs == ("/caf\u00e9",)


def test_a_missing_or_unreadable_file_is_one_clear_line(tmp_path: Path) -> None:
    for path in (tmp_path / "none.properties", tmp_path):
        with pytest.raises(ConfigError) as caught:
            load_broker_config(str(path))
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)


def test_the_shipped_file_is_valid_and_shows_the_defaults() -> None:
    path = Path(__file__).parents[3] / "config" / "server.properties"
    config = load_broker_config(str(path))
    assert config.unknown == ()
    assert config.log_dirs == ("/tmp/kafka-logs",)
    assert config.broker_id == 0
    assert config.metrics_http_listener == ""
    commented = {}
    for line in path.read_text().splitlines():
        if line.startswith("#") and "=" in line and not line.startswith(("# ", "##")):
            key, _, value = line[1:].partition("=")
            commented[key] = value
    examples = {"advertised.listeners", "metrics.http.listener"}
    from config.broker_keys import BROKER_KEYS
    from config.definition import format_value

    assert set(commented) <= {key.name for key in BROKER_KEYS}
    for key, value in commented.items():
        if key in examples or key == "log.flush.interval.ms":
            continue
        assert format_value(BROKER_KEYS[key].default) == value, key
