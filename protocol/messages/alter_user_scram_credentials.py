"""AlterUserScramCredentials (key 51): set and delete SCRAM credentials of users (KIP-554).

Flexible from its first version. Passwords are salted by the client.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Bytes, Group, Int8, Int16, Int32, Str, V

# fmt: off

ScramCredentialDeletion = Group(
    "ScramCredentialDeletion",
    "name"      / V("0+", Str),
    "mechanism" / V("0+", Int8),
)

ScramCredentialUpsertion = Group(
    "ScramCredentialUpsertion",
    "name"            / V("0+", Str),
    "mechanism"       / V("0+", Int8),
    "iterations"      / V("0+", Int32),
    "salt"            / V("0+", Bytes),
    "salted_password" / V("0+", Bytes),
)

AlterUserScramCredentialsRequest = Api(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "AlterUserScramCredentialsRequest", "0", "0+",
    "deletions"  / V("0+", Array(ScramCredentialDeletion)),
    "upsertions" / V("0+", Array(ScramCredentialUpsertion)),
)

AlterUserScramCredentialsResult = Group(
    "AlterUserScramCredentialsResult",
    "user"          / V("0+", Str),
    "error_code"    / V("0+", Int16),
    "error_message" / V("0+", Str, nullable="0+"),
)

AlterUserScramCredentialsResponse = Api(
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "AlterUserScramCredentialsResponse", "0", "0+",
    "throttle_time_ms" / V("0+", Int32),
    "results"          / V("0+", Array(AlterUserScramCredentialsResult)),
)
