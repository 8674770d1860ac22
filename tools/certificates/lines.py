"""The lines for the broker's file and for clients that use trial certificates."""

from collections.abc import Iterator
from pathlib import Path

from tools.certificates.files import AUTHORITY, BROKER


def shown_lines(directory: Path, host: str, port: int, client: str) -> Iterator[str]:
    """Yield the text: server.properties, then one paragraph for each client library."""
    ca, broker, own = directory / AUTHORITY, directory / BROKER, directory / f"{client}.pem"
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    yield f"""
# server.properties
listeners=SSL://:{port}
advertised.listeners=SSL://{address}
security.inter.broker.protocol=SSL
ssl.keystore.type=PEM
ssl.keystore.location={broker}
ssl.truststore.type=PEM
ssl.truststore.location={ca}
ssl.client.auth=required
# With this line a client is User:{client}, without it User:CN={client},O=pykafkalog trial
ssl.principal.mapping.rules=RULE:^CN=([^,]+),.*$/$1/,DEFAULT

# client.properties: Java clients, Kafka's tools, pykafkalog --command-config
security.protocol=SSL
ssl.truststore.type=PEM
ssl.truststore.location={ca}
ssl.keystore.type=PEM
ssl.keystore.location={own}

# confluent-kafka
{{"bootstrap.servers": "{address}", "security.protocol": "SSL", "ssl.ca.location": "{ca}",
 "ssl.certificate.location": "{own}", "ssl.key.location": "{own}"}}

# kafka-python
KafkaProducer(bootstrap_servers="{address}", security_protocol="SSL", ssl_cafile="{ca}",
              ssl_certfile="{own}", ssl_keyfile="{own}")

# aiokafka
AIOKafkaProducer(bootstrap_servers="{address}", security_protocol="SSL",
                 ssl_context=aiokafka.helpers.create_ssl_context(
                     cafile="{ca}", certfile="{own}", keyfile="{own}"))"""
