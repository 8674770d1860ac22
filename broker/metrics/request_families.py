"""Requests by API and phase (Kafka's `RequestMetrics`), and the handler workers.

A quantile covers the last minute or two and is the bound of a bucket (`storage.distribution`); it
is NaN if there was no such request. `count` and `sum` of a phase are since the start.
"""

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, UntypedMetricFamily

from broker.metrics.recent import Recent
from broker.metrics.samples import Family, labelled, summary
from broker.network.request_services import RequestStatistics
from storage.waits import PAUSE

_PREFIX: Final = "kafka_network_requestmetrics_"
_PHASES: Final = (
    ("total", "totaltimems", "Milliseconds from the arrival of a request to its sent reply"),
    ("queue", "requestqueuetimems", "Milliseconds until the turn of a request came"),
    ("local", "localtimems", "Milliseconds that its handler was at work"),
    ("remote", "remotetimems", "Milliseconds that it was parked"),
    (
        "response_queue",
        "responsequeuetimems",
        "Milliseconds that its reply waited for those which leave with it",
    ),
    ("send", "responsesendtimems", "Milliseconds to encode and send the reply"),
)


async def request_families(statistics: RequestStatistics, recent: Recent) -> list[Family]:
    """Return the families of requests and workers."""
    requests = dict(statistics.requests)
    if "Fetch" in requests:
        # Kafka counts fetches under both names; dashboards query either.
        requests["FetchConsumer"] = requests["Fetch"]
    counts = {api: times.requests for api, times in requests.items()}
    errors = {api: times.errors for api, times in requests.items()}
    text = "Requests by API"
    same = f"{text}: the same number"
    failed = "Requests that failed for a fault of the broker"
    families: list[Family] = [
        labelled(CounterMetricFamily, _PREFIX + "requests", text, "request", counts),
        labelled(UntypedMetricFamily, _PREFIX + "requestspersec", same, "request", counts),
        labelled(CounterMetricFamily, _PREFIX + "errors", failed, "request", errors),
    ]
    for phase, name, text in _PHASES:
        found = {api: times.phases[phase] for api, times in requests.items()}
        families.append(summary(_PREFIX + name, text, found))
        await PAUSE
    return [*families, *_pool(statistics, recent)]


def _pool(statistics: RequestStatistics, recent: Recent) -> Iterator[Family]:
    pool = statistics.pool
    yield GaugeMetricFamily(
        "kafka_network_requestchannel_requestqueuesize",
        "Requests that wait for a handler worker",
        value=pool.queued,
    )
    prefix = "kafka_server_kafkarequesthandlerpool_"
    yield GaugeMetricFamily(prefix + "handlers", "Handler workers", value=pool.workers)
    yield GaugeMetricFamily(prefix + "handlersbusy", "Handler workers at work", value=pool.busy)
    yield CounterMetricFamily(
        prefix + "busyseconds", "Working time of all handler workers", value=pool.busy_s
    )
    busy = recent.rate("handlers", total=pool.busy_s)
    if busy is not None:
        idle = min(max(1 - busy / pool.workers, 0.0), 1.0)
        for name in ("avgidle_percent", "avgidlepercent_oneminuterate"):
            yield GaugeMetricFamily(
                prefix + "requesthandler" + name,
                "Share of their time, 0 to 1, that the handler workers were free lately",
                value=idle,
            )
