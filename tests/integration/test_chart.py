"""The chart: rendered by Helm over a matrix of values, and every manifest held against Kubernetes'
own schemas and against what the service needs.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from lakesplice import __version__
from lakesplice.config import Settings, load
from lakesplice.spark.session import session_properties
from tests.support import tools
from tests.support.chart import (
    CHART,
    KUBERNETES,
    LEAST,
    MATRIX,
    Manifests,
    Render,
    Values,
    over,
    pod,
    renderer,
)
from tests.support.machine import ROOT
from tests.support.prometheus import DASHBOARDS

# Of the Prometheus operator, whose schemas Kubernetes doesn't have.
FOREIGN = {"ServiceMonitor", "PrometheusRule"}
SECRETS = ("executor-secret", "executor-secret-encoded")


@pytest.fixture(scope="module")
def render(tmp_path_factory: pytest.TempPathFactory) -> Render:
    return renderer(tmp_path_factory.mktemp("values"))


@pytest.fixture(scope="module", params=MATRIX)
def case(request: pytest.FixtureRequest) -> Values:
    return over(LEAST, MATRIX[request.param])


@pytest.fixture(scope="module")
def manifests(render: Render, case: Values) -> Manifests:
    done = render(case)
    assert done.returncode == 0, done.stderr
    found = [one for one in yaml.safe_load_all(done.stdout) if one]
    assert len({(one["kind"], one["metadata"]["name"]) for one in found}) == len(found)
    # Of two of a kind the first is the driver's.
    return {one["kind"]: one for one in reversed(found)}


@pytest.fixture(scope="module")
def settings(manifests: Manifests, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """What the service reads of the rendered file, as it would itself."""
    text = manifests["Secret"]["stringData"]["lakesplice.yaml"].replace("s3://bucket", "/bucket")
    file = tmp_path_factory.mktemp("rendered") / "lakesplice.yaml"
    file.write_text(text)
    return load(file, {})


def container(manifests: Manifests) -> dict[str, Any]:
    (only,) = pod(manifests)["containers"]
    assert isinstance(only, dict)
    return only


def test_helm_finds_nothing_to_complain_about(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(LEAST))
    options = ["--strict", "--kube-version", "1.30.0", str(CHART), "-f", str(values)]
    command = [str(tools.helm()), "lint", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_knows_every_field(render: Render, case: Values, version: str) -> None:
    for manifest in yaml.safe_load_all(render(case, version).stdout):
        if manifest and manifest["kind"] not in FOREIGN:
            kubernetes_validate.validate(manifest, version, strict=True)
            with pytest.raises(kubernetes_validate.ValidationError):
                kubernetes_validate.validate({**manifest, "spek": {}}, version, strict=True)


def test_the_service_takes_the_rendered_file(settings: Settings, case: Values) -> None:
    assert settings.kafka.bootstrap_servers == "kafka:9092"
    assert settings.kafka.topic_pattern.pattern == "a\\.b"
    wanted = over(yaml.safe_load((CHART / "values.yaml").read_text()), case)["settings"]
    assert settings.compaction.bytes_max == wanted.get("compaction", {}).get("bytes_max", 2**27)
    assert settings.kafka.offsets_per_batch_max == wanted["kafka"].get(
        "offsets_per_batch_max", 200_000
    )
    assert settings.spark.master == wanted["spark"]["master"]
    assert settings.logging.format == "json"


def test_probes_and_scrapes_meet_the_page(manifests: Manifests, settings: Settings) -> None:
    assert settings.metrics.enabled
    assert settings.metrics.host == "0.0.0.0"
    (port,) = container(manifests)["ports"]
    assert port == {"name": "metrics", "containerPort": settings.metrics.port}
    paths = {
        name: container(manifests)[f"{name}Probe"]["httpGet"]
        for name in ("startup", "liveness", "readiness")
    }
    assert {probe["port"] for probe in paths.values()} == {"metrics"}
    assert paths["startup"]["path"] == paths["liveness"]["path"] == "/healthz"
    assert paths["readiness"]["path"] == "/readyz"
    (offered,) = manifests["Service"]["spec"]["ports"]
    assert offered == {"name": "metrics", "port": settings.metrics.port, "targetPort": "metrics"}


def test_kubernetes_waits_longer_for_the_end_than_the_service(
    manifests: Manifests, settings: Settings, case: Values
) -> None:
    assert "preStop" not in container(manifests).get("lifecycle", {})
    margin = case.get("stopMarginSeconds", 60)
    least = settings.stop_timeout + settings.kafka.request_timeout_seconds + margin
    assert least <= pod(manifests)["terminationGracePeriodSeconds"] <= least + 1


def test_the_old_pod_is_gone_before_a_new_one_starts(manifests: Manifests) -> None:
    assert manifests["Deployment"]["spec"]["strategy"] == {"type": "Recreate"}


def test_the_pod_may_do_nothing_but_its_work(manifests: Manifests) -> None:
    assert container(manifests)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    whole = pod(manifests)["securityContext"]
    assert whole["runAsNonRoot"] is True
    assert whole["seccompProfile"] == {"type": "RuntimeDefault"}
    assert f"USER {whole['runAsUser']}:{whole['runAsGroup']}" in (ROOT / "Dockerfile").read_text()
    assert container(manifests)["resources"]["requests"]
    assert pod(manifests)["enableServiceLinks"] is False


def test_only_a_driver_of_executors_gets_a_token_and_a_role(
    manifests: Manifests, case: Values
) -> None:
    executors = case.get("rbac", {}).get("executorPods", False)
    assert pod(manifests)["automountServiceAccountToken"] is executors
    assert ("Role" in manifests) == ("RoleBinding" in manifests) == executors
    if executors:
        resources = {name for rule in manifests["Role"]["rules"] for name in rule["resources"]}
        assert resources == {"pods", "configmaps"}
        (subject,) = manifests["RoleBinding"]["subjects"]
        assert subject["name"] == pod(manifests)["serviceAccountName"]
    assert not {"ClusterRole", "ClusterRoleBinding"} & manifests.keys()


def test_executors_can_reach_their_driver(
    manifests: Manifests, settings: Settings, case: Values
) -> None:
    executors = case.get("rbac", {}).get("executorPods", False)
    at_pod = {
        one["name"]
        for one in container(manifests).get("env", [])
        if one.get("valueFrom") == {"fieldRef": {"fieldPath": "status.podIP"}}
    }
    wanted = {"SPARK_LOCAL_IP", "LAKESPLICE_SPARK__OPTIONS__SPARK_DRIVER_HOST"}
    assert at_pod == (wanted if executors else set())
    bound = settings.spark.options.get("spark.driver.bindAddress")
    assert bound == ("0.0.0.0" if executors else None)


def test_executors_are_pods_of_the_drivers_image_with_its_variables_and_volumes(
    manifests: Manifests, settings: Settings, case: Values
) -> None:
    if not case.get("rbac", {}).get("executorPods", False):
        assert "executor-pod.yaml" not in manifests["Secret"]["stringData"]
        return
    template = yaml.safe_load(manifests["Secret"]["stringData"]["executor-pod.yaml"])
    kubernetes_validate.validate(template, KUBERNETES[-1], strict=True)
    (executor,) = template["spec"]["containers"]
    driver, options = container(manifests), settings.spark.options
    assert executor["image"] == driver["image"] == options["spark.kubernetes.container.image"]
    own = {one["name"] for one in driver["env"] if "fieldRef" in one.get("valueFrom", {})}
    shared = [one for one in driver["env"] if one["name"] not in {*own, "LAKESPLICE_CONFIG"}]
    of_spark, *others = executor["env"]
    assert others == shared
    assert of_spark["valueFrom"]["secretKeyRef"]["key"] == "executor-secret-encoded"
    assert executor["envFrom"] == driver["envFrom"]
    assert executor["securityContext"] == driver["securityContext"]
    assert template["spec"]["automountServiceAccountToken"] is False
    assert template["spec"]["nodeSelector"] == case["executors"]["nodeSelector"]
    labels = template["metadata"]["labels"]
    chosen = manifests["Deployment"]["spec"]["selector"]["matchLabels"]
    assert not chosen.items() <= labels.items(), "else the Deployment would count it"
    mounted = {one["mountPath"] for one in executor["volumeMounts"]}
    assert mounted == {one["mountPath"] for one in driver["volumeMounts"]} - {
        "/etc/lakesplice/lakesplice.yaml"
    }


def test_executors_know_their_driver_by_a_secret_and_go_with_it(
    manifests: Manifests, settings: Settings, case: Values
) -> None:
    if not case.get("rbac", {}).get("executorPods", False):
        assert "executor-secret" not in manifests["Secret"]["stringData"]
        return
    assert len(manifests["Secret"]["stringData"]["executor-secret"]) == 64
    mounts = {one["name"]: one["mountPath"] for one in container(manifests)["volumeMounts"]}
    file = settings.spark.options["spark.authenticate.secret.file"]
    assert file == f"{mounts['executors']}/secret"
    properties = session_properties(settings.spark.master, "1g", [], settings.spark.options)
    assert properties["spark.authenticate"] == "true"
    assert properties["spark.network.crypto.enabled"] == "true"
    assert properties["spark.io.encryption.enabled"] == "true"
    named = {one["name"]: one.get("valueFrom") for one in container(manifests)["env"]}
    pod_name = named["LAKESPLICE_SPARK__OPTIONS__SPARK_KUBERNETES_DRIVER_POD_NAME"]
    assert pod_name == {"fieldRef": {"fieldPath": "metadata.name"}}


def test_a_network_policy_admits_scrapers_and_executors(
    render: Render, manifests: Manifests, settings: Settings, case: Values
) -> None:
    if "networkPolicy" not in case:
        assert "NetworkPolicy" not in manifests
        return
    rendered = yaml.safe_load_all(render(case).stdout)
    driver, executors = [one for one in rendered if one and one["kind"] == "NetworkPolicy"]
    scrapes, of_executors = driver["spec"]["ingress"]
    assert scrapes["from"] == case["networkPolicy"]["metricsFrom"]
    assert [one["port"] for one in scrapes["ports"]] == ["metrics"]
    ports = {str(one["port"]) for one in of_executors["ports"]}
    options = settings.spark.options
    assert ports == {options["spark.driver.port"], options["spark.blockManager.port"]}
    template = yaml.safe_load(manifests["Secret"]["stringData"]["executor-pod.yaml"])
    (peer,) = of_executors["from"]
    chosen = peer["podSelector"]["matchLabels"]
    assert chosen.items() <= template["metadata"]["labels"].items()
    assert executors["spec"]["podSelector"]["matchLabels"] == chosen
    assert driver["spec"]["egress"] == case["networkPolicy"]["egress"]


def test_secrets_are_named_and_never_written(manifests: Manifests, case: Values) -> None:
    # The configuration alone is one, since any setting may be a secret.
    of_executors = {"executor-pod.yaml", *SECRETS} if "Role" in manifests else set()
    assert manifests["Secret"]["stringData"].keys() == {"lakesplice.yaml", *of_executors}
    made = manifests.get("ConfigMap", {"data": {}})["data"]
    assert all(name.endswith(".json") for name in made), "dashboards, and no settings"
    given = {one["name"]: one for one in container(manifests).get("env", [])}
    for name, reference in case.get("secretEnv", {}).items():
        assert given[name]["valueFrom"] == {"secretKeyRef": reference}
        assert "value" not in given[name]


def test_folders_that_the_service_writes_to_are_volumes(
    manifests: Manifests, settings: Settings
) -> None:
    mounts = {one["mountPath"]: one["name"] for one in container(manifests)["volumeMounts"]}
    volumes = {one["name"]: one for one in pod(manifests)["volumes"]}
    assert len(volumes) == len(pod(manifests)["volumes"])
    assert set(mounts.values()) == set(volumes)
    assert "emptyDir" in volumes[mounts["/tmp"]]
    if settings.lake.address in mounts:
        claim = volumes[mounts[settings.lake.address]]["persistentVolumeClaim"]["claimName"]
        made = manifests.get("PersistentVolumeClaim")
        assert made is None or made["metadata"]["name"] == claim
    else:
        assert not any("persistentVolumeClaim" in volume for volume in volumes.values())
        assert "s3://" in manifests["Secret"]["stringData"]["lakesplice.yaml"]


def test_selectors_meet_the_pods_and_every_object_is_labelled(manifests: Manifests) -> None:
    labels = manifests["Deployment"]["spec"]["template"]["metadata"]["labels"]
    chosen = [manifests["Deployment"]["spec"]["selector"]["matchLabels"]]
    chosen.append(manifests["Service"]["spec"]["selector"])
    if "PodDisruptionBudget" in manifests:
        chosen.append(manifests["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"])
    for selector in chosen:
        assert selector.items() <= labels.items()
    if "ServiceMonitor" in manifests:
        watched = manifests["ServiceMonitor"]["spec"]
        assert watched["selector"]["matchLabels"].items() <= (
            manifests["Service"]["metadata"]["labels"].items()
        )
        assert watched["endpoints"][0]["port"] == "metrics"
        environment = manifests["Deployment"]["spec"]["template"]["spec"]["containers"][0]["env"]
        (token,) = [one for one in environment if one["name"] == "LAKESPLICE_METRICS__TOKEN"]
        asked = watched["endpoints"][0]["authorization"]["credentials"]
        assert asked == token["valueFrom"]["secretKeyRef"]
    for manifest in manifests.values():
        assert manifest["metadata"]["labels"]["app.kubernetes.io/version"] == __version__


def test_the_dashboards_are_there_for_grafana(manifests: Manifests, case: Values) -> None:
    made = manifests.get("ConfigMap")
    assert (made is not None) == ("dashboards" in case)
    if made is not None:
        assert made["data"] == {file.name: file.read_text() for file in DASHBOARDS}
        assert made["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert made["metadata"]["annotations"] == case["dashboards"]["annotations"]
