"""Schemas from a registry: Confluent's interface, Apicurio's compatible one, or Apicurio's own.

A schema never changes under its number, so each is asked for once in a process's life, whatever
the table. Only an answer that says so in the registry's own words means that it has no such schema:
an address that is wrong, or a gateway before it, answers "not found" as well.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import urllib3

from lakesplice.errors import SourceUnavailable
from lakesplice.formats.events import SchemaText

_BYTES_MAX = 16 << 20
_REFERENCES_MAX = 1_000
_OK, _NOT_FOUND = 200, 404
_BUSY = (408, 425, 429, 500, 502, 503, 504)
_BACKOFF_SECONDS, _BACKOFF_SECONDS_MAX = 0.1, 5.0
# "Schema not found" and, of a reference, "subject" and "version not found".
_LACKING = frozenset((40_401, 40_402, 40_403))
_OWN = {"content-id": "contentIds", "global-id": "globalIds"}
_Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RegistryAccess:
    """How to reach a registry. All `urls` lead to the same registry; `numbers` says what the
    numbers in records are (`schema-id`, `content-id` or `global-id`); `options` are options of
    Confluent's client, by their names.
    """

    urls: tuple[str, ...]
    numbers: str = "schema-id"
    timeout_seconds: float = 10.0
    retries: int = 5
    options: _Options = field(default=(), repr=False)


class SchemaRegistry:
    """The schemas of a registry; pickled without the schemas that it has read.

    Calls block, and are safe from several threads.
    """

    def __init__(self, access: RegistryAccess) -> None:
        self._access = access

    def __reduce__(self) -> tuple[type[SchemaRegistry], tuple[RegistryAccess]]:
        """Pickle only the address and settings of the registry."""
        return SchemaRegistry, (self._access,)

    def schemas(self, numbers: Iterable[int]) -> Mapping[int, SchemaText]:
        """Return the schemas with these numbers, except for those that the registry says it lacks.

        `SourceUnavailable` if it can't be reached, refuses, or doesn't answer like a registry.
        """
        client = _client(self._access)
        found = {number: client.schema(number) for number in sorted(set(numbers))}
        return {number: schema for number, schema in found.items() if schema is not None}


_CLIENTS: dict[RegistryAccess, _Client] = {}
_LOCK = threading.Lock()


def _client(access: RegistryAccess) -> _Client:
    with _LOCK:
        if access not in _CLIENTS:
            _CLIENTS[access] = _Client(access)
        return _CLIENTS[access]


class _Client:
    """Asks one registry, and remembers its answers."""

    def __init__(self, access: RegistryAccess) -> None:
        self._access = access
        self._known: dict[int, SchemaText] = {}
        options = dict(access.options)
        retry = urllib3.Retry(
            total=access.retries,
            redirect=2,
            status_forcelist=_BUSY,
            backoff_factor=_BACKOFF_SECONDS,
            backoff_max=_BACKOFF_SECONDS_MAX,
            backoff_jitter=_BACKOFF_SECONDS,
            raise_on_status=False,
        )
        self._pool = urllib3.PoolManager(
            headers=_headers(options),
            retries=retry,
            timeout=access.timeout_seconds,
            **_tls(options),
        )

    def schema(self, number: int) -> SchemaText | None:
        """Return one schema, None if the registry says that it has no schema of that number."""
        if number not in self._known:
            kind = _OWN.get(self._access.numbers)
            read = self._read(f"/schemas/ids/{number}" if kind is None else f"/ids/{kind}/{number}")
            if read is None:
                return None
            text, references = read
            referenced: dict[str, str] = {}
            self._follow(references, referenced, ())
            self._known[number] = SchemaText(text, tuple(referenced.values()))
        return self._known[number]

    def _read(self, path: str) -> tuple[str, list[Any]] | None:
        """Return the text of the schema at a path and its references, in the registry's own form;
        None if the registry lacks it.
        """
        answer = self._get(path)
        if answer is None:
            return None
        try:
            if self._is_own:
                listed = json.loads(self._get(f"{path}/references") or b"[]")
                return answer.decode("utf-8"), [*listed]
            kept = json.loads(answer)
            return str(kept["schema"]), [*(kept.get("references") or ())]
        except (ValueError, TypeError, KeyError, AttributeError):
            raise _no_registry(answer.decode("utf-8", "replace")) from None

    @property
    def _is_own(self) -> bool:
        """Whether the interface is Apicurio's own, and not one like Confluent's."""
        return self._access.numbers in _OWN

    def _path_of(self, reference: Any) -> str:
        try:
            return _artifact(reference) if self._is_own else _subject(reference)
        except (TypeError, KeyError, AttributeError):
            raise _no_registry(str(reference)) from None

    def _follow(
        self, references: Sequence[Any], found: dict[str, str], above: tuple[str, ...]
    ) -> None:
        """Add to `found` the schemas that references lead to, each after those that it refers to,
        by their paths; `above` are the paths of those that lead here.
        """
        for reference in references:
            path = self._path_of(reference)
            if path in found:
                continue
            read = self._read(path)
            if read is None or path in above or len(found) + len(above) > _REFERENCES_MAX:
                raise SourceUnavailable(
                    "a schema's references are missing, circular or too many; correct them",
                    path=path,
                )
            text, further = read
            self._follow(further, found, (*above, path))
            found[path] = text

    def _get(self, path: str) -> bytes | None:
        """Return the answer of an address, or of the next one if it doesn't answer; None if the
        schema is missing.
        """
        for url in self._access.urls[:-1]:
            try:
                return self._ask(url + path)
            except SourceUnavailable:
                continue
        return self._ask(self._access.urls[-1] + path)

    def _ask(self, url: str) -> bytes | None:
        try:
            response = self._pool.request("GET", url, preload_content=False)
            body = response.read(_BYTES_MAX + 1)
            response.drain_conn()
        except urllib3.exceptions.HTTPError as error:
            raise SourceUnavailable(
                "the schema registry can't be reached; check that it runs, and check"
                " schema_registry.url",
                url=url, error=str(error),
            ) from error  # fmt: skip
        if response.status == _OK and len(body) <= _BYTES_MAX:
            return body
        if response.status == _NOT_FOUND and _says_lacking(body):
            return None
        raise SourceUnavailable(
            "no schema was returned; check schema_registry.url and its credentials",
            url=url, status=response.status, answer=body[:200].decode("utf-8", "replace"),
        )  # fmt: skip


def _headers(options: Mapping[str, str]) -> dict[str, str]:
    headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json, */*"}
    if "basic.auth.user.info" in options:
        headers |= urllib3.make_headers(basic_auth=options["basic.auth.user.info"])
    if "bearer.auth.token" in options:
        headers["Authorization"] = f"Bearer {options['bearer.auth.token']}"
    return headers


def _tls(options: Mapping[str, str]) -> dict[str, Any]:
    names = {
        "ca_certs": "ssl.ca.location",
        "cert_file": "ssl.certificate.location",
        "key_file": "ssl.key.location",
        "key_password": "ssl.key.password",
    }
    given = {ours: options[name] for ours, name in names.items() if name in options}
    return {"cert_reqs": "CERT_REQUIRED", **given}


def _subject(reference: Mapping[str, object]) -> str:
    subject = quote(str(reference["subject"]), safe="")
    return f"/subjects/{subject}/versions/{reference['version']}"


def _artifact(reference: Mapping[str, object]) -> str:
    group = quote(str(reference.get("groupId") or "default"), safe="")
    artifact = quote(str(reference["artifactId"]), safe="")
    return f"/groups/{group}/artifacts/{artifact}/versions/{reference['version']}"


def _no_registry(answer: str) -> SourceUnavailable:
    return SourceUnavailable(
        "the server that answers isn't a schema registry; correct schema_registry.url",
        answer=answer[:200],
    )


def _says_lacking(body: bytes) -> bool:
    try:
        said = json.loads(body)
    except ValueError:
        return False
    if not isinstance(said, dict):
        return False
    return said.get("error_code") in _LACKING or str(said.get("name")) in (
        "ArtifactNotFoundException",
        "ContentNotFoundException",
        "VersionNotFoundException",
    )
