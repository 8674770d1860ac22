"""Tries the dashboard of dashboards/ on real programs: a broker under load, and Prometheus.

    scripts/dashboard [--seconds 90] [--picture docs/dashboard.png] [--keep]

Starts a broker, a Prometheus with dashboards/prometheus.yml (its target and its interval replaced)
and clients that produce, consume, fall behind and commit transactions. Then sends every query of
every panel to Prometheus, over the whole time; a query that returns no data, or that Prometheus
refuses, is an error. Draws the answers as the dashboard lays out its panels.

Neither Debian nor PyPI, npm or the Go proxy has a package of Grafana, so matplotlib draws the
picture from the answers that Grafana would get. --keep leaves everything running until Ctrl-C, to
connect a Grafana of one's own.
"""

import argparse
import json
import math
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.broker_process import BrokerProcess  # noqa: E402
from tests.support.ports import free_port  # noqa: E402

DASHBOARD = ROOT / "dashboards" / "pykafkalog.json"
SCRAPES = ROOT / "dashboards" / "prometheus.yml"
INTERVAL = "1s"
VARIABLES = {"$__rate_interval": "5s", "$instance": ".*"}
STEP_S = 2
FIRST_DATA_S = 30


# ---- load


class Load:
    """Clients in threads, until `stop`."""

    def __init__(self, bootstrap: str) -> None:
        self._settings = {"bootstrap.servers": bootstrap, "log_level": 2}
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=work, daemon=True)
            for work in (self._produce, self._commit, self._follow, self._fall_behind)
        ]

    def start(self) -> None:
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient(self._settings)
        wanted = [NewTopic(name, 4, 1) for name in ("orders", "clicks", "payments")]
        for done in admin.create_topics(wanted).values():
            done.result(10)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(10)

    def _produce(self) -> None:
        from confluent_kafka import Producer

        producer = Producer(self._settings | {"linger.ms": 5})
        began = time.monotonic()
        while not self._stopped.wait(0.05):
            wave = 1 + math.sin((time.monotonic() - began) / 8)
            for topic, count, size in (("orders", 60, 400), ("clicks", 150, 120)):
                for _ in range(int(count * wave)):
                    producer.produce(topic, b"x" * size)
            producer.poll(0)
        producer.flush(5)

    def _commit(self) -> None:
        from confluent_kafka import Producer

        producer = Producer(self._settings | {"transactional.id": "payments"})
        producer.init_transactions(15)
        number = 0
        while not self._stopped.wait(0.2):
            producer.begin_transaction()
            for _ in range(20):
                producer.produce("payments", b"p" * 200)
            number += 1
            if number % 7:
                producer.commit_transaction(15)
            else:
                producer.abort_transaction(15)

    def _follow(self) -> None:
        self._consume("billing", ["orders", "payments"], pause_s=0.0)

    def _fall_behind(self) -> None:
        self._consume("reports", ["clicks"], pause_s=0.08)

    def _consume(self, group: str, topics: list[str], *, pause_s: float) -> None:
        from confluent_kafka import Consumer

        consumer = Consumer(
            self._settings
            | {
                "group.id": group,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 1000,
            }
        )
        consumer.subscribe(topics)
        while not self._stopped.is_set():
            consumer.consume(200, 0.1)
            self._stopped.wait(pause_s)
        consumer.close()


# ---- Prometheus


class Prometheus:
    """A Prometheus with the shipped file, in which broker's address and interval are replaced."""

    def __init__(self, directory: Path, target: str) -> None:
        program = shutil.which("prometheus")
        if program is None:
            raise SystemExit("there is no prometheus: apt-get install prometheus")
        config = SCRAPES.read_text()
        config = config.replace("127.0.0.1:9404", target)
        config = re.sub(r"scrape_interval: \S+", f"scrape_interval: {INTERVAL}", config)
        path = directory / "prometheus.yml"
        path.write_text(config)
        self.address = f"http://127.0.0.1:{free_port()}"
        with (directory / "prometheus.out").open("wb") as output:
            self._process = subprocess.Popen(
                [
                    program,
                    f"--config.file={path}",
                    f"--storage.tsdb.path={directory / 'data'}",
                    f"--web.listen-address={self.address.removeprefix('http://')}",
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)

    def ask(self, path: str, **parameters: object) -> list[dict]:
        """Return `result` of the answer. Raises RuntimeError with the error of Prometheus."""
        url = f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                return json.load(response)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error).get("error", str(error))) from None

    def wait_first_data(self) -> None:
        ends = time.monotonic() + FIRST_DATA_S
        while time.monotonic() < ends:
            try:
                if self.ask("query", query="kafka_server_kafkaserver_brokerstate"):
                    return
            except (OSError, RuntimeError):
                pass
            time.sleep(0.2)
        raise SystemExit("Prometheus has no data of the broker")


# ---- panels


def panels() -> list[dict]:
    """The panels with queries, in the dashboard's order."""
    found = json.loads(DASHBOARD.read_text())["panels"]
    return [panel for panel in found if panel["type"] != "row"]


