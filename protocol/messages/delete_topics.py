"""DeleteTopics (key 20): delete topics.

* v1 adds the throttle time; v3 may answer TOPIC_DELETION_DISABLED.
* v4 is flexible. v5 adds error messages and may answer THROTTLING_QUOTA_EXCEEDED.
* v6 replaces topic_names with topics: each has a name or, with a null name, an id.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int16, Int32, Str, Uuid, V

# fmt: off

DeleteTopicState = Group(
    "DeleteTopicState",
    "name"     / V("6+", Str, nullable="6+"),
    "topic_id" / V("6+", Uuid),
)

DeleteTopicsRequest = Api(
    ApiKey.DELETE_TOPICS, "DeleteTopicsRequest", "0-6", "4+",
    "topics"      / V("6+",  Array(DeleteTopicState)),
    "topic_names" / V("0-5", Array(Str)),
    "timeout_ms"  / V("0+",  Int32),
)

DeletableTopicResult = Group(
    "DeletableTopicResult",
    "name"          / V("0+", Str, nullable="6+"),
    "topic_id"      / V("6+", Uuid),
    "error_code"    / V("0+", Int16),
    "error_message" / V("5+", Str, nullable="5+"),
)

DeleteTopicsResponse = Api(
    ApiKey.DELETE_TOPICS, "DeleteTopicsResponse", "0-6", "4+",
    "throttle_time_ms" / V("1+", Int32),
    "responses"        / V("0+", Array(DeletableTopicResult)),
)
