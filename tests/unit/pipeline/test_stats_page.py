"""The page holds everything it shows, and shows what comes from records as text."""

import re
from dataclasses import replace

import pytest

pytest.importorskip("matplotlib")

from pipeline.stats import plots
from pipeline.stats.page import page
from pipeline.stats.tables import show
from pipeline.stats.values import (
    Compaction,
    Keys,
    LogFacts,
    PartitionStats,
    Sizes,
    Stats,
    TopicStats,
)

HOSTILE = "<script>alert('$x_$')</script>"
TOPIC = TopicStats(
    topic="orders",
    partitions=(
        PartitionStats(
            partition=0,
            records=12_345,
            bytes=500_000,
            first_offset=3,
            last_offset=20_000,
            first_timestamp=1_700_000_000_000,
            last_timestamp=1_700_000_120_000,
            without_key=0,
            tombstones=45,
            keys=99,
        ),
    ),
    sizes=Sizes(
        smallest=0, mean=40.5, p50=40, p90=50, p99=60, largest=64, histogram=((32, 64, 12_345),)
    ),
    interval_ms=60_000,
    throughput=((1_700_000_000_000, 12_000, 490_000), (1_700_000_060_000, 345, 10_000)),
    keys=Keys(
        exact=True,
        distinct=99,
        in_several_partitions=0,
        gini=0.25,
        lorenz=((0, 0), (0.5, 0.75), (1, 1)),
        top=((HOSTILE, 700, 28_000),),
    ),
    compaction=Compaction(
        records=12_345,
        bytes=500_000,
        latest=99,
        latest_bytes=4_000,
        tombstones=9,
        tombstone_bytes=90,
        without_key=0,
    ),
    log=LogFacts(
        file_bytes=300_000,
        batches=100,
        codecs=(("lz4", 100),),
        producers=1,
        committed=4,
        aborted=2,
        open=1,
        committed_records=9_000,
        aborted_records=3_000,
        open_records=345,
        empty_markers=0,
    ),
)
BARE = replace(TOPIC, keys=Keys(exact=False, distinct=98), compaction=None, log=None)
STATS = Stats(source="topics at localhost:9092", topics=(TOPIC,))


def test_a_page_leads_nowhere_and_has_no_script() -> None:
    text = page(STATS, "Looked at")
    assert "<script" not in text.replace("&lt;script", "")
    assert "&lt;script&gt;alert(" in text
    assert not re.findall(r"""(?:href|src)=["'](?!#)""", text)  # SVG refers to its own parts
    assert text.count("<svg") == text.count("</svg>") == 6
    assert "12,345" in text and "99.2%" in text


def test_names_of_topics_are_no_formulas_and_no_markup() -> None:
    topic = replace(BARE, topic=HOSTILE)
    assert "<script" not in page(replace(STATS, topics=(topic,)), "")


def test_equal_input_gives_an_equal_plot() -> None:
    assert plots.sizes(TOPIC) == plots.sizes(TOPIC)


def test_what_was_not_looked_at_has_no_plot(capsys: pytest.CaptureFixture[str]) -> None:
    text = page(replace(STATS, topics=(BARE,)), "")
    assert text.count("<svg") == 3
    assert "about 98" in text
    show(replace(STATS, topics=(BARE,)))
    printed = capsys.readouterr().out
    assert "about 98" in printed and "compaction" not in printed


@pytest.mark.parametrize("intervals", [19, 20, 21, 60])
def test_a_pipe_gets_the_whole_series_and_a_terminal_the_busiest_first(
    intervals: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = tuple((1_700_000_000_000 + n * 60_000, 1, 1 + n % 7) for n in range(intervals))
    stats = replace(STATS, topics=(replace(BARE, throughput=rows),))

    def lines(table: str) -> list[str]:
        return [line for line in table.splitlines() if line.endswith("█")]

    show(stats)
    piped = capsys.readouterr().out.split("# orders: ")
    assert piped[1].startswith("throughput by 1 min\n")
    times = [line.split("\t")[0] for line in lines(piped[1])]
    assert len(times) == intervals and times == sorted(times)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    show(stats)
    said = capsys.readouterr().out
    assert ("busiest first" in said) is (intervals > 20)
    if intervals > 20:
        assert f"the 20 busiest of {intervals}, busiest first" in " ".join(said.split())


def test_each_table_without_a_terminal_has_its_title(capsys: pytest.CaptureFixture[str]) -> None:
    show(STATS)
    tables = capsys.readouterr().out.rstrip("\n").split("\n\n")
    assert [table.splitlines()[0].split(" (")[0] for table in tables] == [
        "# Topics of topics at localhost:9092",
        "# orders: throughput by 1 min",
        "# orders: size of a record",
        "# orders: partitions",
        "# orders: busiest keys",
        "# orders: what compaction would leave",
        "# orders: in the files",
    ]


def test_tables_without_a_terminal_are_tab_separated(capsys: pytest.CaptureFixture[str]) -> None:
    show(STATS)
    printed = capsys.readouterr().out
    assert "in 2 aborted transactions\t3000" in printed
    assert f"{HOSTILE}\t700\t28.0 KB\t5.67%" in printed
    assert "saved\t12255\t99.2%" in printed
