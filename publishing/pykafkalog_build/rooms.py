"""The rooms of the sources, and every module in them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rooms:
    """The top-level packages that a wheel has within `pykafkalog`."""

    names: frozenset[str]
    modules: frozenset[str]
    """Dotted names of every package and module in them, the rooms included."""

    def holds(self, module: str) -> bool:
        """Whether an absolute import of `module` looks into a room."""
        return module.partition(".")[0] in self.names
