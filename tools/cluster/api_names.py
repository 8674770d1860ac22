"""Names of APIs by their key."""

from protocol.api_keys import ApiKey


def api_name(key: int) -> str:
    """Return the name of an API, such as `ListOffsets`; `API 99` for an unknown key."""
    try:
        words = ApiKey(key).name
    except ValueError:
        return f"API {key}"
    return "".join(word.capitalize() for word in words.split("_"))
