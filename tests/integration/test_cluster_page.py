"""docs/cluster.md: its three brokers from nothing stand, with the lines that are written there."""

import os
import re
import signal
import subprocess
from pathlib import Path

from tests.support.cluster.view import view_of
from tests.support.installation import ROOT, under_test
from tests.support.ports import free_port
from tests.support.waiting import wait_until
from tests.support.zookeeper import ZooKeeper

PATIENCE_S = 60


def lines_of_the_page() -> str:
    """The block under its heading, without the line that starts ZooKeeper."""
    page = (ROOT / "docs/cluster.md").read_text()
    found = re.search(r"## Three brokers from nothing\n.*?```text\n(.*?)```", page, re.DOTALL)
    assert found is not None
    first, _, others = found[1].partition("\n")
    assert "zookeeper-server-start.sh" in first
    return others


def test_the_three_brokers_of_the_page_are_a_cluster(tmp_path: Path) -> None:
    ports = [free_port() for _ in range(3)]
    used = under_test()
    with ZooKeeper(tmp_path / "zookeeper") as zookeeper:
        script = lines_of_the_page()
        for written, here in (
            ("909$id", "${PORTS[$id]}"),
            ("9091", str(ports[0])),
            ("2181", str(zookeeper.port)),
            ("/tmp/demo", str(tmp_path / "logs")),
            ("  pykafkalog-broker ", f"  {' '.join(used.broker())} $PWD/"),
            ("> broker-", "> $PWD/broker-"),
            # The watch has no end; the test runs the command once, below.
            ("pykafkalog cluster", "wait; echo pykafkalog cluster"),
        ):
            assert written in script, written
            script = script.replace(written, here)
        head = f"PORTS=(0 {' '.join(map(str, ports))})\ncd {tmp_path}\n"
        shell = subprocess.Popen(
            ["bash", "-euc", head + script],
            env={**used.process_environment(), "PYTHONPATH": str(used.directory)},
            start_new_session=True,
        )
        try:

            def stands() -> bool:
                views = [view_of(port, timeout_s=2) for port in ports]
                return all(view is not None and set(view.brokers) == {1, 2, 3} for view in views)

            wait_until(stands, PATIENCE_S)
            told = used.run([*used.tool(), "cluster", "-b", f"127.0.0.1:{ports[0]}"])
            assert "3 brokers" in told.stdout
            assert "healthy" in told.stdout
        finally:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
