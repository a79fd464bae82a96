"""Reliable transport over multi-hop wireless networks: scenarios, campaigns and published experiments.

>>> import meshpace
>>> scenario = meshpace.Scenario.build({"duration": "5 s", "topology": {"hops": 3}, "flow": [{"transport": "tcp-ap"}]})
>>> record = scenario.run(seed=1)
>>> record["flows"][0]["transport"]
'tcp-ap'
"""

from ._campaign import Campaign
from ._compare import Difference, Robustness, compare
from ._errors import (
    CarrierError,
    Error,
    Problem,
    RecordsError,
    RunError,
    ScenarioError,
    WorkerError,
)
from ._lists import keys, transports
from ._native import MODEL_REVISION, Sample, __version__
from ._reproduce import Verdict, Verdicts, experiments, reproduce
from ._results import Results, Table, open_records
from ._scenario import PacingRule, Scenario

__all__ = [
    "MODEL_REVISION",
    "Campaign",
    "CarrierError",
    "Difference",
    "Error",
    "PacingRule",
    "Problem",
    "RecordsError",
    "Results",
    "Robustness",
    "RunError",
    "Sample",
    "Scenario",
    "ScenarioError",
    "Table",
    "Verdict",
    "Verdicts",
    "WorkerError",
    "__version__",
    "compare",
    "experiments",
    "keys",
    "open_records",
    "reproduce",
    "transports",
]
