"""Wrong arguments get a sentence of the command that the user meant."""

import argparse
from collections.abc import Callable, Iterator
from types import FunctionType

import pytest

from tools.__main__ import build_parser, main
from tools.whole_numbers import whole

Refused = Callable[..., list[str]]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """Runs a command that is used wrongly; returns the lines that say so."""

    def run(*words: str) -> list[str]:
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
        return capsys.readouterr().err.splitlines()

    return run


def test_an_unknown_option_is_told_by_the_command_that_does_not_have_it(
    refused: Refused,
) -> None:
    assert refused("topics", "--nope", "--list") == [
        "pykafkalog topics: unknown arguments: --nope",
        "`pykafkalog topics --help` tells more.",
    ]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("topcs", "topics"),
        ("topic", "topics"),
        ("kafka-consumer-groups.sh", "groups"),
        ("kafka-console-consumer", "consume"),
        ("dump", "dump-log"),
        ("consume x --form-beginning", "--from-beginning"),
        ("groups --reset g --to-earlier", "--to"),
        ("topics --bootstrap-servers=x", "--bootstrap-server"),
        ("perf prodce", "produce"),
    ],
)
def test_what_was_probably_meant(words: str, meant: str, refused: Refused) -> None:
    reason, _ = refused(*words.split())
    assert reason.endswith(f"; did you mean {meant}?")


@pytest.mark.parametrize("words", ["frob", "perf frob"])
def test_what_there_is_where_nothing_is_like_it(words: str, refused: Refused) -> None:
    reason, _ = refused(*words.split())
    assert "'frob'; there are " in reason
    assert "consume" in reason


@pytest.mark.parametrize("words", ["groups --describe g --members", "consume x -z", "topics x"])
def test_nothing_is_guessed_from_afar(words: str, refused: Refused) -> None:
    reason, _ = refused(*words.split())
    assert "did you mean" not in reason


@pytest.mark.parametrize("words", [["frob"], ["topics", "--partitions", "x"], ["completion"]])
def test_every_wrong_use_says_where_to_read_on(words: list[str], refused: Refused) -> None:
    meant = " ".join(["pykafkalog", *words[:1]]) if words != ["frob"] else "pykafkalog"
    said = refused(*words)
    assert len(said) == 2
    assert said[-1] == f"`{meant} --help` tells more."


def actions_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from actions_of(inner)


def test_no_number_has_more_bits_than_the_protocol() -> None:
    counted = 0
    for action in actions_of(build_parser()):
        assert action.type is not int, f"{action.option_strings} takes a number of any size"
        if isinstance(action.type, FunctionType) and action.type.__module__ == whole.__module__:
            counted += 1
            with pytest.raises(argparse.ArgumentTypeError, match="is no whole number from"):
                action.type("9" * 20)
    assert counted > 10


def test_whole_numbers_end_with_their_bits() -> None:
    assert [whole(16)(text) for text in ("32767", "-32768", "+5")] == [32767, -32768, 5]
    assert whole(64, least=0)("9223372036854775807") == 2**63 - 1
    for bits, text in (
        (16, "32768"),
        (16, "-32769"),
        (64, str(2**63)),
        (32, "1_0"),
        (32, "9" * 5000),
    ):
        with pytest.raises(argparse.ArgumentTypeError):
            whole(bits)(text)
    with pytest.raises(argparse.ArgumentTypeError, match="'-1' is no whole number from 0 to 127"):
        whole(8, least=0)("-1")


def test_no_command_shows_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert "get-offsets" in said.err


@pytest.mark.parametrize(
    ("kcats", "ours"),
    [
        (
            "consume -b h:1 -t orders -p 0 -o -5 -c 2 -e -K : -X a=b -F file",
            "consume --bootstrap-server h:1 orders --partition 0 --offset -5 --max 2 --exit"
            " --key-separator : --command-property a=b --command-config file",
        ),
        ("consume orders -o beginning -f {key} -J", "consume orders --offset beginning"
         " --format {key} --json"),
        (
            "produce orders -p 1 -k a -H n=v -z lz4 -K :",
            "produce orders --partition 1 --key a --header n=v --compression lz4"
            " --key-separator :",
        ),
    ],
)  # fmt: skip
def test_kcats_options_mean_the_same(kcats: str, ours: str) -> None:
    parser = build_parser()
    theirs = vars(parser.parse_args(kcats.split()))
    for name, value in vars(parser.parse_args(ours.split())).items():
        if name not in ("topic", "named", "whole", "run"):
            assert theirs[name] == value, name
