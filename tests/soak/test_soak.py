"""Half a minute of the soak (`scripts/soak` runs an hour)."""

from pathlib import Path

from tests.soak.run import soak


def test_every_kind_of_client_goes_on_and_all_is_back(tmp_path: Path) -> None:
    assert soak(0.5, tmp_path) == []
