# Written by scripts/message-types from describe_user_scram_credentials.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, NullableArrayField
from protocol.schema.lazy import Elements

class UserName(Value, metaclass=Group):
    name: str
    def __init__(
        self,
        *,
        name: str = ...,
    ) -> None: ...

class DescribeUserScramCredentialsRequest(Message, metaclass=Api):
    users: NullableArrayField[UserName]
    def __init__(
        self,
        *,
        users: Elements[UserName] | None = ...,
    ) -> None: ...

class CredentialInfo(Value, metaclass=Group):
    mechanism: int
    iterations: int
    def __init__(
        self,
        *,
        mechanism: int = ...,
        iterations: int = ...,
    ) -> None: ...

class DescribeUserScramCredentialsResult(Value, metaclass=Group):
    user: str
    error_code: int
    error_message: str | None
    credential_infos: ArrayField[CredentialInfo]
    def __init__(
        self,
        *,
        user: str = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        credential_infos: Elements[CredentialInfo] = ...,
    ) -> None: ...

class DescribeUserScramCredentialsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: ArrayField[DescribeUserScramCredentialsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        results: Elements[DescribeUserScramCredentialsResult] = ...,
    ) -> None: ...
