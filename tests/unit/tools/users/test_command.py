"""Arguments that make no sense, and what is printed."""

import pytest

from tests.support.command_line import Command
from tools.users.listing import Users, show


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--override", "a=b"), "--override goes with --offline"),
        (("--remove", "a", "--password-file", "f"), "--password-file goes with --add"),
        (("--add", ""), "a user has a name"),
        (("--remove", ""), "a user has a name"),
        (("--add", "ä"), "--add ä: names are ASCII"),
        (("--add", "a", "--iterations", "4095"), "--iterations: from 4096 to 16384"),
        (("--add", "a", "--iterations", "16385"), "--iterations: from 4096 to 16384"),
        (("--add", "a", "--password-file", "/absent"), "cannot read /absent"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(
    words: tuple[str, ...], told: str, command: Command
) -> None:
    assert told in command("users", "-b", "127.0.0.1:1", *words, code=1).err


BOTH = {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 8192}


@pytest.mark.parametrize(
    ("users", "added", "removed", "told"),
    [
        ({}, None, None, "There is no user with a password for SCRAM.\n"),
        ({"a": BOTH}, "a", None, "User a has a password for SCRAM-SHA-256 and SCRAM-SHA-512.\n"),
        ({"a": {}}, None, "a", "Removed user a.\n"),
        (
            {"a": {"SCRAM-SHA-256": 1}},
            None,
            "a",
            "User a still has a password for SCRAM-SHA-256.\n",
        ),
    ],
)
def test_what_was_done_is_said(
    users: Users,
    added: str | None,
    removed: str | None,
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(users, added, removed, as_json=False)
    assert capsys.readouterr().out == told


def test_users_are_rows_or_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    show({"a": BOTH}, None, None, as_json=False)
    rows = capsys.readouterr().out.splitlines()
    assert [row.split() for row in rows[1:]] == [
        ["a", "SCRAM-SHA-256", "4096"],
        ["a", "SCRAM-SHA-512", "8192"],
    ]
    show({"a": BOTH}, "a", None, as_json=True)
    assert capsys.readouterr().out == (
        '[{"user": "a", "mechanisms": {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 8192}}]\n'
    )
