"""A family of very many samples, kept as the lines of Prometheus' text format.

`prometheus_client` takes five microseconds for a sample, and there are about twenty per partition.
Here the labels of a partition are escaped once, and a sample is one formatted string. The format:
https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

import re
from collections.abc import Iterator
from typing import Final, Literal

LINES_A_CHUNK: Final = 1000
"""Joined in one go, and as soon as there are so many: some hundred microseconds. To let go of a
hundred thousand strings at once would take ten milliseconds."""

Kind = Literal["counter", "gauge", "untyped"]
_LABEL: Final = re.compile(r'[{,](\w+)="')
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def labels(**values: str) -> str:
    """The labels of a sample as they stand between the braces."""
    return ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in values.items())


class Lines:
    """One family. A counter's `name` is that of its samples, with `_total` where it has one."""

    __slots__ = ("_done", "_kind", "_lines", "_text", "name")

    def __init__(self, name: str, kind: Kind, text: str) -> None:
        self.name = name
        self._kind = kind
        self._text = text
        self._done: list[bytes] = []
        self._lines: list[str] = []

    def add(self, labels: str, value: float) -> None:
        """A sample. `labels`: as `labels` returns them, or empty."""
        lines = self._lines
        lines.append(f"{self.name}{{{labels}}} {value}\n" if labels else f"{self.name} {value}\n")
        if len(lines) >= LINES_A_CHUNK:
            self._join()

    def _join(self) -> None:
        self._done.append("".join(self._lines).encode())
        self._lines.clear()

    @property
    def kind(self) -> str:
        """As TYPE says it."""
        return self._kind

    @property
    def documentation(self) -> str:
        """As HELP says it."""
        return self._text

    def label_names(self) -> set[str]:
        """Of the samples so far."""
        text = b"".join(self._done).decode() + "".join(self._lines)
        return set(_LABEL.findall(text))

    def chunks(self) -> Iterator[bytes]:
        """The text, some lines at a time."""
        yield f"# HELP {self.name} {self._text}\n# TYPE {self.name} {self._kind}\n".encode()
        if self._lines:
            self._join()
        yield from self._done
