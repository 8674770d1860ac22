"""Names as they stand in paths and metrics: percent-encoded (Kafka's `Sanitizer`).

Letters, digits, `.`, `-` and `_` stay. So no encoded name equals the node name `<default>`.
"""


def sanitized(name: str) -> str:
    """Return the name encoded; an encoded name has no `/`, `<` or quote."""
    from urllib.parse import quote  # not needed before there is a quota or a user

    return quote(name, safe="").replace("~", "%7E")


def desanitized(text: str) -> str:
    """Return the name that was encoded."""
    from urllib.parse import unquote

    return unquote(text)
