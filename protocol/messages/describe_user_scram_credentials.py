"""DescribeUserScramCredentials (key 50): list the SCRAM mechanisms of users (KIP-554).

Flexible from its first version. Neither salts nor keys are ever sent.
"""

from protocol.api_keys import ApiKey
from protocol.schema import Api, Array, Group, Int8, Int16, Int32, Str, V

# fmt: off

UserName = Group(
    "UserName",
    "name" / V("0+", Str),
)

DescribeUserScramCredentialsRequest = Api(
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "DescribeUserScramCredentialsRequest", "0", "0+",
    "users" / V("0+", Array(UserName), nullable="0+"),
)

CredentialInfo = Group(
    "CredentialInfo",
    "mechanism"  / V("0+", Int8),
    "iterations" / V("0+", Int32),
)

DescribeUserScramCredentialsResult = Group(
    "DescribeUserScramCredentialsResult",
    "user"             / V("0+", Str),
    "error_code"       / V("0+", Int16),
    "error_message"    / V("0+", Str, nullable="0+"),
    "credential_infos" / V("0+", Array(CredentialInfo)),
)

DescribeUserScramCredentialsResponse = Api(
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "DescribeUserScramCredentialsResponse", "0", "0+",
    "throttle_time_ms" / V("0+", Int32),
    "error_code"       / V("0+", Int16),
    "error_message"    / V("0+", Str, nullable="0+"),
    "results"          / V("0+", Array(DescribeUserScramCredentialsResult)),
)
