# pykafkalog as an image: python:slim (built with PGO and LTO), a user of its own, one volume.
# docs/containers.md says what each line is for.
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
COPY tls tls
COPY broker broker
COPY tools tools
COPY pipeline pipeline
# The wheel from these sources and nothing else, with the hot modules compiled for this platform.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
RUN python -m venv /opt/pykafkalog \
 && /opt/pykafkalog/bin/pip install --no-cache-dir --config-settings compiled=true . \
 && /opt/pykafkalog/bin/python -m compileall -q /opt/pykafkalog/lib

FROM python:3.11-slim-bookworm
# A number that is always the same, because files in a volume belong to it; and the directory has its
# owner before it is a volume, because a new named volume takes that over from the image.
RUN useradd --uid 1000 --user-group --no-create-home --shell /usr/sbin/nologin \
    --home-dir /var/lib/pykafkalog pykafkalog \
 && install --directory --owner pykafkalog --group pykafkalog /var/lib/pykafkalog
COPY --from=build /opt/pykafkalog /opt/pykafkalog
COPY containers/server.properties /etc/pykafkalog/server.properties
ENV PATH=/opt/pykafkalog/bin:$PATH PYTHONUNBUFFERED=1
USER pykafkalog
WORKDIR /var/lib/pykafkalog
VOLUME /var/lib/pykafkalog
EXPOSE 9092 9404
# Healthy is what answers ApiVersions, wherever the broker listens.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s \
    CMD ["python", "-P", "-m", "pykafkalog.tools.healthcheck"]
ENTRYPOINT ["pykafkalog-broker", "/etc/pykafkalog/server.properties"]
