"""The table of error codes against kio's, which is made from Kafka's own."""

from kio.schema.errors import ErrorCode as KioErrorCode

from protocol.errors import ErrorCode, KafkaError


def test_names_numbers_and_retriability() -> None:
    ours = {(code.name, code.value, code.retriable) for code in ErrorCode}
    theirs = {(code.name.upper(), code.value, code.retriable) for code in KioErrorCode}
    assert ours - theirs == {
        ("GROUP_DELETION_FAILED", 134, False),
        ("STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", 135, False),
        ("CONTROLLER_ID_NOT_REGISTERED", 136, False),
    }, "kio does not know 4.4 yet"
    assert theirs <= ours


def test_an_error_speaks_for_itself_or_with_the_message_given() -> None:
    assert str(KafkaError(ErrorCode.INVALID_CONFIG)) == "Invalid config."
    error = KafkaError(ErrorCode.INVALID_CONFIG, "x must be positive")
    assert (str(error), error.code, error.message) == (
        "x must be positive",
        ErrorCode.INVALID_CONFIG,
        "x must be positive",
    )


def test_a_message_fits_a_text_of_the_protocol_whatever_it_quotes() -> None:
    error = KafkaError(ErrorCode.INVALID_CONFIG, "é" * 32_767)
    assert error.message is not None
    assert len(error.message.encode()) < 32_767
    assert str(error) == error.message
    assert error.message.startswith("ééé")
