"""Whatever stands in a configuration file, the answer is a config or one clear line."""

from hypothesis import given
from hypothesis import strategies as st

from config.broker_config import BrokerConfig
from config.broker_keys import BROKER_KEYS
from config.definition import ConfigError
from config.properties import load_properties
from config.topic_config import TopicConfig
from config.topic_keys import TOPIC_KEYS

texts = st.one_of(
    st.text(max_size=12),
    st.integers(-(1 << 70), 1 << 70).map(str),
    st.sampled_from(["true", "", "a,b", "A://:1", "PLAINTEXT://[::1]:0,B://h:9", "*", "0:1"]),
)
broker_names = st.sampled_from([key.name for key in BROKER_KEYS])
topic_names = st.sampled_from([key.name for key in TOPIC_KEYS])
DEFAULTS = BrokerConfig.parse({})


@given(st.dictionaries(broker_names, texts, max_size=3))
def test_a_broker_config_is_parsed_or_refused(props: dict[str, str]) -> None:
    try:
        config = BrokerConfig.parse(props)
    except ConfigError as error:
        assert error.message
    else:
        assert config.listeners
        assert config.log_dirs


@given(st.dictionaries(topic_names, texts, max_size=3))
def test_a_topic_config_is_parsed_or_refused(props: dict[str, str]) -> None:
    try:
        TopicConfig.from_broker(DEFAULTS, props)
    except ConfigError as error:
        assert error.message


@given(st.text(alphabet=st.characters(max_codepoint=255), max_size=60))
def test_any_text_is_a_properties_file_or_refused(text: str) -> None:
    try:
        values = load_properties(text)
    except ConfigError as error:
        assert error.message
    else:
        assert all(isinstance(value, str) for value in values.values())
