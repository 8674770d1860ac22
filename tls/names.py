"""Names in certificates as Java prints them: Kafka's principals and refusals hold them.

`X500Principal.getName()` prints a name by RFC 2253, the last part first, with its own ideas of what
is escaped (S-TLS-1). Parts that RFC 2253 has no keyword for, an e-mail address for instance, stand
there as `1.2.840.113549.1.9.1=#1607…`: number and value as they are encoded.
"""

from collections.abc import Iterator
from typing import Final

from cryptography.x509 import Certificate, ExtensionNotFound, SubjectAlternativeName

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_TEXTS: Final = frozenset((12, 19, 20, 22, 27, 28, 30))
"""Tags: UTF8, Printable, T61, IA5, General, Universal and BMP strings."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_BLANKS: Final = " \r"


def distinguished_name(certificate: Certificate) -> str:
    """Return the subject as `X500Principal.getName()` prints it."""
    return name_in_java(certificate.subject.public_bytes())


def name_in_java(der: bytes) -> str:
    """Return a Name, given in DER, as `X500Principal.getName()` prints it."""
    (_, sequence, _) = next(_elements(der))
    parts = []
    for _, relative, _ in _elements(sequence):
        parts.append("+".join(_part(pair) for _, pair, _ in _elements(relative)))
    return ",".join(reversed(parts))


def alternative_names(certificate: Certificate) -> frozenset[str]:
    """Return the subject's alternative names, each with its kind."""
    try:
        found = certificate.extensions.get_extension_for_class(SubjectAlternativeName)
    except ExtensionNotFound:
        return frozenset()
    return frozenset(f"{type(name).__name__}:{name.value}" for name in found.value)


def _part(pair: bytes) -> str:
    (_, number, _), (tag, content, encoded) = _elements(pair)
    oid = _dotted(number)
    keyword = _KEYWORDS.get(oid)
    if keyword is None or tag not in _TEXTS:
        return f"{keyword or oid}=#{encoded.hex()}"
    return f"{keyword}={_escaped(content.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    signs = [f"\\{sign}" if sign in _ESCAPED else sign for sign in text]
    shown = "".join("\\00" if sign == "\0" else sign for sign in signs)
    lead = len(shown) - len(shown.lstrip(_BLANKS))
    trail = max(len(shown.rstrip(_BLANKS)), lead)
    return "".join(
        f"\\{sign}" if at < lead or at >= trail else sign for at, sign in enumerate(shown)
    )


def _elements(der: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield (tag, content, all of it) of each element; `der` was parsed before, so it is right."""
    at = 0
    while at < len(der):
        start, tag, size = at, der[at], der[at + 1]
        at += 2
        if size & 0x80:
            count = size & 0x7F
            size = int.from_bytes(der[at : at + count], "big")
            at += count
        yield tag, der[at : at + size], der[start : at + size]
        at += size


def _dotted(content: bytes) -> str:
    """An object identifier's content as numbers with dots."""
    numbers: list[int] = []
    value = 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            if not numbers:
                first = min(value // 40, 2)
                numbers += (first, value - 40 * first)
            else:
                numbers.append(value)
            value = 0
    return ".".join(map(str, numbers))
