"""The chart's rendered objects are checked with kube-score's rules for production clusters.

Executor pods are checked as Spark would create them. Each exception has its reason, and an
exception that is no longer needed fails the test.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import tools
from tests.support.chart import LEAST, MATRIX, Render, over, renderer

_GOOD = 10
# They ask for what the default checks don't.
_OPTIONAL = ("container-seccomp-profile", "container-ports-check")
EXCEPTIONS: Mapping[tuple[str, str], str] = {
    ("Deployment", "deployment-strategy"): "two drivers of a lake never run side by side",
    ("Deployment", "deployment-replicas"): "one driver is enough; a second one waits",
    ("Deployment", "deployment-has-host-podantiaffinity"): "topologySpreadConstraints do it",
    ("Deployment", "container-image-pull-policy"): "an image's tag is a version, or its digest",
    ("Deployment", "container-ephemeral-storage-request-and-limit"): "scratch.sizeLimit limits it",
    ("Deployment", "pod-networkpolicy"): "networkPolicy.enabled is the operator's choice",
    ("Pod", "container-image-pull-policy"): "Spark sets it, as image.pullPolicy says",
    ("Pod", "container-resources"): "Spark sets them, by spark.executor.memory and cores",
    ("Pod", "container-ephemeral-storage-request-and-limit"): "scratch.sizeLimit limits it",
}


@pytest.fixture(scope="module")
def render(tmp_path_factory: pytest.TempPathFactory) -> Render:
    return renderer(tmp_path_factory.mktemp("values"))


def objects(render: Render, case: str) -> list[dict[str, Any]]:
    """What is rendered, and the pod that Spark makes executors of."""
    done = render(over(LEAST, MATRIX[case]))
    assert done.returncode == 0, done.stderr
    found = [one for one in yaml.safe_load_all(done.stdout) if one]
    (secret,) = [one for one in found if one["kind"] == "Secret"]
    template = secret["stringData"].get("executor-pod.yaml")
    if template:
        pod = yaml.safe_load(template)
        pod["metadata"] |= {"name": "executor", "namespace": secret["metadata"].get("namespace")}
        found.append(pod)
    return found


def complaints(checked: Iterable[Mapping[str, Any]], folder: Path) -> set[tuple[str, str]]:
    """The kinds of objects and the rules that they break."""
    file = folder / "objects.yaml"
    file.write_text(yaml.safe_dump_all(checked))
    options = [option for rule in _OPTIONAL for option in ("--enable-optional-test", rule)]
    command = [str(tools.kube_score()), "score", "-o", "json", "--ignore-container-cpu-limit"]
    done = subprocess.run(
        [*command, *options, str(file)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode in (0, 1), done.stderr
    return {
        (scored["type_meta"]["kind"], one["check"]["id"])
        for scored in json.loads(done.stdout)
        for one in scored["checks"]
        if not one["skipped"] and one["grade"] < _GOOD
    }


def test_only_rules_with_a_reason_are_broken(render: Render, tmp_path: Path) -> None:
    broken = {case: complaints(objects(render, case), tmp_path) for case in MATRIX}
    assert {case: found - EXCEPTIONS.keys() for case, found in broken.items()} == {
        case: set() for case in MATRIX
    }
    assert set().union(*broken.values()) == EXCEPTIONS.keys()


def test_a_policy_covers_every_pod_where_policies_are_enabled(
    render: Render, tmp_path: Path
) -> None:
    found = complaints(objects(render, "object-store-and-executors"), tmp_path)
    assert not [rule for _, rule in found if "networkpolicy" in rule]


def test_a_pod_with_forbidden_settings_is_found(render: Render, tmp_path: Path) -> None:
    (deployment,) = [one for one in objects(render, "least") if one["kind"] == "Deployment"]
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    container["securityContext"] = {"privileged": True}
    del container["resources"]
    spec["securityContext"] = {}
    assert {
        ("Deployment", "container-security-context-privileged"),
        ("Deployment", "container-security-context-readonlyrootfilesystem"),
        ("Deployment", "container-security-context-user-group-id"),
        ("Deployment", "container-seccomp-profile"),
        ("Deployment", "container-resources"),
    } <= complaints([deployment], tmp_path)
