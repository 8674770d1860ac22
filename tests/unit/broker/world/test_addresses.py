"""Texts of addresses are compared as Java compares addresses."""

import pytest

from broker.world.addresses import is_every_interface, is_loopback, normalized


@pytest.mark.parametrize(
    ("text", "one"),
    [
        ("0:0:0:0:0:0:0:1", "::1"),
        ("0:0::1", "::1"),
        ("::1%lo", "::1"),
        ("FE80::A", "fe80::a"),
        ("fe80::a%eth0", "fe80::a"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("::ffff:a00:1", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.1"),
        ("somebody", "somebody"),
        ("some%body", "some%body"),
        ("", ""),
    ],
)
def test_one_address_has_one_text(text: str, one: str) -> None:
    assert normalized(text) == one


@pytest.mark.parametrize(
    ("text", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::1%lo", True),
        ("::ffff:127.0.0.1", True),
        ("128.0.0.1", False),
        ("0.0.0.0", False),
        ("::", False),
        ("::2", False),
        ("localhost", False),
    ],
)
def test_loopback_is_an_address_that_only_this_machine_reaches(text: str, loopback: bool) -> None:
    assert is_loopback(text) == loopback


def test_every_interface_has_an_address_for_each_family() -> None:
    assert [is_every_interface(one) for one in ("0.0.0.0", "::", "0::0", "0.0.0.1", "::1", "")] == [
        True, True, True, False, False, False
    ]  # fmt: skip
