# pykafkalog as an image: python:slim (built with PGO and LTO), a user of its own, one volume.
#
#   docker build -t pykafkalog .
#   docker run -p 9092:9092 -v kafka-logs:/var/lib/pykafkalog pykafkalog \
#       --override advertised.listeners=PLAINTEXT://localhost:9092

FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY publishing publishing
COPY pykafkalog pykafkalog
COPY config config
COPY protocol protocol
COPY storage storage
COPY broker broker
COPY tools tools
COPY pipeline pipeline
# The wheel that everyone installs, from these sources and nothing else.
RUN python -m venv /opt/pykafkalog \
 && /opt/pykafkalog/bin/pip install --no-cache-dir ".[tools]" \
 && /opt/pykafkalog/bin/python -m compileall -q /opt/pykafkalog/lib

FROM python:3.11-slim-bookworm
RUN useradd --system --uid 1000 --home-dir /var/lib/pykafkalog --create-home pykafkalog
COPY --from=build /opt/pykafkalog /opt/pykafkalog
COPY config/server.properties /etc/pykafkalog/server.properties
ENV PATH=/opt/pykafkalog/bin:$PATH PYTHONUNBUFFERED=1
USER pykafkalog
VOLUME /var/lib/pykafkalog
EXPOSE 9092 9404
# Healthy is what answers ApiVersions.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
    CMD ["python", "-m", "pykafkalog.tools.healthcheck", "127.0.0.1:9092"]
ENTRYPOINT ["pykafkalog-broker", "/etc/pykafkalog/server.properties", \
            "--override", "log.dirs=/var/lib/pykafkalog", \
            "--override", "listeners=PLAINTEXT://0.0.0.0:9092"]
