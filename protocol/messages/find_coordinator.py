"""FindCoordinator (key 10): find the broker that coordinates a group or a transactional id.

* v1 adds the key type (0 group, 1 transaction, 2 share group from v6) and error messages.
* v3 is flexible.
* v4 asks for many keys at once (KIP-699): coordinator_keys replaces key, and coordinators replaces
  the single result of the response.
* v5 may answer TRANSACTION_ABORTABLE.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int8, Int16, Int32, Str, V

# fmt: off

FindCoordinatorRequest = Api(
    ApiKey.FIND_COORDINATOR, "FindCoordinatorRequest", "0-6", "3+",
    "key"              / V("0-3", Str),
    "key_type"         / V("1+",  Int8),
    "coordinator_keys" / V("4+",  Array(Str)),
)

Coordinator = Group(
    "Coordinator",
    "key"           / V("4+", Str),
    "node_id"       / V("4+", Int32),
    "host"          / V("4+", Str),
    "port"          / V("4+", Int32),
    "error_code"    / V("4+", Int16),
    "error_message" / V("4+", Str, nullable="4+"),
)

FindCoordinatorResponse = Api(
    ApiKey.FIND_COORDINATOR, "FindCoordinatorResponse", "0-6", "3+",
    "throttle_time_ms" / V("1+",  Int32),
    "error_code"       / V("0-3", Int16),
    "error_message"    / V("1-3", Str, nullable="1-3"),
    "node_id"          / V("0-3", Int32),
    "host"             / V("0-3", Str),
    "port"             / V("0-3", Int32),
    "coordinators"     / V("4+",  Array(Coordinator)),
)
