"""The table of states is whole: every state can be reached, and left but for the last."""

from itertools import chain

from broker.security.authentication.states import ANSWERED, RAW, TRANSITIONS, Event, SaslState
from protocol.api_keys import ApiKey


def test_every_state_but_failed_can_be_left_and_every_state_be_reached() -> None:
    assert set(TRANSITIONS) == set(SaslState)
    assert [state for state, ways in TRANSITIONS.items() if not ways] == [SaslState.FAILED]
    reached = {SaslState.FIRST, *chain(*(ways.values() for ways in TRANSITIONS.values()))}
    assert reached == set(SaslState)


def test_every_event_means_something_somewhere() -> None:
    assert set(chain(*TRANSITIONS.values())) == set(Event)


def test_a_failure_always_ends_it() -> None:
    for state, ways in TRANSITIONS.items():
        if state is not SaslState.FAILED:
            assert ways[Event.FAILURE] is SaslState.FAILED


def test_only_proof_completes_it_and_only_an_exchange_has_proof() -> None:
    ways = [
        (state, event)
        for state, events in TRANSITIONS.items()
        for event, to in events.items()
        if to is SaslState.COMPLETE
    ]
    assert ways == [(SaslState.TOKENS, Event.PROOF), (SaslState.RAW_TOKENS, Event.PROOF)]


def test_s_sec_1_nothing_but_three_apis_is_answered_before() -> None:
    assert set(ANSWERED) == set(SaslState) - {SaslState.COMPLETE}
    assert set(chain(*ANSWERED.values())) == {
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
    }
    assert all(not ANSWERED[state] for state in (*RAW, SaslState.FAILED))
