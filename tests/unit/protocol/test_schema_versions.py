"""Version ranges as Kafka's message definitions write them."""

import pytest

from protocol.schema.versions import LATEST, version_range


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("3+", range(3, LATEST)),
        ("0-4", range(5)),
        ("7", range(7, 8)),
        ("none", range(0)),
        (None, range(0)),
    ],
)
def test_ranges(text: str | None, versions: range) -> None:
    assert version_range(text) == versions


def test_what_is_no_range() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        version_range("x-2")
