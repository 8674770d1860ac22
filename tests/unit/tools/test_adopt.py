"""`pykafkalog adopt` says what of the rules, users and quotas of another broker comes along."""

from argparse import Namespace
from typing import Any

import pytest

import tools.adopt

NOTHING: dict[str, Any] = {"rules": 0, "users": 0, "quotas": 0, "left_out": []}


@pytest.fixture
def adopt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*, dry_run: bool = False, **access: Any) -> tuple[str, int]:
        """The output of the command, and its exit code."""
        summary = {
            "dry_run": dry_run,
            "cluster_id": "c",
            "broker_id": 1,
            "log_dirs": ["/a"],
            "topics": [],
            "access": {**NOTHING, **access},
            "start_refused": None,
        }
        monkeypatch.setattr("tools.adopt.answer_of", lambda *words: summary)
        words = Namespace(properties="p", override=[], dry_run=dry_run, json=False)
        code = tools.adopt.run(words)
        return " ".join(capsys.readouterr().out.split()), code

    return run


def test_what_was_taken_is_counted(adopt: Any) -> None:
    told, code = adopt(rules=12, quotas=1)
    assert "Took from the KRaft metadata log: 12 access rules, 1 client with quotas." in told
    assert code == 0
    assert "To take from the KRaft metadata log: 2 users." in adopt(users=2, dry_run=True)[0]


def test_what_nothing_can_hold_is_told_and_is_a_failure(adopt: Any) -> None:
    told, code = adopt(left_out=["a rule about t"])
    assert "nothing here can hold it: a rule about t." in told
    assert code == 1


def test_without_any_of_it_nothing_is_said(adopt: Any) -> None:
    told, code = adopt()
    assert "KRaft" not in told
    assert code == 0
