"""Heartbeat (key 12): keep a group member's session alive.

* v1 adds the throttle time; v3 group_instance_id; v4 is flexible.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Int16, Int32, Str, V

# fmt: off

HeartbeatRequest = Api(
    ApiKey.HEARTBEAT, "HeartbeatRequest", "0-4", "4+",
    "group_id"          / V("0+", Str),
    "generation_id"     / V("0+", Int32),
    "member_id"         / V("0+", Str),
    "group_instance_id" / V("3+", Str, nullable="3+"),
)

HeartbeatResponse = Api(
    ApiKey.HEARTBEAT, "HeartbeatResponse", "0-4", "4+",
    "throttle_time_ms" / V("1+", Int32),
    "error_code"       / V("0+", Int16),
)
