"""A family of very many samples, kept as lines of Prometheus' text format.

`prometheus_client` takes five microseconds per sample, and a partition has about twenty samples.
Here a partition's labels are escaped once, and a sample is one formatted string. The format:
https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
"""

import re
from collections.abc import Iterator
from typing import Final, Literal

LINES_A_CHUNK: Final = 1000
"""Lines are joined as soon as there are this many, which takes some hundred microseconds. Freeing a
hundred thousand strings at once would take ten milliseconds."""

Kind = Literal["counter", "gauge", "untyped"]
_LABEL: Final = re.compile(r'[{,](\w+)="')
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def labels(**values: str) -> str:
    """Return a sample's labels in the format that stands between the braces."""
    return ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in values.items())


class Lines:
    """One family. `name` is the samples' name, for a counter with its `_total`."""

    __slots__ = ("_done", "_kind", "_lines", "_text", "name")

    def __init__(self, name: str, kind: Kind, text: str) -> None:
        self.name = name
        self._kind = kind
        self._text = text
        self._done: list[bytes] = []
        self._lines: list[str] = []

    def add(self, labels: str, value: float) -> None:
        """Add a sample. `labels` is a text that the function `labels` returned, or empty."""
        lines = self._lines
        lines.append(f"{self.name}{{{labels}}} {value}\n" if labels else f"{self.name} {value}\n")
        if len(lines) >= LINES_A_CHUNK:
            self._join()

    def _join(self) -> None:
        self._done.append("".join(self._lines).encode())
        self._lines.clear()

    @property
    def kind(self) -> str:
        """The family's type, for TYPE."""
        return self._kind

    @property
    def documentation(self) -> str:
        """The family's description, for HELP."""
        return self._text

    def label_names(self) -> set[str]:
        """The names of the labels of all samples so far."""
        text = b"".join(self._done).decode() + "".join(self._lines)
        return set(_LABEL.findall(text))

    def chunks(self) -> Iterator[bytes]:
        """Yield the family's text, at most `LINES_A_CHUNK` samples at a time."""
        yield f"# HELP {self.name} {self._text}\n# TYPE {self.name} {self._kind}\n".encode()
        if self._lines:
            self._join()
        yield from self._done
