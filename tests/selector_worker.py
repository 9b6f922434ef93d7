"""A worker that does nothing but generation, in a process of its own: python -m
tests.selector_worker JSON.

Takes jobs of one Redis until its domain has a version, and says on stdout what came of each. For
tests that kill one.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import redis.asyncio

from newscrawler.extraction.context import PageContext
from newscrawler.llm import LLM
from newscrawler.selectorsets import keys
from newscrawler.selectorsets.generate import Generator
from newscrawler.selectorsets.jobs import Jobs, ModelBudget
from newscrawler.selectorsets.store import SelectorStore
from tests.fixtures_selectors import made_pages


async def work(
    redis_url: str, folder: str, domain: str, mode: str, base_url: str, lock_ms: int
) -> None:
    client = redis.asyncio.Redis.from_url(redis_url)
    pages = {f"f:{i}:1": page for i, page in enumerate(made_pages(domain, 12))}
    llm = LLM(base_url, "k", "scripted", timeout_s=60.0) if base_url else None

    async def load(ref: str) -> Any:
        return pages.get(ref)

    generator = Generator(
        SelectorStore(client, Path(folder)), Jobs(client, ModelBudget(), lock_ms=lock_ms), load,
        lambda url: PageContext(site_name="VnExpress", language="vi", zone="Asia/Ho_Chi_Minh"), llm=llm, mode=mode,
    )  # fmt: skip
    print("ready", flush=True)
    while not await client.hlen(keys.versions(domain)):
        result = await generator.run_due()
        if result is None:
            await asyncio.sleep(0.05)
            continue
        print(
            json.dumps({"state": result.state, "reason": result.reason, "version": result.version}),
            flush=True,
        )
        if result.state != "skipped":
            break
    if llm is not None:
        await llm.close()
    await client.aclose()


if __name__ == "__main__":
    asyncio.run(work(**json.loads(sys.argv[1])))
