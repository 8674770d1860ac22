"""A principal in its two parts, as requests about delegation tokens name it."""

from typing import Final, NamedTuple

USER: Final = "User"


class Principal(NamedTuple):
    """A kind, which is `User`, and a name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def of(cls, text: str) -> "Principal":
        """Parse `User:alice`. Raises ValueError."""
        kind, colon, name = text.partition(":")
        if not colon:
            raise ValueError(f"no principal: {text}")
        return cls(kind, name)
