"""A real broker as in production: SASL, TLS, client certificates and ACLs, each on its listener."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import admin as kafka_admin

from lakesplice.testing.broker import LocalBroker
from lakesplice.testing.servers.process import HOST, free_port

USER, PASSWORD = "lake", "a secret of the lake"
PLAIN_USERS = (USER, "without-topics", "without-group", "without-letters", "looks-only")
STORE_PASSWORD = "secret of the stores"
CERTIFIED = "CN=certified-lake"
Right = tuple[str, str, str]
"""An operation, a kind of resource, and its name, which ends in * if it is a prefix."""
_SECONDS = 60.0
# The client has no types.
_kafka: Any = kafka_admin
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
# Of each listener what clients speak there, and how they say who they are.
_LISTENERS = {"PLAIN": "SASL_PLAINTEXT", "SCRAM": "SASL_SSL", "CERTIFIED": "SSL"}


def login(module: str, user: str, password: str) -> str:
    """The value of `sasl.jaas.config`."""
    return f'{module} required username="{user}" password="{password}";'


@dataclass
class SecuredBroker:
    """A broker whose PLAINTEXT listener is the administrator's; all others need a user that has
    rights.
    """

    jars: list[Path]
    folder: Path
    java: str
    ports: dict[str, int] = field(default_factory=dict)

    def __enter__(self) -> SecuredBroker:
        self.folder.mkdir(parents=True, exist_ok=True)
        for owner, name in (("broker", "CN=broker"), ("client", CERTIFIED)):
            self._make_certificate(owner, name)
        self.ports = {name: free_port() for name in _LISTENERS}
        port = free_port()
        self._broker = LocalBroker(
            self.jars, self.folder / "broker", port, settings=self._settings(port), java=self.java
        )
        self._broker.start()
        self._admin = _kafka.AdminClient({"bootstrap.servers": self.administrator})
        self._add_scram_user()
        return self

    def __exit__(self, *_: object) -> None:
        self._broker.stop()

    @property
    def administrator(self) -> str:
        """Servers where everybody may do everything."""
        return self._broker.bootstrap_servers

    @property
    def log(self) -> str:
        """What the broker wrote."""
        return self._broker.log_path.read_text(errors="replace")

    def servers(self, listener: str) -> str:
        """Servers of a listener."""
        return f"{HOST}:{self.ports[listener]}"

    def options(self, listener: str, user: str = USER, password: str = PASSWORD) -> dict[str, str]:
        """What a client of a listener has to say, by Kafka's names."""
        trusts = {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "broker.pem"),
        }
        by_listener: Mapping[str, dict[str, str]] = {
            "PLAIN": {
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": login(_PLAIN, user, password),
            },
            "SCRAM": {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": login(_SCRAM, user, password),
                **trusts,
            },
            "CERTIFIED": {
                "ssl.keystore.type": "PKCS12",
                "ssl.keystore.location": str(self.folder / "client.p12"),
                "ssl.keystore.password": STORE_PASSWORD,
                **trusts,
            },
        }
        return {"security.protocol": _LISTENERS[listener], **by_listener[listener]}

    def allow(self, *rights: Right, user: str = USER) -> None:
        """Give a user rights."""
        self._wait(self._admin.create_acls([_acl(user, *right) for right in rights]))

    def _wait(self, answers: Mapping[Any, Any]) -> None:
        for answer in answers.values():
            answer.result(_SECONDS)

    def _settings(self, port: int) -> dict[str, str]:
        listeners = {name: f"{name}://{HOST}:{number}" for name, number in self.ports.items()}
        told = ",".join([f"PLAINTEXT://{HOST}:{port}", *listeners.values()])
        protocols = {"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **_LISTENERS}
        users = " ".join(f'user_{name}="{PASSWORD}"' for name in PLAIN_USERS)
        stores = {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.folder / "broker.p12"),
            "ssl.keystore.password": STORE_PASSWORD,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "client.pem"),
        }
        return {
            "controller.quorum.voters": f"1@{HOST}:{(controller := free_port())}",
            "listeners": f"{told},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": told,
            "listener.security.protocol.map": ",".join(f"{a}:{b}" for a, b in protocols.items()),
            "inter.broker.listener.name": "PLAINTEXT",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.plain.plain.sasl.jaas.config": f"{_PLAIN} required {users};",
            "listener.name.scram.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.scram.scram-sha-512.sasl.jaas.config": f"{_SCRAM} required;",
            "listener.name.certified.ssl.client.auth": "required",
            **stores,
        }

    def _make_certificate(self, owner: str, name: str) -> None:
        """A key with its own certificate, which the other side trusts as it is."""
        store, password = self.folder / f"{owner}.p12", STORE_PASSWORD
        common = ["-alias", owner, "-keystore", str(store), "-storepass", password]
        keytool = str(Path(self.java).with_name("keytool")) if "/" in self.java else "keytool"
        self._run(
            keytool, "-genkeypair", *common, "-keyalg", "EC", "-groupname", "secp256r1",
            "-dname", name, "-validity", "2", "-ext", f"san=ip:{HOST}", "-storetype", "PKCS12",
        )  # fmt: skip
        pem = str(self.folder / f"{owner}.pem")
        self._run(keytool, "-exportcert", "-rfc", *common, "-file", pem)

    def _run(self, *command: str) -> None:
        quick = ["-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]
        subprocess.run([*command, *quick], check=True, capture_output=True, timeout=_SECONDS)

    def _add_scram_user(self) -> None:
        how = _kafka.ScramCredentialInfo(_kafka.ScramMechanism.SCRAM_SHA_512, 4096)
        added = _kafka.UserScramCredentialUpsertion(USER, how, PASSWORD.encode())
        self._wait(self._admin.alter_user_scram_credentials([added]))


def _acl(user: str, operation: str, kind: str, name: str) -> Any:
    prefix = name.endswith("*") and name != "*"
    return _kafka.AclBinding(
        _kafka.ResourceType[kind],
        name.removesuffix("*") if prefix else name,
        _kafka.ResourcePatternType.PREFIXED if prefix else _kafka.ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        _kafka.AclOperation[operation],
        _kafka.AclPermissionType.ALLOW,
    )
