"""python -m tests.real_model [--small N] [--sites N] [--tokens N]: a real, far too small model on the
whole path of selector sets. The figures of docs/selectors.md.

Needs NEWSCRAWLER_MODEL_PYTHON (tests/real_model/server.py) and redis-server; asks nobody else.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import Counter
from pathlib import Path

import redis.asyncio

from newscrawler.frontier import redis_server
from tests.newsweb.templates import TEMPLATES
from tests.real_model.bench import PRICE_IN, PRICE_OUT, SetBench, SmallPage, small_pages
from tests.real_model.server import RealModel


async def run(folder: Path, sites: int, small: int, tokens: int, form: str) -> None:
    client = redis.asyncio.Redis.from_url(redis_server.ensure(folder))
    model = RealModel()
    bench = SetBench(client, folder / "sets", model, most_tokens=tokens)
    bench.llm.start_from(form)
    rules: Counter[str] = Counter()
    total: Counter[str] = Counter()
    try:
        every: list[tuple[str, list[SmallPage] | None]] = [
            *((f"small{number}.example", small_pages(site=number)) for number in range(small)),
            *((domain, None) for domain in sorted(TEMPLATES)[:sites]),
        ]
        for domain, pages in every:
            asked = await bench.run(domain, pages)
            spent = asked.result.spent
            total.update(
                sites=1, calls=spent.attempts, tokens_in=spent.tokens_in,
                tokens_out=spent.tokens_out, seconds=round(asked.seconds), sets=asked.versions,
            )  # fmt: skip
            rules.update(asked.rules)
            print(
                f"{domain:24} {asked.result.state:9} calls={spent.attempts} in={spent.tokens_in}"
                f" out={spent.tokens_out} {asked.seconds:.0f} s form={bench.llm.mode}"
                f" {asked.result.reason[:200]}",
                flush=True,
            )
        counted, ledger = model.counted(), await bench.jobs.spent()
    finally:
        model.kill()
        await bench.llm.close()
        await client.aclose()
        redis_server.stop(folder)
    print(dict(total), "refused by:")
    for rule, times in rules.most_common():
        print(f"  {times:3} {rule}")
    cost = round(total["tokens_in"] * PRICE_IN + total["tokens_out"] * PRICE_OUT)
    print(
        f"ours: {total['tokens_in']} read, {total['tokens_out']} written; the server's own count:"
        f" {counted['in']} read anew, {counted['out']} written; ledger: {ledger.get('calls')} calls,"
        f" {ledger.get('tokens')} tokens, {ledger.get('micro')} millionths (expected {cost})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=int, default=0, help="templates of the simulated web")
    parser.add_argument("--small", type=int, default=4, help="sites of small English pages")
    parser.add_argument("--tokens", type=int, default=700, help="LLM_MAX_INPUT_TOKENS")
    parser.add_argument("--form", default="json_schema", help="json_schema, json_object or plain")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder), args.sites, args.small, args.tokens, args.form))


if __name__ == "__main__":
    main()
