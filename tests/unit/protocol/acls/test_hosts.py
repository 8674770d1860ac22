"""Which patterns of hosts an address matches, while rules come and go."""

import pytest

from protocol.acls.hosts import MOST_KNOWN, HostPatterns


def patterns(*hosts: str) -> HostPatterns:
    found = HostPatterns()
    for host in hosts:
        found.add(host)
    return found


@pytest.mark.parametrize(
    ("host", "matching"),
    [
        ("10.1.2.3", {"*", "10.1.2.3", "10.0.0.0/8", "10.1.2.77/24", "0.0.0.0/0"}),
        ("10.1.3.3", {"*", "10.1.3.3", "10.0.0.0/8", "0.0.0.0/0"}),
        ("11.1.2.3", {"*", "11.1.2.3", "0.0.0.0/0"}),
        ("::1", {"*", "0:0:0:0:0:0:0:1", "::1", "::/64"}),
        ("2001:db8::7", {"*"}),
        ("2001:db9::7", {"*", "2001:db9:0::/48"}),
        ("broker", {"*", "broker"}),
    ],
)
def test_s_acl_3_addresses_ranges_and_spellings(host: str, matching: set[str]) -> None:
    found = patterns(
        *("10.1.2.3", "10.0.0.0/8", "10.1.2.77/24", "0.0.0.0/0", "0:0:0:0:0:0:0:1", "::1"),
        *("::/64", "2001:db9:0::/48", "not/a/range", "10.0.0.0/99"),
    )
    assert set(found.matching(host)) == matching


def test_a_pattern_counts_as_long_as_a_rule_has_it() -> None:
    found = patterns("10.0.0.0/8", "10.0.0.0/8", "::1")
    assert "10.0.0.0/8" in found.matching("10.1.1.1")
    found.remove("10.0.0.0/8")
    assert "10.0.0.0/8" in found.matching("10.1.1.1")
    found.remove("10.0.0.0/8")
    assert "10.0.0.0/8" not in found.matching("10.1.1.1")
    assert "::1" in found.matching("0:0::1")
    found.remove("::1")
    assert "::1" not in found.matching("0:0::1")
    found.add("10.1.0.0/16")
    assert "10.1.0.0/16" in found.matching("10.1.1.1")


def test_few_addresses_are_remembered() -> None:
    found = patterns("10.0.0.0/8")
    for number in range(3 * MOST_KNOWN):
        assert "10.0.0.0/8" in found.matching(f"10.0.{number // 256}.{number % 256}")
    assert len(found._matching) <= MOST_KNOWN
