"""`server.properties`: the text format of `java.util.Properties`, and `--override key=value`.

S-CFG-1: `#` and `!` comments, `\\` continuation, `\\uXXXX`, `:` `=` or blanks between key and
value; of a key that is given twice the later one wins. The parser is the javaproperties package
(`config.java_properties`), imported when a file is read.
"""

from config.definition import ConfigError


def load_properties(text: str) -> dict[str, str]:
    """Keys and values of a properties file's text. Raises ConfigError for a broken escape."""
    from config import java_properties

    try:
        return dict(java_properties.loads(text))
    except java_properties.InvalidUEscapeError as error:
        raise ConfigError(f"Malformed \\uxxxx encoding: {error}") from None


def parse_override(text: str) -> tuple[str, str]:
    """One `--override` argument: the key and the value around the first `=`.

    Raises ConfigError, worded as Kafka's command lines do.
    """
    key, separator, value = text.partition("=")
    key = key.strip()
    if not separator or not key:
        raise ConfigError(f"Invalid command line properties: {text}")
    return key, value.strip()
