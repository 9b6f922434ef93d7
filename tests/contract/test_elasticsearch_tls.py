"""Elasticsearch behind TLS with an authority of its own, a password or an API key."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from newscrawler.store import open_store
from newscrawler.store.base import Query, StoreUnavailable
from newscrawler.store.elasticsearch.article_store import ElasticStore
from newscrawler.store.finished import open_finished
from tests import tls_proxy
from tests.contract.articles import article
from tests.fixtures_tls import TestCA
from tests.tls_proxy import TlsProxy


@pytest.fixture
def proxy(elasticsearch_server: str, tls_ca: TestCA) -> Iterator[TlsProxy]:
    with tls_proxy.before(elasticsearch_server, tls_ca.server_context("127.0.0.1")) as proxy:
        yield proxy


@pytest.fixture
def index() -> str:
    return f"f{uuid.uuid4().hex[:12]}"


async def refused(store: ElasticStore) -> str:
    """What a write says, in one line."""
    with pytest.raises(StoreUnavailable) as caught:
        await store.put([article("a", "Một", "x")])
    await store.close()
    said = str(caught.value)
    assert "\n" not in said and tls_proxy.PASSWORD not in said and tls_proxy.API_KEY not in said
    return said


async def test_an_authority_of_ones_own_and_a_password(
    proxy: TlsProxy, tls_ca: TestCA, index: str
) -> None:
    store = ElasticStore(proxy.url_with_password, index=index, ca_file=str(tls_ca.ca_file))
    assert [r.status for r in await store.put([article("a", "Giá vàng", "x")])] == ["new"]
    await store.refresh()
    assert (await store.search(Query("vàng"))).total == 1
    assert proxy.refused == 0
    await store.close()


async def test_key_and_authority_by_the_settings(
    proxy: TlsProxy, tls_ca: TestCA, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARTICLE_STORE_API_KEY", tls_proxy.API_KEY)
    ca = str(tls_ca.ca_file)
    store = open_store(proxy.url, tmp_path, index=index, ca_file=ca)
    assert [r.status for r in await store.put([article("a", "Một", "x")])] == ["new"]
    await store.close()
    finished = open_finished(proxy.url, tmp_path, index=index, ca_file=ca)
    await finished.put([(b"i" * 16, b"record")])
    assert await finished.get([b"i" * 16]) == {b"i" * 16: b"record"}
    await finished.close()


async def test_a_certificate_that_is_not_to_be_trusted_is_told_in_one_line(
    elasticsearch_server: str, tls_ca: TestCA, index: str, tmp_path: Path
) -> None:
    ours = str(tls_ca.ca_file)
    (tmp_path / "other").mkdir()
    other = str(TestCA.create(tmp_path / "other").ca_file)
    cases = [
        (tls_ca.server_context("127.0.0.1"), "", "unable to get local issuer certificate"),
        (tls_ca.server_context("127.0.0.1"), other, "unable to get local issuer certificate"),
        (tls_ca.server_context("es.example"), ours, "not valid for '127.0.0.1'"),
        (tls_ca.server_context("127.0.0.1", valid_days=(-9, -1)), ours, "has expired"),
    ]
    for context, trusted, reason in cases:
        with tls_proxy.before(elasticsearch_server, context) as proxy:
            store = ElasticStore(proxy.url_with_password, index=index, ca_file=trusted)
            said = await refused(store)
            assert "its certificate is not trusted" in said and reason in said, said
            assert "ARTICLE_STORE_CA_FILE" in said


@pytest.mark.parametrize("what", ["nothing", "wrong password", "wrong key"])
async def test_wrong_credentials_are_told_in_one_line(
    what: str, proxy: TlsProxy, tls_ca: TestCA, index: str
) -> None:
    wrong = {
        "nothing": (proxy.url, None),
        "wrong password": (proxy.url.replace("//", "//elastic:guessed@"), None),
        "wrong key": (proxy.url, "d3Jvbmc6d3Jvbmc="),
    }
    url, key = wrong[what]
    said = await refused(ElasticStore(url, index=index, api_key=key, ca_file=str(tls_ca.ca_file)))
    assert "refused (401); is" in said and "ARTICLE_STORE_API_KEY" in said
    assert "guessed" not in said and "d3Jv" not in said
    assert proxy.refused == 1, "a wrong password is not tried again: accounts are locked for it"


async def test_a_server_that_wants_tls_is_guessed(proxy: TlsProxy, index: str) -> None:
    said = await refused(ElasticStore(proxy.url.replace("https", "http"), index=index))
    assert "cannot be reached" in said and "https://" in said


def test_a_file_that_is_no_authority_is_a_wrong_setting(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.pem", tmp_path / "text.pem"):
        (tmp_path / "text.pem").write_text("no certificate")
        with pytest.raises(ValueError, match=f"ARTICLE_STORE_CA_FILE={path} is not a readable"):
            ElasticStore("https://127.0.0.1:9", ca_file=str(path))


async def test_nothing_is_lost_while_a_key_is_refused(
    proxy: TlsProxy, tls_ca: TestCA, index: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Revoked under way: what is offered is refused as a whole, and taken when it is right again."""
    url, ca = proxy.url_with_password, str(tls_ca.ca_file)
    store = ElasticStore(url, index=index, ca_file=ca)
    batches = [[article(f"{n}-{i}", f"Tin {n}", "x") for i in range(20)] for n in range(3)]
    await store.put(batches[0])
    proxy.refuse(True)
    with caplog.at_level(logging.WARNING), pytest.raises(StoreUnavailable, match=r"40[13]|reached"):
        await store.put(batches[1])
    assert not caplog.records, "one line: that of the error"
    with pytest.raises(StoreUnavailable, match="refused"):
        await store.search(Query("tin"))
    proxy.refuse(False)
    for batch in batches[1:]:
        assert [r.status for r in await store.put(batch)] == ["new"] * 20
    await store.refresh()
    assert (await store.stats())["articles"] == 60
    await store.close()
