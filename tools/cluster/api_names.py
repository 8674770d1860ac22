"""Names of APIs by their key, also of those that only newer brokers of Apache Kafka have."""

from typing import Final

from protocol.api_keys import ApiKey

_NEWER: Final = {
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
    88: "StreamsGroupHeartbeat",
    89: "StreamsGroupDescribe",
    90: "DescribeShareGroupOffsets",
    91: "AlterShareGroupOffsets",
    92: "DeleteShareGroupOffsets",
}


def api_name(key: int) -> str:
    """Return the name of an API, such as `ListOffsets`; `API 99` for an unknown key."""
    try:
        words = ApiKey(key).name
    except ValueError:
        return _NEWER.get(key, f"API {key}")
    return "".join(word.capitalize() for word in words.split("_"))
