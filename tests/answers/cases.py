"""The requests: each advertised API and version, every field of a valid request mutated, once.

A case is the same for both brokers although they have given things ids of their own: it is named
by the place of the field and the number of the odd value, and made for each from its own valid
request.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from protocol.api_keys import ApiKey
from tests.frames.mutations import all_places, every_odd_value
from tests.frames.valid import Names, tree_of, valid_request


@dataclass(frozen=True, slots=True)
class Case:
    """One request. Without changes it is valid."""

    key: ApiKey
    version: int
    changes: tuple[tuple[int, int], ...] = ()
    """(number of the place, number of the odd value), inner places first."""

    def request(self, names: Names) -> Any:
        """Return the message, about things of one of the brokers."""
        request = valid_request(self.key, self.version, names)
        places = list(all_places(tree_of(self.key, self.version), request))
        values = [every_odd_value(places[at], request)[number] for at, number in self.changes]
        for (at, _), value in zip(self.changes, values, strict=True):
            places[at].set(request, value)
        return request

    def text(self, names: Names) -> str:
        """Return the case for a person to read."""
        request = valid_request(self.key, self.version, names)
        places = list(all_places(tree_of(self.key, self.version), request))
        changed = [
            f"{places[at].label}={_shown(every_odd_value(places[at], request)[number])}"
            for at, number in self.changes
        ]
        return f"{self.key.name} v{self.version} {', '.join(changed) or 'valid'}"


def common_versions(
    ours: Mapping[ApiKey, tuple[int, int]], theirs: Mapping[int, tuple[int, int]]
) -> Iterator[tuple[ApiKey, int]]:
    """Yield each API and version that both brokers serve."""
    for key, (first, last) in sorted(ours.items()):
        if key in theirs:
            low, high = theirs[key]
            for version in range(max(first, low), min(last, high) + 1):
                yield key, version


def cases_of(key: ApiKey, version: int, names: Names) -> list[Case]:
    """Return the valid request, and every field of it at every odd value."""
    request = valid_request(key, version, names)
    cases = [Case(key, version)]
    for at, place in enumerate(all_places(tree_of(key, version), request)):
        cases += [
            Case(key, version, ((at, number),))
            for number in range(len(every_odd_value(place, request)))
        ]
    return cases


def pairs_of(key: ApiKey, version: int, names: Names, rng: Random, count: int) -> list[Case]:
    """Return requests with two odd values, for some of all pairs."""
    request = valid_request(key, version, names)
    places = [
        (at, len(every_odd_value(place, request)), len(place.path))
        for at, place in enumerate(all_places(tree_of(key, version), request))
    ]
    places = [place for place in places if place[1]]
    if len(places) < 2:
        return []
    cases = []
    for _ in range(count):
        both = sorted(rng.sample(places, 2), key=lambda place: -place[2])
        cases.append(Case(key, version, tuple((at, rng.randrange(n)) for at, n, _ in both)))
    return cases


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 50 else f"{text[:47]}..."
