"""Figures of a run: ratios with their spread, JSON, tables for terminals and pages, a picture.

A ratio is that of one round: a side's figure by that of the first side, which was measured moments
before or after. Shown are the median over the rounds, the smallest and the largest.
"""

import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.table import Table

FLOOR = "floor"
CLIENT = "client CPU us/request"
"""The figure of the client's own cost: for the JSON only."""
CHANGED = 1.05
"""A ratio beyond this, and beyond the spread of both runs, is shown as a change."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Median, smallest and largest of some rounds."""

    median: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f}-{self.most:.2f})"


@dataclass
class Results:
    """Figures of all rounds: case -> figure -> side -> values, one for each round."""

    about: dict[str, Any]
    sides: list[str]
    """The first is what the others are compared with."""
    cases: dict[str, dict[str, dict[str, list[float]]]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """The error of each case that failed."""

    def note(self, case: str, side: str, figures: dict[str, float]) -> None:
        """Keep the figures of one measurement."""
        for name, value in figures.items():
            self.cases.setdefault(case, {}).setdefault(name, {}).setdefault(side, []).append(value)

    def write(self, path: Path) -> None:
        """Write JSON."""
        path.write_text(json.dumps(vars(self), indent=1))

    @staticmethod
    def read(path: Path) -> "Results":
        """Read what `write` wrote."""
        return Results(**json.loads(path.read_text()))

    def rows(self) -> Iterator[tuple[str, str, dict[str, list[float]]]]:
        """Case, figure, and values by side."""
        for case, figures in self.cases.items():
            for name, values in figures.items():
                if name != CLIENT and self.sides[0] in values:
                    yield case, name, values

    def ratio(self, values: dict[str, list[float]], side: str) -> Ratio | None:
        """The ratio of a side to the first; None if one of them has no figures or only zeros."""
        pairs = zip(values.get(side, ()), values[self.sides[0]], strict=False)
        ratios = [mine / other for mine, other in pairs if other]
        if not ratios:
            return None
        return Ratio(statistics.median(ratios), min(ratios), max(ratios))

    def lines(self) -> Iterator[list[str]]:
        """Cells of a table, after those of `head`."""
        told = ""
        for case, name, values in self.rows():
            cells = [case if case != told else "", name]
            told = case
            for side in (*self.sides, *([FLOOR] if self._has_floor() else [])):
                mine = values.get(side)
                cells.append(short(statistics.median(mine)) if mine else "")
            ratios = (self.ratio(values, side) for side in self.sides[1:])
            yield [*cells, *(str(ratio) if ratio else "" for ratio in ratios)]

    def head(self) -> list[str]:
        """The names of the columns."""
        first, *others = self.sides
        floor = [FLOOR] if self._has_floor() else []
        return ["case", "figure", *self.sides, *floor, *(f"{side} / {first}" for side in others)]

    def _has_floor(self) -> bool:
        return any(FLOOR in values for _, _, values in self.rows())

    def ratios_table(self) -> Table:
        """Ratios alone, for `--quick`."""
        first, *others = self.sides
        table = Table("case", "figure", *(f"{side} / {first}" for side in others))
        for cells in self.lines():
            table.add_row(*cells[:2], *cells[len(cells) - len(others) :])
        return table

    def table(self) -> Table:
        """Medians and ratios."""
        table = Table(*self.head())
        for cells in self.lines():
            table.add_row(*cells)
        return table

    def markdown(self) -> str:
        """The same as tables for docs/performance.md, one for each room of cases."""
        written = [f"{name}: {value}  " for name, value in self.about.items()]
        head = self.head()
        room = case = ""
        for cells in self.lines():
            case = cells[0] or case
            here, _, cells[0] = case.partition("/") if cells[0] else (room, "", "")
            if here != room:
                room = here
                rule = "|--|--" + "|--:" * (len(head) - 2) + "|"
                written += ["", f"### {room.capitalize()}", "", f"| {' | '.join(head)} |", rule]
            written.append(f"| {' | '.join(cells)} |")
        return "\n".join(written)

    def changes(self, before: "Results") -> Table:
        """How the ratios of this run stand to those of an earlier one, or its figures.

        If both runs have the same first side, the ratios to it are compared.
        """
        same = before.sides[0] == self.sides[0] and len(self.sides) > 1
        table = Table("case", "figure", "side", "before", "now", "now / before", "")
        for case, name, values in self.rows():
            was = before.cases.get(case, {}).get(name, {})
            for side in self.sides[1 if same else 0 :]:
                if side not in values or side not in was:
                    continue
                earlier = before.ratio(was, side) if same else spread(was[side])
                now = self.ratio(values, side) if same else spread(values[side])
                if earlier is None or now is None or not earlier.median:
                    continue
                change = now.median / earlier.median
                apart = now.least > earlier.most or now.most < earlier.least
                better = (change > 1) == is_rate(name)
                beyond = apart and max(change, 1 / change if change else CHANGED) >= CHANGED
                verdict = ("better" if better else "WORSE") if beyond else ""
                cells = (str(earlier), str(now), f"{change:.2f}", verdict)
                table.add_row(case, name, side, *cells)
        return table

    def draw(self, path: Path) -> None:
        """Draw throughput and latency as multiples of the first side's, with their spread."""
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt
        from matplotlib.ticker import LogLocator, NullFormatter

        halves = {
            "throughput: more is better": lambda name: is_rate(name),
            "latency: less is better": lambda name: name.endswith("ms"),
        }
        rows = [[row for row in self.rows() if wanted(row[1])] for wanted in halves.values()]
        height = 1.5 + 0.22 * max(len(part) for part in rows)
        figure, axes = plt.subplots(1, 2, figsize=(16, height), layout="constrained")
        shown = [*self.sides[1:], FLOOR] if self._has_floor() else self.sides[1:]
        for axis, title, part in zip(axes, halves, rows, strict=True):
            axis.set_title(f"{title} ({self.sides[0]} = 1)")
            axis.axvline(1, color="black", linewidth=1)
            axis.set_xscale("log")
            axis.xaxis.set_major_formatter("{x:g}")
            axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.tick_params(axis="x", which="both", labelsize=7)
            for number, side in enumerate(shown):
                found = [
                    (at + 0.2 * number, ratio)
                    for at, (_, _, values) in enumerate(part)
                    if (ratio := self.ratio(values, side)) and ratio.least > 0
                ]
                axis.errorbar(
                    [ratio.median for _, ratio in found],
                    [at for at, _ in found],
                    xerr=[
                        [ratio.median - ratio.least for _, ratio in found],
                        [ratio.most - ratio.median for _, ratio in found],
                    ],
                    fmt="o",
                    markersize=4,
                    capsize=2,
                    label=side,
                )
            names = [
                f"{case}, {name} ({short(statistics.median(values[self.sides[0]]))})"
                for case, name, values in part
            ]
            axis.set_yticks(range(len(part)), names, fontsize=7)
            axis.invert_yaxis()
            axis.grid(axis="x", which="both", alpha=0.3)
            axis.legend()
        figure.savefig(path, dpi=110)


def is_rate(name: str) -> bool:
    """Whether more is better."""
    return name.endswith("/s")


def spread(values: list[float]) -> Ratio:
    """Median, smallest and largest of the figures themselves."""
    return Ratio(statistics.median(values), min(values), max(values))


def short(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