def query(panel_target: dict) -> str:
    text = panel_target["expr"]
    for name, value in VARIABLES.items():
        text = text.replace(name, value)
    return text


def legend(pattern: str, labels: dict[str, str]) -> str:
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match[1], ""), pattern)


def numbers(series: dict) -> list[tuple[float, float]]:
    """(time, value) of a series, without NaN."""
    return [(at, value) for at, text in series["values"] if not math.isnan(value := float(text))]


def ask_all(prometheus: Prometheus, start: float, end: float) -> tuple[dict, list[str]]:
    """Return (panel's id to its (legend, points), errors) for the queries of all panels."""
    found: dict[int, list[tuple[str, list[tuple[float, float]]]]] = {}
    wrong = []
    for panel in panels():
        found[panel["id"]] = []
        for target in panel["targets"]:
            try:
                series = prometheus.ask(
                    "query_range", query=query(target), start=start, end=end, step=STEP_S
                )
            except RuntimeError as error:
                wrong.append(f"{panel['title']}: {target['expr']}: {error}")
                continue
            lines = [
                (legend(target["legendFormat"], one["metric"]), points)
                for one in series
                if (points := numbers(one))
            ]
            if not lines:
                wrong.append(f"{panel['title']}: no data for {target['expr']}")
            found[panel["id"]] += lines
    return found, wrong


# ---- the picture

COLUMNS = 24
UNIT_SCALES = {"Bps": (1e6, "MB/s"), "bytes": (1e6, "MB"), "percentunit": (0.01, "%")}
UNIT_NAMES = {"reqps": "/s", "short": "", "none": "", "s": "s", "ms": "ms"}
MOST_LINES = 8


def draw(found: dict, start: float, path: Path) -> None:
    from matplotlib.figure import Figure

    every = panels()
    rows = sorted({panel["gridPos"]["y"] for panel in every})
    heights = [max(p["gridPos"]["h"] for p in every if p["gridPos"]["y"] == y) for y in rows]
    figure = Figure(figsize=(16, sum(heights) * 0.36), layout="constrained")
    grid = figure.add_gridspec(len(rows), COLUMNS, height_ratios=heights)
    for panel in every:
        where = panel["gridPos"]
        axis = figure.add_subplot(
            grid[rows.index(where["y"]), where["x"] : where["x"] + where["w"]]
        )
        axis.set_title(panel["title"], loc="left", fontsize=10)
        if panel["type"] == "stat":
            draw_number(axis, panel, found[panel["id"]])
        else:
            draw_lines(axis, panel, found[panel["id"]], start)
    figure.savefig(path, dpi=80)


def draw_number(axis, panel: dict, lines: list) -> None:
    value = f"{lines[0][1][-1][1]:g}" if lines else "no data"
    for mapping in panel["fieldConfig"]["defaults"]["mappings"]:
        value = mapping["options"].get(value, {}).get("text", value)
    axis.axis("off")
    axis.text(0.5, 0.45, value, ha="center", va="center", fontsize=22, color="#2a9d3a")


def draw_lines(axis, panel: dict, lines: list, start: float) -> None:
    unit = panel["fieldConfig"]["defaults"]["unit"]
    scale, name = UNIT_SCALES.get(unit, (1, UNIT_NAMES.get(unit, unit)))
    lines = sorted(lines, key=lambda line: -max(value for _, value in line[1]))
    for label, points in lines[:MOST_LINES]:
        axis.plot(
            [at - start for at, _ in points],
            [value / scale for _, value in points],
            label=label.strip() or panel["title"],
            linewidth=1,
        )
    axis.set_ylim(bottom=0)
    axis.set_ylabel(name, fontsize=8)
    axis.tick_params(labelsize=7)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=6, loc="upper left", framealpha=0.6)


# ---- the whole run


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=90.0, help="of load (90)")
    parser.add_argument("--picture", type=Path, default=ROOT / "docs" / "dashboard.png")
    parser.add_argument("--keep", action="store_true", help="leave all running until Ctrl-C")
    args = parser.parse_args()
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        target = f"127.0.0.1:{free_port()}"
        broker = stack.enter_context(
            BrokerProcess(directory / "broker", {"metrics.http.listener": target})
        )
        prometheus = Prometheus(directory, target)
        stack.callback(prometheus.stop)
        prometheus.wait_first_data()
        load = Load(broker.bootstrap)
        load.start()
        stack.callback(load.stop)
        print(f"broker {broker.bootstrap}, its metrics {target}, Prometheus {prometheus.address}")
        start = time.time()
        time.sleep(args.seconds)
        found, wrong = ask_all(prometheus, start, time.time())
        draw(found, start, args.picture)
        count = sum(len(panel["targets"]) for panel in panels())
        print(f"{len(panels())} panels, {count} queries, {len(wrong)} without data or wrong")
        print("\n".join(wrong) or f"drawn: {args.picture}")
        if args.keep:
            print("Ctrl-C ends it")
            threading.Event().wait()
    return 1 if wrong else 0


if __name__ == "__main__":
    # Raise KeyboardInterrupt on either signal, so that `main` stops the processes it started.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
