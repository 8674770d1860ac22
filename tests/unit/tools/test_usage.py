"""Wrong arguments are told with the usage of the command that was meant."""

import pytest

from tools.__main__ import main


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()


def test_an_unknown_option_is_told_by_the_command_that_does_not_have_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    usage, *_, reason, advice = refused(capsys, "topics", "--nope", "--list")
    assert usage.startswith("usage: pykafkalog topics")
    assert reason == "pykafkalog topics: unknown arguments: --nope"
    assert advice == "`pykafkalog topics --help` tells more."


@pytest.mark.parametrize("words", [["frob"], [], ["topics", "--partitions", "x"]])
def test_every_wrong_use_says_where_to_read_on(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    meant = " ".join(["pykafkalog", *words[:1]]) if words != ["frob"] else "pykafkalog"
    assert refused(capsys, *words)[-1] == f"`{meant} --help` tells more."
