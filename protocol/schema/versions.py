"""Version ranges in the notation of Kafka's message definitions.

`"3+"` is version 3 and all later ones, `"0-4"` a closed range, `"7"` a single version, `"none"` no
version at all. Ranges are plain `range` objects, used as `version in versions`.
"""

from functools import cache

LATEST = 1 << 15
"""Above every version a header can carry (versions are int16)."""


@cache  # a few dozen texts make up all declarations
def version_range(text: str | None) -> range:
    """The versions that `text` stands for; None is the empty range.

    Raises ValueError if the text is not a range.
    """
    if text is None or text == "none":
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), LATEST)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)
