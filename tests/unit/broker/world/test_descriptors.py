"""How descriptors are shared, and that a process takes what it may have."""

import resource
import subprocess
import sys

import pytest

from broker.world.descriptors import DescriptorBudget

ASK = (
    "import logging, resource;"
    "logging.basicConfig(level='INFO', format='%(levelname)s %(message)s');"
    "from broker.world.process_limits import claim_descriptors;"
    "print(claim_descriptors().limit, resource.getrlimit(resource.RLIMIT_NOFILE))"
)


@pytest.mark.parametrize("limit", [16, 64, 256, 1024, 4096, 20_000, 1 << 20, 1 << 30])
def test_connections_never_get_what_files_need(limit: int) -> None:
    budget = DescriptorBudget.of(limit)
    assert budget.connections + budget.files + budget.reserve == limit
    assert budget.connections > 0
    assert budget.files >= limit // 8
    assert limit // 2 <= budget.ceiling < limit
    assert budget.connections < budget.ceiling


def test_ten_thousand_connections_fit_into_what_a_distribution_allows() -> None:
    assert DescriptorBudget.of(20_000).connections > 12_000


def test_the_soft_limit_is_raised_to_the_hard_one_and_told() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, 3000)
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (500, wanted)),
    )
    assert done.stdout.split(maxsplit=1) == [str(wanted), f"({wanted}, {wanted})\n"]
    assert f"WARNING Open files: {wanted} may be open (the soft limit was 500)" in done.stderr
    assert "ulimit -Hn" in done.stderr
