"""A default stands in newscrawler/settings.py. Where a class that is built from settings repeats it,
so that library code and tests can do without settings, both say the same."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

import newscrawler
from newscrawler.api.deps import Deps
from newscrawler.api.limits import RequestLimits
from newscrawler.crawl import fleet, model_extraction, monitoring
from newscrawler.crawl.decision import VisitRules
from newscrawler.crawl.ingest import Ingest
from newscrawler.crawl.opening import frontier_config
from newscrawler.crawl.parse_process import ParseProcesses
from newscrawler.crawl.retention import RetentionPeriods
from newscrawler.crawl.selector_jobs import GenerationConfig
from newscrawler.crawl.site_choice import domain_policies
from newscrawler.crawl.webhook import Post
from newscrawler.discovery.links import LinkFinder
from newscrawler.discovery.sites import Site, Sites
from newscrawler.fetch.client import FetchRules
from newscrawler.fetch.render import RenderRules
from newscrawler.fleet.alarms import AlarmThresholds
from newscrawler.fleet.judgement import Patience
from newscrawler.fleet.sizing import Plan
from newscrawler.fleet.watch import WatchLimits
from newscrawler.frontier.types import DomainPolicy, FrontierConfig
from newscrawler.llm import LLM
from newscrawler.rawstore import RawStore
from newscrawler.selectorsets.jobs import ModelBudget
from newscrawler.selectorsets.model_queue import ExtractionLimits
from newscrawler.spiders.news import visit_rules
from newscrawler.store import open_store

PACKAGE = Path(newscrawler.__file__).parent


@cache
def settings() -> Settings:
    """As a crawl without any word of the operator has them."""
    found = Settings()
    found.setmodule("newscrawler.settings", priority="project")
    return found


def policy() -> DomainPolicy:
    sites = Sites([Site("a", "a", "http://a.test/", ("a.test",))], [])
    return domain_policies(sites, settings())[0]


#: Class -> one that is made from the settings.
BUILT: dict[type[Any], Callable[[], Any]] = {
    AlarmThresholds: lambda: monitoring.limits_of(settings()),
    DomainPolicy: policy,
    ExtractionLimits: lambda: model_extraction.limits_of(settings()),
    FetchRules: lambda: FetchRules.from_settings(settings()),
    FrontierConfig: lambda: frontier_config(settings(), loopback_only=False),
    ModelBudget: lambda: GenerationConfig.of(settings()).limits,
    GenerationConfig: lambda: GenerationConfig.of(settings()),
    RenderRules: lambda: RenderRules.from_settings(settings()),
    RetentionPeriods: lambda: RetentionPeriods.from_settings(settings()),
    VisitRules: lambda: visit_rules(settings(), None),
    WatchLimits: lambda: fleet.limits_of(settings()),
    Patience: lambda: fleet.limits_of(settings()).stuck,
    RequestLimits: lambda: RequestLimits(per_minute=settings().getint("API_REQUESTS_PER_MINUTE")),
}
#: Parameter of a function or of a class that is no dataclass -> its setting, and the factor between.
PARAMETERS: dict[tuple[Callable[..., Any], str], tuple[str, float]] = {
    (Ingest, "rows"): ("STORE_BATCH_ROWS", 1),
    (Ingest, "wait_s"): ("STORE_BATCH_MS", 0.001),
    (LLM, "timeout_s"): ("LLM_TIMEOUT_S", 1),
    (LinkFinder, "max_children"): ("FRONTIER_MAX_CHILDREN", 1),
    (ParseProcesses, "memory_bytes"): ("READ_MEMORY_BYTES", 1),
    (Plan, "delay_s"): ("DOWNLOAD_DELAY", 1),
    (Post, "timeout_s"): ("EVENT_WEBHOOK_TIMEOUT_S", 1),
    (RawStore.open, "rotate_bytes"): ("RAW_ROTATE_BYTES", 1),
    (RawStore.open, "rotate_s"): ("RAW_ROTATE_S", 1),
    (open_store, "query_s"): ("SEMANTIC_QUERY_MS", 0.001),
}
#: Class and field -> why its default is another than the setting's.
OTHER: dict[tuple[Callable[..., Any], str], str] = {
    (FrontierConfig, "pattern_budget"): "off: a queue that a test or a bench fills has one pattern",
    (FrontierConfig, "finished_limit"): "off: without an archive all records stay in Redis",
    (VisitRules, "max_age_s"): "off: a page that is read by itself may be of any age",
    (VisitRules, "list_sample"): "off: needs a raw store",
    (DomainPolicy, "cls"): "of the site, not of a setting",
    (DomainPolicy, "group"): "as cls",
    (
        AlarmThresholds,
        "coverage",
    ): "off: which fields an article must have is said by who judges them",
    (WatchLimits, "worker_memory_bytes"): "off: workers that a test fakes have no memory",
    (WatchLimits, "stuck"): "off: Patience, below",
    (Patience, "turn_s"): "off: a row of a worker is judged by its heartbeat alone",
    (Patience, "visit_s"): "off: as turn_s",
    (RequestLimits, "per_minute"): "off: a rate needs tokens, which only the setting's server has",
    (LinkFinder, "max_children"): "off: a page that is read by itself shows all of its links",
    (ParseProcesses, "memory_bytes"): "off: a bound of the whole process would hold a test's too",
}


def defaults_of(cls: type[Any]) -> dict[str, Any]:
    found = {}
    for field in dataclasses.fields(cls):
        if field.default is not dataclasses.MISSING:
            found[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            found[field.name] = field.default_factory()
    return found


def different() -> set[tuple[Callable[..., Any], str]]:
    found: set[tuple[Callable[..., Any], str]] = set()
    for cls, build in BUILT.items():
        built = build()
        for name, default in defaults_of(cls).items():
            if getattr(built, name) != default:
                found.add((cls, name))
    for (called, name), (setting, factor) in PARAMETERS.items():
        default = inspect.signature(called).parameters[name].default
        if default != pytest.approx(settings().getfloat(setting) * factor):
            found.add((called, name))
    return found


def test_a_default_is_that_of_its_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 1000)  # RENDER_SANDBOX=auto
    assert different() == set(OTHER)


# ---------------------------------------------------------------- nothing is left out of the tables
_SETTING = re.compile(r"(?:settings\.get\w*\(|settings\[|\bget\[|\bms\()'[A-Z_]+'")


def classes_built_from_settings() -> Iterator[type[Any]]:
    """Dataclasses with a default for what somewhere in the package is taken from a setting."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
        for owner in (tree, *(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef))):
            own = vars(module).get(getattr(owner, "name", ""))
            for call in (n for n in ast.walk(owner) if isinstance(n, ast.Call)):
                if not isinstance(call.func, ast.Name):
                    continue
                called = own if call.func.id == "cls" else vars(module).get(call.func.id)
                if dataclasses.is_dataclass(called) and _takes_setting(call, called):
                    yield called  # type: ignore[misc]


def _takes_setting(call: ast.Call, cls: Any) -> bool:
    names = [field.name for field in dataclasses.fields(cls) if field.init]
    given = list(zip(names, call.args, strict=False))
    given += [(word.arg or "", word.value) for word in call.keywords]
    numbers = {name for name, value in defaults_of(cls).items() if value or value is None}
    return any(name in numbers and _SETTING.search(ast.unparse(value)) for name, value in given)


def test_every_class_with_defaults_that_settings_say_is_compared() -> None:
    found = set(classes_built_from_settings())
    assert FrontierConfig in found and FetchRules in found
    # Deps holds parts that are open already: a default stands for a part that a test leaves out.
    assert found - {Deps} <= set(BUILT)
