"""The client of a schema registry: its requests, what it caches, and which answers it refuses."""

from __future__ import annotations

import pickle
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lakesplice.errors import SourceUnavailable
from lakesplice.formats.events import SchemaText
from lakesplice.storage.schema_registry import RegistryAccess, SchemaRegistry
from tests.support.registry import ScriptedRegistry, serving

ONE = {"/schemas/ids/1": {"schema": '"long"'}}


def client(registry: ScriptedRegistry, *, retries: int = 0, **more: Any) -> SchemaRegistry:
    options = tuple(sorted(more.pop("options", {}).items()))
    urls = (*more.pop("before", ()), registry.url)
    return SchemaRegistry(RegistryAccess(urls, retries=retries, options=options, **more))


def test_a_schema_is_asked_for_once_in_a_process_also_by_a_pickled_client() -> None:
    with serving(ONE) as registry:
        for asked in (client(registry), pickle.loads(pickle.dumps(client(registry)))):
            assert asked.schemas([1, 1]) == {1: SchemaText('"long"')}
        assert registry.paths == ["/schemas/ids/1"]


def test_a_schema_that_the_registry_says_it_lacks_is_left_out_and_asked_for_again() -> None:
    with serving(ONE) as registry:
        assert client(registry).schemas([1, 2]) == {1: SchemaText('"long"')}
        registry.answers = {**ONE, "/schemas/ids/2": {"schema": '"int"'}}
        assert client(registry).schemas([2]) == {2: SchemaText('"int"')}


def test_references_are_followed_each_after_those_it_refers_to() -> None:
    refers = {"name": "a.B", "subject": "b/value", "version": 3}
    deeper = {"name": "a.C", "subject": "c", "version": 1}
    answers = {
        "/schemas/ids/1": {"schema": "one", "references": [refers, deeper]},
        "/subjects/b%2Fvalue/versions/3": {"schema": "b", "references": [deeper]},
        "/subjects/c/versions/1": {"schema": "c"},
    }
    with serving(answers) as registry:
        assert client(registry).schemas([1]) == {1: SchemaText("one", ("c", "b"))}


def test_references_that_go_round_are_refused() -> None:
    round_ = {"subject": "b", "version": 1}
    answers = {
        "/schemas/ids/1": {"schema": "one", "references": [round_]},
        "/subjects/b/versions/1": {"schema": "b", "references": [round_]},
    }
    with (
        serving(answers) as registry,
        pytest.raises(SourceUnavailable, match="missing, circular"),
    ):
        client(registry).schemas([1])


@pytest.mark.parametrize(
    ("numbers", "kind"), [("content-id", "contentIds"), ("global-id", "globalIds")]
)
def test_apicurios_own_interface_gives_the_text_and_its_references(numbers: str, kind: str) -> None:
    reference = {"groupId": None, "artifactId": "b", "version": "2", "name": "a.B"}
    answers = {
        f"/ids/{kind}/7": b"one",
        f"/ids/{kind}/7/references": [reference],
        "/groups/default/artifacts/b/versions/2": b"b",
        "/groups/default/artifacts/b/versions/2/references": [],
    }
    with serving(answers) as registry:
        asked = client(registry, numbers=numbers)
        assert asked.schemas([7, 8]) == {7: SchemaText("one", ("b",))}


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_registry_without_time_is_asked_again(status: int) -> None:
    with serving(ONE, first=[status, status]) as registry:
        assert client(registry, retries=2).schemas([1]) == {1: SchemaText('"long"')}
        assert len(registry.asked) == 3


def test_a_registry_that_never_has_time_is_unavailable_after_its_budget() -> None:
    with serving(ONE, first=[503] * 9) as registry:
        with pytest.raises(SourceUnavailable, match="status=503"):
            client(registry, retries=2).schemas([1])
        assert len(registry.asked) == 3


@pytest.mark.parametrize(
    "answer",
    [
        (401, b'{"error_code": 40101}'),
        (403, b""),
        (404, b"<html>no such page</html>"),
        (404, b'{"message": "HTTP 404 Not Found", "error_code": 404}'),
        (200, b"<html>welcome</html>"),
        (200, b'{"hello": "world"}'),
    ],
)
def test_an_answer_that_is_not_a_registrys_does_not_mean_a_missing_schema(
    answer: tuple[int, bytes],
) -> None:
    with serving({"/schemas/ids/1": answer}) as registry, pytest.raises(SourceUnavailable):
        client(registry).schemas([1])


@pytest.mark.parametrize("refers", [{}, {"subject": "b"}, "b", 7])
def test_a_reference_in_another_form_says_that_no_registry_answers(refers: object) -> None:
    answers = {"/schemas/ids/1": {"schema": "one", "references": [refers]}}
    with (
        serving(answers) as registry,
        pytest.raises(SourceUnavailable, match="isn't a schema registry"),
    ):
        client(registry).schemas([1])


@pytest.mark.parametrize("listed", [b"<html>", b"7", [{}], [{"version": "2"}]])
def test_so_do_the_references_of_apicurios_own_interface(listed: object) -> None:
    answers = {"/ids/contentIds/7": b"one", "/ids/contentIds/7/references": listed}
    with (
        serving(answers) as registry,
        pytest.raises(SourceUnavailable, match="isn't a schema registry"),
    ):
        client(registry, numbers="content-id").schemas([7])


def test_if_an_address_does_not_answer_the_next_one_is_asked() -> None:
    with serving(ONE) as gone:
        pass
    with serving(ONE) as registry:
        assert client(registry, before=(gone.url,)).schemas([1]) == {1: SchemaText('"long"')}


def test_a_user_or_a_token_is_sent_and_never_shown() -> None:
    with serving(ONE) as registry:
        client(registry, options={"basic.auth.user.info": "me:pass"}).schemas([1])
        client(registry, options={"bearer.auth.token": "abc"}).schemas([1])
        assert [sent for _, sent in registry.asked] == ["Basic bWU6cGFzcw==", "Bearer abc"]
    assert "pass" not in repr(RegistryAccess(("u",), options=(("basic.auth.user.info", "pass"),)))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate for 127.0.0.1 and its key, signed by itself."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
               "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
               "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.mark.slow
def test_tls_is_checked_and_a_client_may_have_a_certificate(certificates: Path) -> None:
    own, key = certificates / "cert.pem", certificates / "key.pem"
    trusting = {"ssl.ca.location": str(own)}
    known = {"ssl.certificate.location": str(own), "ssl.key.location": str(key)}
    with serving(ONE, certificate=(own, key), clients=own) as registry:
        for options in ({}, trusting):
            with pytest.raises(SourceUnavailable):
                client(registry, options=options).schemas([1])
        found = client(registry, options=trusting | known).schemas([1])
        assert found == {1: SchemaText('"long"')}
