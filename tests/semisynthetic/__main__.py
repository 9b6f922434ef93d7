"""python -m tests.semisynthetic [--pages DIR] [--most N] [--fresh N] [--only ID] [--shard I/N]
[--seed N]: the table of docs/selectors.md."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from newscrawler import cli
from tests.semisynthetic.life import FIELDS, Life, Site, live, structures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--pages", type=Path, default=Path(__file__).resolve().parents[3] / "shared" / "pages"
    )
    parser.add_argument("--most", type=int)
    parser.add_argument("--fresh", type=int, default=25)
    parser.add_argument("--only")
    parser.add_argument(
        "--shard", default="0/1", help="every n-th structure: 0/2 and 1/2 are two halves"
    )
    parser.add_argument("--seed", type=int, default=1, help="other stories in the same structures")
    parser.add_argument("--show", action="store_true", help="the sets and what was wrong")
    args = parser.parse_args()
    if not (args.pages / "gold.jsonl").is_file():
        cli.refuse(
            f"there are no stored pages in {args.pages}: --pages DIR names a folder with gold.jsonl"
            " and html/<id>.html.gz"
        )
    lives: list[Life] = []
    part, parts = map(int, args.shard.split("/"))
    for number, (structure, texts) in enumerate(structures(args.pages, args.most)):
        if number % parts != part:
            continue
        if args.only and args.only not in (structure.id, structure.site):
            continue
        start = time.process_time()
        life = live(Site(structure, texts, args.seed), args.fresh)
        lives.append(life)
        shares = (
            " ".join(f"{n}={life.right[n] / life.fresh:.2f}" for n in FIELDS) if life.fresh else ""
        )
        print(
            f"{life.id} {life.site:28} {structure.lang} {life.state:8} pages={life.pages} {shares} "
            f"{life.reason} ({time.process_time() - start:.1f} s)",
            flush=True,
        )
        if args.show:
            print(json.dumps((life.doc or {}).get("variants"), ensure_ascii=False))
        for what in life.wrong[: 20 if args.show else 2]:
            print(f"    {what[:300]}")
    report(lives)


def report(lives: list[Life]) -> None:
    active = [x for x in lives if x.state == "active"]
    good = [x for x in active if x.good]
    early = [x for x in active if x.pages <= 42]
    print(
        f"structures {len(lives)}, active {len(active)}, of them after at most 42 pages {len(early)}"
    )
    print(f"all four fields >= 99 %: {len(good)} ({len(good) / max(1, len(lives)):.0%})")
    print(f"wrong in a field by their own selectors: {sum(x.silently_wrong for x in active)}")
    for name in FIELDS:
        right, of = sum(x.right[name] for x in active), sum(x.fresh for x in active)
        print(f"  {name:10} {right / max(1, of):.4f} of {of} pages with an active set")


if __name__ == "__main__":
    with cli.interruptible("Stopped."):
        main()
