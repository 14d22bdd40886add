"""The chart: rendered by Helm over a matrix of values, and every manifest held against Kubernetes'
own schemas and against what the service needs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from chart_rules import TEMPLATE, chart_rules
from lakesplice import __version__
from lakesplice.apps.alert_rules import (
    FOLLOWED,
    RUNBOOKS,
    alert_rules,
    default_settings,
    setting_of,
)
from lakesplice.config import Settings, load
from lakesplice.config.quantities import seconds_of
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


def pod(manifests: Manifests) -> dict[str, Any]:
    spec: dict[str, Any] = manifests["Deployment"]["spec"]["template"]["spec"]
    return spec


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


def test_a_policy_lets_in_who_scrapes_and_the_executors(
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


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"rbac": {"executorPods": True}}, "set settings.spark.master to k8s://"),
        ({"settings": {"spark": {"master": "k8s://a"}}}, "set rbac.executorPods to true"),
    ],
)
def test_executors_and_their_rights_go_together(render: Render, values: Values, told: str) -> None:
    done = render(over(LEAST, values))
    assert done.returncode != 0
    assert told in done.stderr


# What the settings that alerts follow may be other than they are by default.
SETTINGS_OF_ALERTS: tuple[Values, ...] = (
    {},
    {
        "trigger": "45m",
        "lease": "2m30s",
        "compaction": {"age_max": "3h", "back_pressure_deltas": 501},
        "index": {"runs_max": 20},
        "log": {"checkpoint_every": 50},
        "merge": {"files_max": 77},
        "vacuum": {"every": "1h 30m"},
        "alerts": {"objective": 0.999, "runbooks": 'https://example.org/"a"?b&c'},
    },
    {
        "trigger": "1m0.3s",
        "lease": "150500ms",
        "compaction": {"age_max": 2_000_000, "back_pressure_deltas": 7},
        "vacuum": {"every": "1500ms"},
        "alerts": {"objective": 0.9995},
    },
    {"trigger": 0.5, "lease": "90", "compaction": {"age_max": "1d"}, "alerts": {"objective": 0.95}},
)


def rules_of(settings: Values, folder: Path, environment: dict[str, str]) -> Any:
    """What `lakesplice rules` writes for these settings."""
    file = folder / "lakesplice.yaml"
    file.write_text(yaml.safe_dump({**settings, "lake": {"root": str(folder)}}))
    return yaml.safe_load(alert_rules(load(file, environment)))


def rendered_rules(render: Render, values: Values) -> Any:
    done = render(over(values, {"prometheusRule": {"enabled": True}}))
    assert done.returncode == 0, done.stderr
    found = {one["kind"]: one for one in yaml.safe_load_all(done.stdout) if one}
    return found["PrometheusRule"]["spec"]


def test_every_setting_that_alerts_follow_is_among_the_examples() -> None:
    given = SETTINGS_OF_ALERTS[1]
    for path in (*FOLLOWED.values(), RUNBOOKS):
        assert setting_of(default_settings(), path) != reduce(getitem, path.split("."), given)


@pytest.mark.parametrize("settings", SETTINGS_OF_ALERTS, ids=range(len(SETTINGS_OF_ALERTS)))
def test_the_rules_are_those_of_the_command_for_the_same_settings(
    render: Render, tmp_path: Path, settings: Values
) -> None:
    values = over(LEAST, {"settings": settings})
    assert rendered_rules(render, values) == rules_of(values["settings"], tmp_path, {})


def test_rules_follow_variables_as_the_service_does(render: Render, tmp_path: Path) -> None:
    variables = {
        "LAKESPLICE_TRIGGER": "2h",
        "LAKESPLICE_COMPACTION__BACK_PRESSURE_DELTAS": "1_000",
        "LAKESPLICE_ALERTS__RUNBOOKS": "https://example.org/runbooks",
    }
    given = [{"name": name, "value": value} for name, value in variables.items()]
    values = over(LEAST, {"settings": {"trigger": "7m"}, "extraEnv": given})
    wanted = rules_of(values["settings"], tmp_path, variables)
    assert rendered_rules(render, values) == wanted


def test_the_template_of_rules_is_what_the_code_makes() -> None:
    assert TEMPLATE.read_text() == chart_rules(), "PYTHONPATH=tools:service python -m chart_rules"


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


def test_what_the_service_writes_is_on_a_volume(manifests: Manifests, settings: Settings) -> None:
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


def test_a_changed_setting_starts_the_pod_anew(render: Render) -> None:
    def checksum(**settings: Any) -> str:
        done = render(over(LEAST, {"settings": settings}))
        (found,) = [line for line in done.stdout.splitlines() if "checksum/configuration" in line]
        return found

    assert checksum() == checksum()
    assert checksum() != checksum(trigger="1m")


@pytest.mark.parametrize(
    "text", ["90", 90, 2_000_000, "1m30s", "500ms", "2.5m", "1h 30m", "0s", "1d", 1.5]
)
def test_a_duration_means_to_the_chart_what_it_means_to_the_service(
    render: Render, text: str | float
) -> None:
    done = render(over(LEAST, {"settings": {"stop_timeout": text}, "stopMarginSeconds": 10}))
    found = {one["kind"]: one for one in yaml.safe_load_all(done.stdout) if one}
    grace = pod(found)["terminationGracePeriodSeconds"] - 40
    assert grace == -(-seconds_of(str(text)) // 1)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"settings": {"triger": "5m"}}, "triger"),
        ({"settings": {"kafka": {"topics": "x"}}}, "topics"),
        ({"settings": {"compaction": {"threads": 0}}}, "threads"),
        ({"settings": {"kafka": {"options": {"sasl.jaas.config": "x"}}}}, "sasl.jaas.config"),
        ({"settings": {"kafka": {"topic_pattern": ""}}}, "topic_pattern must be given"),
        ({"replica": 2}, "replica"),
        ({"replicas": 2}, "both can mount"),
        ({"settings": {"lake": {"root": "/elsewhere"}}}, "persistence.mountPath"),
        ({"settings": {"lake": {"root": "s3://b/lake"}}}, "persistence.enabled to false"),
        ({"persistence": {"enabled": False}}, "lost with the pod"),
        ({"secretEnv": {"A": "in plain text"}}, "secretEnv"),
        ({"stopMarginSeconds": 0}, "stopMarginSeconds"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_values_that_would_not_work_are_refused_with_the_reason(
    render: Render, values: Values, complaint: str
) -> None:
    done = render(over(LEAST, values))
    assert done.returncode != 0
    assert complaint in done.stderr


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_notes_say_how_to_look_at_it(tmp_path: Path, replicas: int) -> None:
    # Only an installation shows them, which needs a cluster; so they are rendered as a manifest.
    chart = tmp_path / "lakesplice"
    shutil.copytree(CHART, chart)
    text = (chart / "templates" / "NOTES.txt").read_text()
    (chart / "templates" / "notes.yaml").write_text(
        f'{{{{- define "notes" }}}}{text}{{{{ end }}}}notes: {{{{ include "notes" . | toJson }}}}'
    )
    values = tmp_path / "values.yaml"
    shared = {"replicas": replicas, "persistence": {"accessModes": ["ReadWriteMany"]}}
    values.write_text(yaml.safe_dump(over(LEAST, shared)))
    options = ["--show-only", "templates/notes.yaml", "--kube-version", "1.30.0", "-f", str(values)]
    command = [str(tools.helm()), "template", "lake", str(chart), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    notes = yaml.safe_load(done.stdout)["notes"]
    assert "exec deployment/lake-lakesplice -- lakesplice tables /lake" in notes
    assert ("--wait" in notes) == (replicas > 1)


def test_the_chart_is_released_with_the_service() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == __version__


def test_every_value_is_explained() -> None:
    def names(values: Values, path: str = "") -> list[str]:
        closed = {"settings", "podSecurityContext", "securityContext", "resources"}
        found = []
        for name, value in values.items():
            deeper = isinstance(value, dict) and value and name not in closed
            found += names(value, f"{path}{name}.") if deeper else [path + name]
        return found

    text = (CHART / "README.md").read_text()
    known = names(yaml.safe_load((CHART / "values.yaml").read_text()))
    assert not [name for name in known if f"`{name}`" not in text]


@pytest.mark.parametrize("rules", ["", 'groups:\n  - {name: "{{ $labels.table }}", rules: []}\n'])
def test_the_rules_given_take_the_place_of_the_shipped_ones(render: Render, rules: str) -> None:
    values = {
        "prometheusRule": {"enabled": True, "rules": rules},
        "serviceMonitor": {"enabled": True, "lake": "shop" if rules else ""},
    }
    done = render(over(LEAST, values))
    assert done.returncode == 0, done.stderr
    found = {one["kind"]: one for one in yaml.safe_load_all(done.stdout) if one}
    assert found["PrometheusRule"]["spec"] == yaml.safe_load(rules or alert_rules(None))
    (endpoint,) = found["ServiceMonitor"]["spec"]["endpoints"]
    (label,) = endpoint["relabelings"]
    name = found["ServiceMonitor"]["metadata"]["name"]
    assert label == {"targetLabel": "lake", "replacement": "shop" if rules else name}
