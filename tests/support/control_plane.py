"""Kubernetes' own API server with its etcd, as two processes of this machine, built from source.

They are all there is of a cluster: no controller makes pods of a Deployment, no node runs any. What
is asked for is checked and kept as in a whole cluster: schemas, rights, pod security.
"""

from __future__ import annotations

import json
import secrets
import ssl
import subprocess
import urllib.error
import urllib.request
from base64 import b64encode
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from lakesplice.testing.go_programs import built_from
from lakesplice.testing.servers.process import HOST, LocalServer, free_port

KUBERNETES, STAGING, ETCD = "v1.36.3", "v0.36.3", "v3.6.16"
_START_SECONDS_MAX, _REQUEST_SECONDS_MAX = 120.0, 30.0
# Kubernetes replaces them by folders of its own source, which only its main module may do.
_STAGED = (
    *("api", "apiextensions-apiserver", "apimachinery", "apiserver", "cli-runtime", "client-go"),
    *("cloud-provider", "cluster-bootstrap", "code-generator", "component-base"),
    *("component-helpers", "controller-manager", "cri-api", "cri-client", "cri-streaming"),
    *("csi-translation-lib", "dynamic-resource-allocation", "endpointslice", "externaljwt", "kms"),
    *("kube-aggregator", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl"),
    *("kubelet", "metrics", "mount-utils", "pod-security-admission", "sample-apiserver"),
    *("sample-cli-plugin", "sample-controller", "streaming"),
)
_API_SERVER = {
    "go.mod": "module programs\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes {kubernetes}\n\n"
    "replace (\n{replaced})\n",
    "tools.go": '//go:build tools\n\npackage tools\n\nimport _ "{package}"\n',
}
_API_SERVER_PACKAGE = "k8s.io/kubernetes/cmd/kube-apiserver"
_ETCD = {
    "go.mod": "module programs\n\ngo 1.25.0\n\nrequire go.etcd.io/etcd/server/v3 {etcd}\n",
    "main.go": 'package main\n\nimport (\n\t"os"\n\n\t"go.etcd.io/etcd/server/v3/etcdmain"\n)\n\n'
    "func main() { etcdmain.Main(os.Args) }\n",
}


class _Etcd(LocalServer):
    def __init__(self, folder: Path) -> None:
        super().__init__("etcd", folder / "etcd.log")
        self._data, self.port, self._peers = folder / "etcd", free_port(), free_port()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def start(self) -> None:
        """See `LocalServer.start`."""
        peers = f"http://{HOST}:{self._peers}"
        command = [
            *(str(_etcd()), "--data-dir", str(self._data), "--unsafe-no-fsync"),
            *("--listen-client-urls", self.url, "--advertise-client-urls", self.url),
            *("--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers),
            *("--initial-cluster", f"default={peers}"),
        ]
        self._run(command, lambda: _is_healthy(f"{self.url}/health"), _START_SECONDS_MAX)


class ControlPlane(LocalServer):
    """The API server; `kubeconfig` is that of somebody who may do everything."""

    def __init__(self, folder: Path) -> None:
        super().__init__("the API server", folder / "api-server.log")
        self._folder, self._etcd = folder, _Etcd(folder)
        self._token, self._port = secrets.token_hex(16), free_port()
        self.url = f"https://{HOST}:{self._port}"
        self.kubeconfig = folder / "kubeconfig"

    def __enter__(self) -> Self:
        self._etcd.start()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._etcd.stop()

    @property
    def certificates(self) -> Path:
        """The server's certificate, which it made for itself."""
        return self._folder / "certificates" / "apiserver.crt"

    def start(self) -> None:
        """See `LocalServer.start`."""
        program, keys, tokens = _api_server(), self._folder / "keys.pem", self._folder / "tokens"
        generate = ["openssl", "genrsa", "-out", str(keys), "2048"]
        subprocess.run(generate, check=True, capture_output=True, timeout=60)
        tokens.write_text(f'{self._token},admin,1,"system:masters"\n')
        command = [
            *(str(program), f"--etcd-servers={self._etcd.url}", f"--bind-address={HOST}"),
            *(f"--secure-port={self._port}", f"--cert-dir={self.certificates.parent}"),
            *("--service-account-issuer=https://issuer", f"--service-account-key-file={keys}"),
            *(f"--service-account-signing-key-file={keys}", f"--token-auth-file={tokens}"),
            *("--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24"),
        ]
        self._run(command, self._is_ready, _START_SECONDS_MAX)
        self.kubeconfig.write_text(yaml.safe_dump(self._kubeconfig()))

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str | None = None
    ) -> dict[str, Any]:
        """Ask the API, as who may do everything or with another token; `AssertionError` with the
        answer if it refuses.
        """
        request = urllib.request.Request(  # our own server
            f"{self.url}{path}",
            None if body is None else json.dumps(body).encode(),
            {
                "Authorization": f"Bearer {token or self._token}",
                "Content-Type": "application/json",
            },
            method=method,
        )
        trust = ssl.create_default_context(cafile=str(self.certificates))
        try:
            with urllib.request.urlopen(  # our own server
                request, timeout=_REQUEST_SECONDS_MAX, context=trust
            ) as answer:
                found: dict[str, Any] = json.load(answer)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.read().decode()}") from None
        return found

    def may(self, user: str, namespace: str, verb: str, resource: str) -> bool:
        """Whether a user may do this there: what `kubectl auth can-i` asks."""
        asked = {"namespace": namespace, "verb": verb, "resource": resource}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": asked},
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return bool(self.ask("POST", path, body)["status"]["allowed"])

    def token_of(self, namespace: str, account: str) -> str:
        """A token of a service account, as a pod of it gets one."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return str(self.ask("POST", path, body)["status"]["token"])

    def _is_ready(self) -> bool:
        try:
            self.ask("GET", "/api/v1/namespaces/default")
        except (AssertionError, OSError):
            return False
        return True

    def _kubeconfig(self) -> dict[str, Any]:
        trusted = b64encode(self.certificates.read_bytes()).decode()
        cluster = {"server": self.url, "certificate-authority-data": trusted}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self._token}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "admin"}}],
            "current-context": "here",
        }


def _api_server() -> Path:
    replaced = "".join(f"\tk8s.io/{name} => k8s.io/{name} {STAGING}\n" for name in _STAGED)
    files = {
        name: text.format(kubernetes=KUBERNETES, replaced=replaced, package=_API_SERVER_PACKAGE)
        for name, text in _API_SERVER.items()
    }
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    told = {"gitVersion": KUBERNETES, "gitMajor": major, "gitMinor": minor}
    values = {f"k8s.io/component-base/version.{name}": value for name, value in told.items()}
    name = f"kube-apiserver-{KUBERNETES}"
    return _or_skip(built_from(name, files, _API_SERVER_PACKAGE, values))


def _etcd() -> Path:
    files = {**_ETCD, "go.mod": _ETCD["go.mod"].format(etcd=ETCD)}
    return _or_skip(built_from(f"etcd-{ETCD}", files, "."))


def _or_skip(program: Path | None) -> Path:
    if program is None:
        pytest.skip("no Go to build Kubernetes' API server with (run make setup)")
    return program


def _is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):  # our own server
            return True
    except OSError:
        return False
