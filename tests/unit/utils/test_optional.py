"""Packages that only some need: named alike everywhere, and said with their command
where they are missing."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path

import pytest
from fsspec.registry import _registry
from scrapy.settings import Settings

from newscrawler.cli import doctor
from newscrawler.rawstore import RawStore, RawStoreUnavailable
from newscrawler.store.export import ExportError, export
from newscrawler.utils import optional

ROOT = Path(__file__).resolve().parents[3]


async def nothing():  # type: ignore[no-untyped-def]
    return
    yield


def without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """As on a machine where they are not installed."""
    import sys

    for name in modules:
        monkeypatch.setitem(sys.modules, name, None)
    real = optional.find_spec
    monkeypatch.setattr(optional, "find_spec", lambda m: None if m in modules else real(m))


def test_setup_and_readme_name_the_same_packages() -> None:
    text = (ROOT / "setup.py").read_text()
    match = re.search(r"extras_require=(\{.*?\})", text, re.DOTALL)
    assert match is not None
    wanted = {extra: [pip] for extra, (_, pip) in optional.EXTRAS.items()}
    assert ast.literal_eval(match[1]) == wanted
    readme = (ROOT / "README.md").read_text()
    assert all(pip in readme for (pip,) in wanted.values())
    dev = (ROOT / "requirements-dev.txt").read_text()
    assert optional.EXTRAS["parquet"][1] in dev, "the version that the tests run with"


def test_s3_without_its_package_says_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without(monkeypatch, "s3fs")
    for scheme in ("s3", "s3a"):  # a class that a test before has found is kept there
        monkeypatch.delitem(_registry, scheme, raising=False)
    with pytest.raises(RawStoreUnavailable) as caught:
        RawStore.open("s3://bucket/pages", "w1", spool=tmp_path)
    assert "-m pip install s3fs==" in str(caught.value) and "\n" not in str(caught.value)
    (finding,) = [
        f
        for f in asyncio.run(doctor.extras(Settings({"RAW_STORE": "s3://bucket/pages"})))
        if "s3fs" in f.found
    ]
    assert finding.state == "fail" and "-m pip install s3fs==" in finding.todo
    assert all(f.state == "ok" for f in asyncio.run(doctor.extras(Settings({"RAW_STORE": ""}))))


def test_parquet_without_its_package_says_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without(monkeypatch, "pyarrow", "pyarrow.parquet")
    with pytest.raises(ExportError, match=r"-m pip install pyarrow=="):
        asyncio.run(export(nothing(), "parquet", tmp_path / "a.parquet"))
    assert not list(tmp_path.iterdir())
