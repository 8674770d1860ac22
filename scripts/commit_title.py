"""Holds the title of a commit: `area: verb object`, an imperative of at most 72 characters.

The hook commit-msg, which `scripts/install dev` makes, calls this with the file of the message.
Areas are in lower case, several by commas. Merges, reverts and fixups pass. CI judges no history.
"""

import re
import sys
from pathlib import Path
from typing import Final

MOST: Final = 72
_TITLE: Final = re.compile(r"[a-z][\w./-]*(?:, [a-z][\w./-]*)*: ([a-z][\w-]*),? \S.*[^\s.]")
_OTHER_MOODS: Final = re.compile(r"\w+(?:[^su]s|ed|ing)")
_IMPERATIVES: Final = frozenset(
    {"alias", "bring", "embed", "exceed", "feed", "need", "ping", "proceed", "seed", "speed"}
)
"""They only look like other forms."""
_OF_GIT: Final = ("Merge ", "Revert ", "fixup! ", "squash! ", "amend! ")


def flaw(message: str) -> str | None:
    """Say what is wrong with a message; None if nothing is."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    title, *rest = "\n".join(lines).strip().splitlines() or [""]
    if title.startswith(_OF_GIT):
        return None
    if len(title) > MOST:
        return f"the title has {len(title)} characters, {MOST} are the most"
    form = _TITLE.fullmatch(title)
    if form is None:
        return "the title is not `area: verb object`"
    if _OTHER_MOODS.fullmatch(form[1]) and form[1] not in _IMPERATIVES:
        return f"`{form[1]}` is no imperative"
    if rest and rest[0].strip():
        return "the line behind the title is not empty"
    return None


def main() -> None:
    found = flaw(Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace"))
    if found is not None:
        sys.exit(f"Not committed: {found}. CONTRIBUTING.md has the rule, --no-verify passes it by.")


if __name__ == "__main__":
    main()
