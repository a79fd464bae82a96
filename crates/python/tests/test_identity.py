"""Records on the disk are those of one pacing rule: when the rule changes, its old records are refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable

import meshpace
import pytest
from meshpace._identity import identify

CHAIN = {"duration": "4 s", "topology": {"hops": 3}, "flow": [{}]}

K = 0.1


def helper(rtt: float) -> float:
    return K * rtt


class Global:
    def __init__(self, payload: int) -> None: ...

    def on_sample(self, sample: Any) -> float:
        return K * sample.rtt


class Helper:
    def __init__(self, payload: int) -> None: ...

    def on_sample(self, sample: Any) -> float:
        return helper(sample.rtt)


class Attribute:
    k = 0.1

    def __init__(self, payload: int) -> None: ...

    def on_sample(self, sample: Any) -> float:
        return self.k * sample.rtt


def captured(k: float) -> type:
    class Captured:
        def __init__(self, payload: int) -> None: ...

        def on_sample(self, sample: Any) -> float:
            return k * sample.rtt

    return Captured


def goodputs(rule: Callable[[int], Any], out: Path | None, id: str | None = None) -> list[float]:
    results = meshpace.Scenario.build(CHAIN).paced(rule, name="mine", id=id).sweep(seeds=2, out=out)
    return [run["aggregate_goodput_bps"] for run in results]


@pytest.mark.parametrize("case", ["global", "helper", "attribute", "captured"])
def test_a_rule_that_has_changed_does_not_get_the_old_records(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules: dict[str, Callable[[float], Callable[[int], Any]]] = {
        "global": lambda k: Global,
        "helper": lambda k: Helper,
        "attribute": lambda k: Attribute,
        "captured": captured,
    }
    before = goodputs(rules[case](0.1), tmp_path)
    assert goodputs(rules[case](0.1), tmp_path) == before, "the same rule makes no other"
    monkeypatch.setattr(sys.modules[__name__], "K", 3)
    monkeypatch.setattr(Attribute, "k", 3)
    name = {"attribute": "Attribute.k", "captured": "k"}.get(case, "K")
    with pytest.raises(meshpace.RecordsError, match=rf'the pacing rule "mine" before it changed \({name}: 0.1 → 3\)'):
        goodputs(rules[case](3), tmp_path)
    assert goodputs(rules[case](3), None) != before, "the change is one that shows"
    assert json.loads((tmp_path / "manifest.json").read_text())["rules"][0]["name"] == "mine"


def test_what_cannot_be_compared_needs_an_id(tmp_path: Path) -> None:
    lock = threading.Lock()

    class Locked:
        def __init__(self, payload: int) -> None: ...

        def on_sample(self, sample: Any) -> float:
            with lock:
                return K * sample.rtt

    with pytest.raises(ValueError, match=r"lock: .*paced\(..., id='...'\)"):
        goodputs(Locked, tmp_path / "without")
    assert goodputs(Locked, None), "in memory nothing has to be told apart"
    first = goodputs(Locked, tmp_path / "with", id="one")
    assert goodputs(Locked, tmp_path / "with", id="one") == first
    with pytest.raises(meshpace.RecordsError, match='id: "one" → "two"'):
        goodputs(Locked, tmp_path / "with", id="two")


def test_an_id_that_stays_while_the_rule_changes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goodputs(Global, tmp_path, id="one")
    monkeypatch.setattr(sys.modules[__name__], "K", 3)
    with pytest.raises(meshpace.RecordsError, match='K: 0.1 → 3, its id is still "one"'):
        goodputs(Global, tmp_path, id="one")


RULE = """
import collections, enum, math
FACTOR = [0.5, {"a": (1, 2)}]
class Kind(enum.Enum):
    ONE = 1
def scaled(value, by=2.0, *, kind=Kind.ONE):
    return value * by * FACTOR[0]
class Rule:
    limits = frozenset(["x", "y", "z"])
    def __init__(self, payload):
        self.seen = collections.deque(maxlen=4)
    @staticmethod
    def cut(value):
        return max(math.floor(value * 1e6) / 1e6, 0.0)
    @property
    def spread(self):
        return max(self.seen) - min(self.seen)
    def on_sample(self, sample):
        self.seen.append(sample.rtt)
        return self.cut(scaled(sum(value for value in self.seen)))
"""


def test_an_identity_depends_on_neither_file_nor_process(tmp_path: Path) -> None:
    identity = Path(identify.__code__.co_filename)
    found = set()
    for number, place in enumerate(["one.py", "moved/other.py"]):
        path = tmp_path / place
        path.parent.mkdir(exist_ok=True)
        path.write_text("# another line\n" * number + RULE)
        program = (
            "import importlib.util, sys\n"
            "def load(name, path):\n"
            "    spec = importlib.util.spec_from_file_location(name, path)\n"
            "    module = importlib.util.module_from_spec(spec)\n"
            "    sys.modules[name] = module\n"
            "    spec.loader.exec_module(module)\n"
            "    return module\n"
            f"identity = load('identity', {str(identity)!r}).identify(load('rule', {str(path)!r}).Rule)\n"
            "print(identity.digest, identity.missing)\n"
        )
        environment = {**os.environ, "PYTHONHASHSEED": str(number + 1)}
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
        found.add(done.stdout)
    assert len(found) == 1 and "{}" in found.pop()


def test_every_part_of_a_rule_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    namespace: dict[str, Any] = {}

    def made(text: str) -> dict[str, str]:
        import linecache

        name = f"<rule {len(linecache.cache)}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        namespace.clear()
        namespace["__name__"] = "made"
        exec(compile(text, name, "exec"), namespace)
        identity = identify(namespace["Rule"])
        assert not identity.missing
        return identity.parts

    before = made(RULE)
    changes = {
        "FACTOR": RULE.replace("(1, 2)", "(1, 3)"),
        "scaled: defaults": RULE.replace("by=2.0", "by=3.0"),
        "Rule.limits": RULE.replace('"z"', '"w"'),
        "Rule.cut": RULE.replace("1e6, 0.0", "1e6, 0.1"),
        "Rule.spread (get)": RULE.replace("max(self.seen) -", "min(self.seen) -"),
        "Rule.__init__": RULE.replace("maxlen=4", "maxlen=5"),
    }
    for part, text in changes.items():
        after = made(text)
        assert [name for name in before if before[name] != after[name]][:1] == [part] or before[part] != after[part]
    assert made(RULE) == before


def test_a_run_with_a_rule_is_made_again_from_the_directory_alone(tmp_path: Path) -> None:
    (tmp_path / "map.csv").write_text("x_m,y_m\n0,0\n150,0\n300,0\n")
    text = "duration = '3 s'\n[topology]\nkind = 'nodes'\nfile = 'map.csv'\n[[flow]]\nfrom = 0\nto = 1\n[sweep]\n'flow.to' = [1, 2]\n"
    scenario = meshpace.Scenario.parse(text, directory=tmp_path).paced(Global, name="mine")
    records = list(scenario.sweep(seeds=2, out=tmp_path / "records"))
    (tmp_path / "map.csv").unlink()
    for record in records:
        again = meshpace.Scenario.kept(tmp_path / "records", record["point"]).paced(Global, name="mine")
        assert again.points == [record["point"]]
        assert again.run(seed=record["seed"])["fingerprint"] == record["fingerprint"]
    with pytest.raises(meshpace.RecordsError, match="no record is of the point"):
        meshpace.Scenario.kept(tmp_path / "records", {"flow.to": 3})
