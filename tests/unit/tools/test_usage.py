"""Wrong arguments are told in a sentence of the command that was meant."""

import pytest

from tools.__main__ import build_parser, main


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()


def test_an_unknown_option_is_told_by_the_command_that_does_not_have_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert refused(capsys, "topics", "--nope", "--list") == [
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
def test_what_was_probably_meant(
    words: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reason, _ = refused(capsys, *words.split())
    assert reason.endswith(f"; did you mean {meant}?")


@pytest.mark.parametrize("words", ["frob", "perf frob"])
def test_what_there_is_where_nothing_is_like_it(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reason, _ = refused(capsys, *words.split())
    assert "'frob'; there are " in reason
    assert "consume" in reason


@pytest.mark.parametrize("words", ["groups --describe g --members", "consume x -z", "topics x"])
def test_nothing_is_guessed_from_afar(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    reason, _ = refused(capsys, *words.split())
    assert "did you mean" not in reason


@pytest.mark.parametrize("words", [["frob"], ["topics", "--partitions", "x"], ["completion"]])
def test_every_wrong_use_says_where_to_read_on(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    meant = " ".join(["pykafkalog", *words[:1]]) if words != ["frob"] else "pykafkalog"
    said = refused(capsys, *words)
    assert len(said) == 2
    assert said[-1] == f"`{meant} --help` tells more."


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
