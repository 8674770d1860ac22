"""Dockerfile, the image's settings and the compose file agree with each other and the sources.

docs/containers.md has the checks that need a container runtime, and where they were run.
"""

import importlib.util
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.broker_config import BrokerConfig, load_broker_config
from tests.support.installation import ROOT
from tools.__main__ import build_parser

CONTAINERS = ROOT / "containers"
SETTINGS = CONTAINERS / "server.properties"
DOCKERFILE = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
COMPOSE = yaml.safe_load((CONTAINERS / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def instructions(name: str) -> list[str]:
    """The arguments of each instruction of this name, in both stages."""
    return re.findall(rf"^(?:HEALTHCHECK .*?)?{name} +(.+)$", DOCKERFILE, re.MULTILINE)


def image_config(*overrides: str) -> BrokerConfig:
    return load_broker_config(SETTINGS, dict(one.split("=", 1) for one in overrides))


def overrides_of_compose() -> list[str]:
    words = SERVICES["broker"]["command"]
    assert words[::2] == ["--override"] * (len(words) // 2)
    return list(words[1::2])


def test_what_is_copied_into_the_image_is_there() -> None:
    copied = [shlex.split(words) for words in instructions("COPY")]
    sources = [name for words in copied if "--from" not in words[0] for name in words[:-1]]
    assert [name for name in sources if not (ROOT / name).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert [name for name in sources if name.split("/")[0] in ignored] == []


def test_the_image_starts_a_program_of_the_wheel_on_the_settings_that_it_holds() -> None:
    (entry,) = map(json.loads, instructions("ENTRYPOINT"))
    program, settings = entry
    assert program in PROJECT["scripts"]
    assert f"{SETTINGS.relative_to(ROOT)} {settings}" in instructions("COPY")


def test_the_image_checks_its_health_by_a_module_that_is_there_and_names_no_port() -> None:
    *words, module = json.loads(instructions("CMD")[0])
    assert words == ["python", "-P", "-m"]  # -P: no module of the working directory
    room = module.removeprefix("pykafkalog.")
    assert importlib.util.find_spec(room) is not None, module


def test_the_image_exposes_what_its_settings_listen_on_and_keeps_its_logs_in_the_volume() -> None:
    config = image_config()
    metrics = str(config.metrics_http_listener)
    ports = [str(listener.port) for listener in config.listeners]
    assert instructions("EXPOSE") == [" ".join([*ports, metrics.rpartition(":")[2]])]
    assert instructions("VOLUME") == list(config.log_dirs) == instructions("WORKDIR")[1:]


def test_the_volume_has_its_owner_before_it_is_a_volume_and_the_broker_is_not_root() -> None:
    _, _, last_stage = DOCKERFILE.split("\nFROM ")
    user = re.search(r"^USER (\w+)$", last_stage, re.MULTILINE)
    assert user is not None
    owned = f"--owner {user[1]} --group {user[1]} {instructions('VOLUME')[0]}"
    assert 0 < last_stage.index(owned) < last_stage.index("\nUSER ") < last_stage.index("\nVOLUME ")


def test_the_broker_takes_its_settings_in_compose() -> None:
    config = image_config(*overrides_of_compose())
    names = [str(listener).partition(":")[0] for listener in config.listeners]
    advertised = {str(one).partition(":")[0] for one in config.advertised_listeners}
    assert advertised == set(names)


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_has_an_image_and_waits_for_services_that_are_there(service: str) -> None:
    described = SERVICES[service]
    _, colon, tag = described["image"].rpartition(":")
    assert (colon and tag != "latest") or described["image"] == SERVICES["broker"]["image"]
    assert set(described.get("depends_on", ())) <= set(SERVICES)
    mode = described.get("network_mode")
    assert mode is None or mode.removeprefix("service:") in SERVICES


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_mounts_files_that_are_there_and_volumes_that_are_declared(service: str) -> None:
    for mount in SERVICES[service].get("volumes", ()):
        source = mount.split(":")[0]
        if source.startswith("."):
            assert (CONTAINERS / source).resolve().is_file(), source
        else:
            assert source in COMPOSE["volumes"]


@pytest.mark.parametrize("service", SERVICES)
def test_ports_are_published_to_this_machine_only(service: str) -> None:
    """The broker asks nobody who they are."""
    for port in SERVICES[service].get("ports", ()):
        assert port.startswith("127.0.0.1:"), port


def test_services_come_to_the_broker_where_it_says_it_is() -> None:
    config = image_config(*overrides_of_compose())
    inside = {str(one).partition("://")[2] for one in config.advertised_listeners}
    named = {
        word
        for described in SERVICES.values()
        for word in described.get("command", ())
        if re.fullmatch(r"broker:\d+", word)
    }
    assert named and named <= inside


def test_the_command_that_makes_the_topic_is_one() -> None:
    (program,) = SERVICES["topics"]["entrypoint"]
    assert program in PROJECT["scripts"]
    arguments = build_parser().parse_args(SERVICES["topics"]["command"])
    assert (arguments.command, arguments.create) == ("topics", ["words"])
    assert "words" in SERVICES["spark"]["command"]


def test_spark_in_compose_is_the_spark_of_the_tests() -> None:
    (spark,) = (
        one.partition("==")[2]
        for one in PROJECT["optional-dependencies"]["dev"]
        if one.startswith("pyspark==")
    )
    assert f":{spark}-" in SERVICES["spark"]["image"]
    packages = [word for word in SERVICES["spark"]["command"] if "spark-sql-kafka" in word]
    assert [package.rpartition(":")[2] for package in packages] == [spark]


def test_grafana_finds_prometheus_in_the_network_of_the_broker() -> None:
    sources = yaml.safe_load((CONTAINERS / "grafana/datasources.yaml").read_text())["datasources"]
    host, _, port = sources[0]["url"].removeprefix("http://").partition(":")
    assert SERVICES["prometheus"]["network_mode"] == f"service:{host}"
    assert f"127.0.0.1:{port}:{port}" in SERVICES[host]["ports"]


def test_grafana_loads_dashboards_from_where_they_are_mounted() -> None:
    providers = yaml.safe_load((CONTAINERS / "grafana/dashboards.yaml").read_text())["providers"]
    folder = providers[0]["options"]["path"]
    targets = [mount.split(":")[1] for mount in SERVICES["grafana"]["volumes"]]
    assert f"{folder}/pykafkalog.json" in targets


def test_the_page_explains_every_instruction_and_every_service() -> None:
    page = (ROOT / "docs/containers.md").read_text()
    words = set(re.findall(r"^([A-Z]+) ", DOCKERFILE, re.MULTILINE))
    assert {word for word in words if f"`{word}" not in page} == set()
    assert {name for name in SERVICES if f"`{name}`" not in page} == set()
    keys = {key for described in SERVICES.values() for key in described}
    assert {key for key in keys if f"`{key}" not in page} == set()
    for line in Path(SETTINGS).read_text().splitlines():
        if line and not line.startswith("#"):
            assert f"`{line.partition('=')[0]}`" in page
