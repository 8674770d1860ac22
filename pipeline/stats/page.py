"""One HTML page that needs no other file or network, so that it can be mailed and kept.

Texts from records and names of topics are escaped; the page has no script.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, Final

from pipeline.showing import size_of
from pipeline.stats import plots
from pipeline.stats.tables import compaction_rows, keys_in_words, log_rows, moment, span
from pipeline.stats.values import Stats, TopicStats

STYLE: Final = """
body { font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; color: #1d2733; background: #f5f6f8;
       margin: 0 auto; max-width: 1080px; padding: 24px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 20px; margin: 0 0 12px; }
p { margin: 0 0 16px; color: #4a5460; }
section { background: #fff; border: 1px solid #e1e5ea; border-radius: 8px; padding: 20px;
          margin: 20px 0; }
.facts { display: flex; flex-wrap: wrap; gap: 12px 32px; margin: 0 0 16px; }
.facts div { min-width: 96px; } .facts b { display: block; font-size: 19px; }
.facts span { color: #6b7682; font-size: 13px; }
.plots { display: flex; flex-wrap: wrap; gap: 8px; } .plots svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; margin: 12px 24px 12px 0; font-size: 14px; }
caption { text-align: left; font-weight: 600; padding: 4px 0; }
th, td { padding: 3px 12px 3px 0; text-align: left; border-bottom: 1px solid #eceff2; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
td:first-child { overflow-wrap: anywhere; max-width: 420px; }
.tables { display: flex; flex-wrap: wrap; align-items: flex-start; }
"""


def page(stats: Stats, made: str) -> str:
    """Return the whole page; `made` is a text that says when it was made."""
    body = "\n".join(_topic(topic) for topic in stats.topics)
    contents = ""
    if len(stats.topics) > 1:
        contents = _table(
            "Topics",
            ("topic", "records", "bytes", "keys"),
            [(t.topic, t.records, size_of(t.bytes), keys_in_words(t)) for t in stats.topics],
        )
        contents = f"<section>{contents}</section>"
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{escape(stats.source)}</title>
<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>
<body>
<h1>{escape(stats.source)}</h1>
<p>{escape(made)}. Times are UTC. Bytes are those of keys, values and headers, uncompressed, where
nothing else is said.</p>
{contents}
{body}
</body>
</html>
"""


def _topic(topic: TopicStats) -> str:
    return "\n".join(
        [
            f"<section><h2>{escape(topic.topic)}</h2>",
            _facts(topic),
            '<div class="plots">',
            *_plots(topic),
            "</div>",
            '<div class="tables">',
            *_tables(topic),
            "</div></section>",
        ]
    )


def _facts(topic: TopicStats) -> str:
    first, last = span(topic)
    facts = [
        (f"{topic.records:,}", "records"),
        (size_of(topic.bytes), "keys, values, headers"),
        (f"{topic.sizes.p50:,} B", "median record"),
        (f"{topic.sizes.p99:,} B", "99th percentile"),
        (keys_in_words(topic), "keys"),
        (moment(first), "first"),
        (moment(last), "last"),
    ]
    if topic.log is not None:
        facts.insert(2, (size_of(topic.log.file_bytes), "on the disk"))
    cells = "".join(
        f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for value, name in facts
    )
    return f'<div class="facts">{cells}</div>'


def _plots(topic: TopicStats) -> Iterator[str]:
    yield plots.throughput(topic)
    yield plots.sizes(topic)
    yield plots.partitions(topic)
    if topic.keys.lorenz:
        yield plots.keys(topic)
    if topic.compaction is not None and topic.compaction.records:
        yield plots.compaction(topic)
    if topic.log is not None and (topic.log.committed or topic.log.aborted or topic.log.open):
        yield plots.transactions(topic)


def _tables(topic: TopicStats) -> Iterator[str]:
    if topic.keys.top:
        title = f"Busiest keys (Gini {topic.keys.gini:.3f})"
        rows = [
            (key, count, size_of(size), f"{count / topic.records:.2%}")
            for key, count, size in topic.keys.top
        ]
        yield _table(title, ("key", "records", "bytes", "share"), rows)
    for title, parts in (
        ("What compaction would leave", compaction_rows(topic)),
        ("In the files", log_rows(topic)),
    ):
        if parts:
            yield _table(title, ("", "records", "bytes"), parts)
    yield _table(
        "Partitions",
        ("partition", "records", "bytes", "keys", "without key", "tombstones"),
        [
            (p.partition, p.records, size_of(p.bytes), p.keys, p.without_key, p.tombstones)
            for p in topic.partitions
        ],
    )


def _table(title: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = []
    for row in rows:
        cells = "".join(
            f'<td class="n">{cell:,}</td>' if isinstance(cell, int) else f"<td>{escape(cell)}</td>"
            for cell in row
        )
        lines.append(f"<tr>{cells}</tr>")
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    return (
        f"<table><caption>{escape(title)}</caption><tr>{head}</tr>\n"
        + "\n".join(lines)
        + "\n</table>"
    )
