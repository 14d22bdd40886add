"""A Prometheus beside the demo, with the rules that `lakesplice rules` writes for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import urllib3
import yaml

from lakesplice.testing.servers.process import HOST, LocalServer, free_port

_START_SECONDS_MAX, _REQUEST_SECONDS = 30.0, 10.0


class Alerts(LocalServer):
    """Prometheus, which scrapes the page and evaluates the rules every second.

    `program` is Prometheus' own, `pages` are the addresses of services' pages; there may be nothing
    at some of them.
    """

    def __init__(self, program: Path, folder: Path, pages: Sequence[str], rules: str) -> None:
        super().__init__("Prometheus", folder / "prometheus.log")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "rules.yaml").write_text(rules)
        targets = [page.removeprefix("http://").rstrip("/") for page in pages]
        job = {
            "job_name": "lakesplice",
            "static_configs": [{"targets": targets, "labels": {"lake": "demo"}}],
        }
        often = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        configuration = {
            "global": often, "rule_files": ["rules.yaml"], "scrape_configs": [job],
        }  # fmt: skip
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
        self._address = f"{HOST}:{free_port()}"
        self._command = [
            str(program),
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self._address}",
        ]
        self._http = urllib3.PoolManager(retries=False, timeout=_REQUEST_SECONDS)

    def start(self) -> None:
        """See `LocalServer.start`."""
        self._run(self._command, self._is_ready, _START_SECONDS_MAX)

    def holds(self, expression: str) -> bool:
        """Whether a query gives anything now."""
        return bool(self._asked("query", {"query": expression})["result"])

    def firing(self) -> set[str]:
        """The names of the alerts that are raised now."""
        alerts = self._asked("alerts", {})["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def _asked(self, what: str, fields: dict[str, str]) -> dict[str, Any]:
        answer = self._http.request("GET", f"http://{self._address}/api/v1/{what}", fields=fields)
        found: dict[str, Any] = answer.json()["data"]
        return found

    def _is_ready(self) -> bool:
        try:
            return self._http.request("GET", f"http://{self._address}/-/ready").status == 200
        except urllib3.exceptions.HTTPError:
            return False
