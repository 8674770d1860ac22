"""The nemesis on a stage that only notes: it ends each fault, and a seed is a plan."""

from random import Random

from tests.anomalies.faults.nemesis import DEFAULT_WEIGHTS, Nemesis, NemesisPlan

CLIENTS = ("a", "b", "c")


class NotedBroker:
    """A `Broker` that is only a word."""

    def __init__(self, calls: list[str]) -> None:
        self.state = "runs"
        self._calls = calls

    def start(self) -> None:
        self._become("runs", "dead", "start")

    def kill(self) -> None:
        self._become("dead", "runs", "kill")

    def stop(self) -> None:
        self.kill()

    def pause(self) -> None:
        self._become("paused", "runs", "pause")

    def resume(self) -> None:
        self._become("runs", "paused", "resume")

    def _become(self, state: str, before: str, call: str) -> None:
        assert self.state == before
        self.state = state
        self._calls.append(f"{call} broker")


class NotedClients:
    """Three `Clients`; processes are numbers."""

    def __init__(self, calls: list[str]) -> None:
        self.paused: set[int] = set()
        self.pids = dict(zip(CLIENTS, range(3), strict=True))
        self._last_pid = 2
        self._calls = calls

    def pick(self, random: Random, *, transactional: bool) -> str | None:
        running = [name for name in CLIENTS if self.pids[name] not in self.paused]
        return random.choice(running) if running else None

    def kill(self, name: str) -> None:
        self._calls.append(f"kill {name}")
        self.replace(name)

    def pause(self, name: str) -> int | None:
        self.paused.add(self.pids[name])
        self._calls.append(f"pause {name}")
        return self.pids[name]

    def resume(self, pid: int) -> None:
        self.paused.remove(pid)
        self._calls.append(f"resume {pid}")

    def replace(self, name: str) -> None:
        self._last_pid += 1
        self.pids[name] = self._last_pid
        self._calls.append(f"replace {name}")


class NotedStage:
    """A `Stage` that notes each call."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.broker, self.clients = NotedBroker(self.calls), NotedClients(self.calls)

    def start_broker(self) -> None:
        self.broker.start()

    def drop_connections(self, share: float) -> None:
        self.calls.append(f"drop {share}")


def play(seed: int, seconds: float, plan: NemesisPlan) -> tuple[Nemesis, NotedStage]:
    stage, now = NotedStage(), [0.0]
    nemesis = Nemesis(stage, Random(seed), plan, clock=lambda: now[0])
    while now[0] < seconds:
        nemesis.step()
        now[0] += 0.05
    return nemesis, stage


def test_every_kind_happens_and_nobody_stays_dead_or_paused() -> None:
    nemesis, stage = play(1, 300, NemesisPlan())
    assert set(nemesis.counts) == set(DEFAULT_WEIGHTS)
    nemesis.finish()
    assert stage.broker.state == "runs" and not stage.clients.paused


def test_a_zombie_meets_its_successor() -> None:
    _, stage = play(1, 60, NemesisPlan(weights={"zombie": 1}))
    first = stage.calls.index("resume 0")
    assert "pause a" in stage.calls[:first] and "replace a" in stage.calls[:first]


def test_a_seed_is_a_plan() -> None:
    one, two, other = (play(seed, 120, NemesisPlan())[1].calls for seed in (1, 1, 2))
    assert one == two != other


def test_without_weights_nothing_happens() -> None:
    nemesis, stage = play(1, 60, NemesisPlan(weights={}))
    assert not stage.calls and not nemesis.counts
