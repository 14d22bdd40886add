"""Executors as pods: what Spark requests from Kubernetes with the chart's settings, and that the
pods' command and variables start working executors.

There is no cluster here. A simulated API server accepts the pods, and each is run as a process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from lakesplice.config import load
from tests.support import tools
from tests.support.kubernetes_api import DRIVER, NAMESPACE, KubernetesApi, Pod
from tests.support.machine import ROOT
from tests.support.running import environment

pytestmark = pytest.mark.nightly

SECRET = "of a store, in a variable"
VALUES: dict[str, Any] = {
    "settings": {
        "kafka": {"bootstrap_servers": "kafka:9092", "topic_pattern": "a\\.b"},
        "lake": {"root": "s3://bucket/lake"},
        "spark": {
            "master": "k8s://https://kubernetes.default.svc",
            "options": {"spark.executor.instances": "2", "spark.executor.memory": "512m"},
        },
    },
    "persistence": {"enabled": False},
    "rbac": {"executorPods": True},
    "secretEnv": {"STORE_KEY": {"name": "store", "key": "key"}},
    "executors": {"nodeSelector": {"disk": "fast"}},
}
WORK = """
import json, os, sys
from lakesplice.spark.session import build_session, is_authenticated
master, options = json.loads(sys.argv[1])
session = build_session(master, "512m", [], options)
def where(_):
    from lakesplice.spark.jobs import batch
    return os.getpid(), os.environ["STORE_KEY"], "lakesplice" in batch.__file__
counted = session.sparkContext.parallelize(range(100), 4).map(lambda at: (at % 5, at))
groups = counted.groupByKey(2).count()
told = session.sparkContext.parallelize(range(4), 4).map(where).collect()
print(json.dumps([groups, told, is_authenticated(session)]))
session.stop()
"""


@dataclass
class Done:
    """What the driver printed, the pods that it asked for, and what it asked of the API."""

    told: list[Any]
    pods: list[Pod]
    asked: set[tuple[str, str]]
    manifests: dict[str, Any]


class Kubelet:
    """Runs a pod's command on this machine, with its variables."""

    def __init__(self, folder: Path, driver_secret: str) -> None:
        self._folder, self._driver_secret = folder, driver_secret
        self.processes: list[subprocess.Popen[bytes]] = []

    def __call__(self, pod: Pod) -> None:
        (container,) = pod["spec"]["containers"]
        variables = {one["name"]: self._value(one) for one in container["env"]}
        command = [*container["command"], *container["args"]]
        assert command[:3] == ["/usr/bin/tini", "--", "/opt/lakesplice/bin/python"]
        name = pod["metadata"]["name"]
        home = self._folder / name
        home.mkdir()
        with (home / "log").open("wb") as log:
            started = subprocess.Popen(
                [sys.executable, *command[3:]],
                cwd=home,
                env={**environment(), **variables, "SPARK_LOCAL_DIRS": str(home)},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(started)

    def _value(self, variable: dict[str, Any]) -> str:
        origin = variable.get("valueFrom", {})
        if "fieldRef" in origin:
            return "127.0.0.1"
        if "secretKeyRef" in origin:
            key = origin["secretKeyRef"]["key"]
            return self._driver_secret if key == "executor-secret-encoded" else SECRET
        return str(variable.get("value", ""))

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    folder = tmp_path_factory.mktemp("pods")
    values, configuration = folder / "values.yaml", folder / "lakesplice.yaml"
    values.write_text(yaml.safe_dump(VALUES))
    command = [str(tools.helm()), "template", "lake", str(ROOT / "helm" / "lakesplice")]
    rendered = subprocess.run(
        [*command, "--namespace", NAMESPACE, "--values", str(values)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    manifests = {one["kind"]: one for one in yaml.safe_load_all(rendered.stdout) if one}
    kept = manifests["Secret"]["stringData"]
    (folder / "pod.yaml").write_text(kept["executor-pod.yaml"])
    (folder / "secret").write_text(kept["executor-secret"])
    configuration.write_text(kept["lakesplice.yaml"].replace("s3://bucket", "/bucket"))
    options = {
        name: value.replace("/etc/lakesplice/executors", str(folder)).replace(
            "/opt/lakesplice/bin/python", sys.executable
        )
        for name, value in load(configuration, {}).spark.options.items()
    }
    options |= {
        "spark.kubernetes.driver.pod.name": DRIVER,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.port": "0",
        "spark.blockManager.port": "0",
        "spark.kubernetes.executor.podNamePrefix": "lake",
    }
    kubelet = Kubelet(folder, kept["executor-secret-encoded"])
    with KubernetesApi(kubelet) as api:
        try:
            driver = subprocess.run(
                [sys.executable, "-c", WORK, json.dumps([f"k8s://{api.url}", options])],
                env=environment(),
                capture_output=True,
                text=True,
                timeout=240,
            )
        finally:
            kubelet.end()
        logs = "".join((one / "log").read_text()[-1500:] for one in folder.glob("lake-exec-*"))
        assert driver.returncode == 0, driver.stderr[-3_000:] + logs
        pods = [pod for name, pod in api.pods.items() if name != DRIVER]
        yield Done(json.loads(driver.stdout.splitlines()[-1]), pods, api.asked, manifests)


def test_the_pods_become_executors_that_have_our_package_and_know_the_driver(done: Done) -> None:
    groups, told, authenticated = done.told
    assert groups == 5
    assert {key for _, key, _ in told} == {SECRET}
    assert all(ours for _, _, ours in told)
    assert len({process for process, _, _ in told}) >= 2
    assert authenticated


def test_the_pods_are_valid_and_go_with_their_driver(done: Done) -> None:
    assert len(done.pods) == 2
    for pod in done.pods:
        sent = {name: value for name, value in pod.items() if name != "status"}
        kubernetes_validate.validate(sent, "1.32", strict=False)
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("Pod", DRIVER, f"uid-of-{DRIVER}")
        assert owner["controller"]
        assert pod["spec"]["nodeSelector"]["disk"] == "fast"
        assert pod["spec"]["automountServiceAccountToken"] is False
        (container,) = pod["spec"]["containers"]
        driver = done.manifests["Deployment"]["spec"]["template"]["spec"]["containers"][0]
        assert container["image"] == driver["image"]
        assert container["securityContext"] == driver["securityContext"]
        secret = done.manifests["Secret"]["stringData"]["executor-secret"]
        assert secret not in json.dumps(pod), "it is in a file"


def test_the_role_allows_what_spark_asks_for(done: Done) -> None:
    allowed = {
        (verb, resource)
        for rule in done.manifests["Role"]["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert {one for one in done.asked if one[0] in ("create", "get", "list", "watch")} <= allowed
