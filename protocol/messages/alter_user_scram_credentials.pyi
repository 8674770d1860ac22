# Written by scripts/message-types from alter_user_scram_credentials.py.

from protocol.schema import Api, Group, Message, Value
from protocol.schema.fields import ArrayField, Blob
from protocol.schema.lazy import Elements

class ScramCredentialDeletion(Value, metaclass=Group):
    name: str
    mechanism: int
    def __init__(
        self,
        *,
        name: str = ...,
        mechanism: int = ...,
    ) -> None: ...

class ScramCredentialUpsertion(Value, metaclass=Group):
    name: str
    mechanism: int
    iterations: int
    salt: Blob
    salted_password: Blob
    def __init__(
        self,
        *,
        name: str = ...,
        mechanism: int = ...,
        iterations: int = ...,
        salt: Blob = ...,
        salted_password: Blob = ...,
    ) -> None: ...

class AlterUserScramCredentialsRequest(Message, metaclass=Api):
    deletions: ArrayField[ScramCredentialDeletion]
    upsertions: ArrayField[ScramCredentialUpsertion]
    def __init__(
        self,
        *,
        deletions: Elements[ScramCredentialDeletion] = ...,
        upsertions: Elements[ScramCredentialUpsertion] = ...,
    ) -> None: ...

class AlterUserScramCredentialsResult(Value, metaclass=Group):
    user: str
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        user: str = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class AlterUserScramCredentialsResponse(Message, metaclass=Api):
    throttle_time_ms: int
    results: ArrayField[AlterUserScramCredentialsResult]
    def __init__(
        self,
        *,
        throttle_time_ms: int = ...,
        results: Elements[AlterUserScramCredentialsResult] = ...,
    ) -> None: ...
