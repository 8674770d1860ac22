"""The brokers of these tests are those of the installation under test, and of no other.

With `PYKAFKALOG_TEST_ENVIRONMENT` an installed wheel is under test (`tests.support.installation`):
then nothing that a broker or the command line imports may come from this checkout.
"""

import json
from pathlib import Path

import pytest

from protocol.api_keys import ApiKey
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.support.broker_process import BrokerProcess
from tests.support.command_line import pykafkalog
from tests.support.installation import CHECKOUT, ROOT, Installation, under_test
from tests.support.wire_client import WireClient

ROOMS = ("config", "protocol", "storage", "broker", "tools", "pipeline")
BROKER_LOGGER = 8
"""The resource type of a broker's loggers (KIP-412)."""
WHERE_ARE = """
import importlib.util, json, sys
specs = {name: importlib.util.find_spec(name) for name in sys.argv[1:]}
print(json.dumps({name: spec and spec.origin for name, spec in specs.items()}))
"""


def origins(used: Installation, *modules: str) -> dict[str, str | None]:
    """The files that a process of the installation imports these modules from."""
    done = used.run([used.python, "-c", WHERE_ARE, *modules])
    found: dict[str, str | None] = json.loads(done.stdout)
    return found


def loggers(broker: BrokerProcess) -> list[str]:
    """Names of a running broker's loggers; a module's is the name that it was imported by."""
    resource = DescribeConfigsResource(
        resource_type=BROKER_LOGGER, resource_name=broker.settings["broker.id"]
    )
    with WireClient(broker.port) as client:
        answer = client.call(
            ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=[resource])
        )
    (result,) = answer.results
    assert result.error_code == 0, result
    return [config.name for config in result.configs]


def test_a_running_broker_has_imported_the_installation_under_test(tmp_path: Path) -> None:
    used = under_test()
    with BrokerProcess(tmp_path) as broker:
        names = loggers(broker)
    assert f"{used.package}broker.network.connection" in names
    assert f"{used.package}storage.log_manager" in names
    if used is not CHECKOUT:
        assert [name for name in names if name.partition(".")[0] in ROOMS] == []


def test_modules_lie_in_the_installation_under_test() -> None:
    used = under_test()
    names = [f"{used.package}{room}" for room in ROOMS]
    for name, origin in origins(used, "pykafkalog", *names).items():
        assert origin is not None, name
        assert Path(origin).is_relative_to(used.directory), (name, origin)


def test_an_installation_cannot_import_the_rooms_of_this_checkout(tmp_path: Path) -> None:
    used = under_test()
    if used is CHECKOUT:
        pytest.skip("the checkout itself is under test: scripts/test tests an installed wheel")
    assert not used.directory.is_relative_to(ROOT)
    assert origins(used, *ROOMS) == dict.fromkeys(ROOMS)


def test_commands_come_from_the_installation_under_test() -> None:
    used = under_test()
    said = pykafkalog("--version").stdout
    assert said.startswith("pykafkalog ")
    assert used.run([*used.broker(), "--version"]).stdout == said
