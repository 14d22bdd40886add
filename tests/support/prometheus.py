"""A real Prometheus on this machine, and the queries for it."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lakesplice.testing.servers.process import HOST, LocalServer, free_port
from tests.support import tools
from tests.support.machine import ROOT
from tests.support.waiting import until

DASHBOARDS = sorted((ROOT / "deploy" / "grafana" / "dashboards").glob("*.json"))
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yaml"
_SCRAPE_SECONDS = 1
_START_SECONDS_MAX, _REQUEST_SECONDS_MAX = 30.0, 10.0
_SELECTOR = re.compile(r"\b(lakesplice_\w+)(\{[^}]*\})?")


@dataclass(frozen=True, slots=True)
class Query:
    """One query and where it stands."""

    where: str
    text: str

    @property
    def selectors(self) -> set[str]:
        """The series it asks for, without what is done with them."""
        # A name in quotes is text, such as a label that count_values makes.
        return {name + (labels or "") for name, labels in _SELECTOR.findall(self.text)}

    @property
    def metrics(self) -> set[str]:
        """The names of metrics in it, a histogram's parts as the histogram."""
        names = {name for name, _ in _SELECTOR.findall(self.text)}
        return {re.sub(r"_(bucket|count|sum)$", "", name) for name in names}


def dashboard_queries() -> list[Query]:
    """Every query of the dashboards' panels, with its variables filled in as for all tables."""
    return [
        Query(f"{file.stem}: {panel['title']}", filled(target["expr"]))
        for file in DASHBOARDS
        for panel in json.loads(file.read_text())["panels"]
        for target in panel.get("targets", ())
    ]


def filled(text: str) -> str:
    """A panel's query as Grafana would send it."""
    return re.sub(r"\$(lake|namespace|table)\b", ".*", text.replace("$__rate_interval", "1m"))


def alert_rules() -> list[dict[str, Any]]:
    """The alert rules, in order."""
    return [rule for rule in _rules() if "alert" in rule]


def rule_queries() -> list[Query]:
    """The queries of all rules, of those too that record a series for others."""
    return [Query(rule.get("alert") or rule["record"], rule["expr"]) for rule in _rules()]


def _rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


class Prometheus(LocalServer):
    """Prometheus, scraping `targets` every second, with our alert rules."""

    def __init__(self, folder: Path, targets: Iterable[str]) -> None:
        super().__init__("Prometheus", folder.absolute() / "prometheus.log")
        self._folder = folder.absolute()
        self._targets = list(targets)
        self._port = free_port()

    def start(self) -> None:
        """See `LocalServer.start`."""
        self._folder.mkdir(parents=True, exist_ok=True)
        # Groups that are evaluated rarely would have a test wait for minutes.
        often = re.sub(r"(?m)^ +interval: .*\n", "", ALERTS.read_text())
        (self._folder / ALERTS.name).write_text(often)
        configuration = self._folder / "prometheus.yaml"
        configuration.write_text(yaml.safe_dump(self._configuration()))
        command = [
            str(tools.prometheus()),
            f"--config.file={configuration}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address={HOST}:{self._port}",
        ]
        self._run(command, self._is_ready, _START_SECONDS_MAX)

    def query(self, text: str) -> list[dict[str, Any]]:
        """What an instant query gives now; an error of it is an `HTTPError`."""
        found: list[dict[str, Any]] = self._get("query", query=text)["result"]
        return found

    def over_time(self, text: str, seconds: float, step: float) -> list[dict[str, Any]]:
        """What a query gives over the last seconds, a value every `step`."""
        now = time.time()
        times = {"start": f"{now - seconds}", "end": f"{now}", "step": f"{step}"}
        found: list[dict[str, Any]] = self._get("query_range", query=text, **times)["result"]
        return found

    def rules(self) -> list[dict[str, Any]]:
        """The rules as Prometheus has them, each with its health."""
        groups = self._get("rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def empty(self, texts: Iterable[str]) -> list[str]:
        """Those of the queries that give nothing now."""
        return [text for text in texts if not self.query(text)]

    def until(self, condition: Callable[[], bool], what: str, seconds_max: float = 60.0) -> None:
        """Wait until the condition holds."""
        until(
            condition,
            what,
            seconds_max,
            _SCRAPE_SECONDS / 2,
            works=lambda: self.is_running,
            said=lambda: self.log_path.read_text()[-2_000:],
        )

    def _configuration(self) -> dict[str, Any]:
        """The one that we ship, with other targets and quicker."""
        ours = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yaml").read_text())
        often = {"scrape_interval": f"{_SCRAPE_SECONDS}s", "evaluation_interval": "1s"}
        (job,) = ours["scrape_configs"]
        (target,) = job["static_configs"]
        return {
            "global": {**ours["global"], **often},
            "rule_files": [str(self._folder / ALERTS.name)],
            "scrape_configs": [{**job, "static_configs": [{**target, "targets": self._targets}]}],
        }

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self._port}/-/ready", timeout=1):
                return True
        except OSError:
            return False

    def _get(self, what: str, **parameters: str) -> dict[str, Any]:
        address = f"http://{HOST}:{self._port}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(address, timeout=_REQUEST_SECONDS_MAX) as answer:
                data: dict[str, Any] = json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None
        return data
