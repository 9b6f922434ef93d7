"""`python -m benchmarks.bench_freshness`: how soon is a new article stored, and how many
requests does it cost?

33 sites over a simulated day, first as shipped, then with every seed polled every 15 minutes, on
the same web (same seed). Prints a row per run, the worst sites and the channels, and draws both
runs into one SVG. Exit 1 when p95 of the run as shipped is above ten minutes.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.freshness import Plan, Result, percentile, run, save
from benchmarks.freshness_plot import draw
from newscrawler import cli

BASELINE_S = 900.0
TARGET_MIN = 10.0


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=24.0, help="simulated hours (24)")
    parser.add_argument(
        "--factor", type=float, default=60.0, help="most simulated seconds per real second (60)"
    )
    parser.add_argument(
        "--rate", type=float, default=4.0, help="articles per site and simulated hour, mean (4)"
    )
    parser.add_argument(
        "--layout",
        choices=("names", "ip"),
        default="names",
        help="33 sites by name, or fewer by address",
    )
    parser.add_argument(
        "--sites", default="", help="names: another sites.json; ip: number of sites"
    )
    parser.add_argument(
        "--home-only",
        action="store_true",
        help="ip: the crawl is told nothing but the home page of each site",
    )
    parser.add_argument(
        "--unknown",
        type=int,
        default=0,
        help="ip: so many sites of which only the home is told, drawn by --seed (with --sites 0:"
        " no others)",
    )
    parser.add_argument("--seed", type=int, default=1, help="draws the web (1)")
    parser.add_argument("--only", choices=("shipped", "baseline"), help="one of the two runs")
    parser.add_argument(
        "--together",
        action="store_true",
        help="both runs at the same time, for machines with cores to spare",
    )
    parser.add_argument("--plot", type=Path, help="write the picture here (SVG)")
    parser.add_argument("--report", type=Path, help="write the figures here (JSON)")
    parser.add_argument(
        "--keep", type=Path, help="folder for logs and data, emptied first (a temporary one)"
    )
    return parser.parse_args()


def show(result: Result) -> None:
    row = result.row()
    print(
        f"{result.name:22} articles {row['articles']:5}  missed {row['missed']:3}  p50"
        f" {row['p50_min']:5.1f} min  p95 {row['p95_min']:5.1f} min  p99 {row['p99_min']:6.1f} min "
        f" list requests a new article {row['list_requests_per_new']:5.1f}  all requests"
        f" {row['requests_per_new']:5.1f}"
    )
    print(
        f"{'':22} visits {row['visits']}  of articles again {row['revisits']}  worker busy"
        f" {row['busy']:.0%}  {row['mean_factor']:.0f} times as fast as life,"
        f" {row['real_s'] / 60:.0f} min"
    )
    for name, lags in sorted(result.by_channel.items()):
        p50, p95 = percentile(lags, 50) / 60, percentile(lags, 95) / 60
        print(f"{'':22} {name:14} {len(lags):5} articles  p50 {p50:5.1f}  p95 {p95:6.1f} min")
    worst = sorted(result.by_site.items(), key=lambda x: -percentile(x[1], 95))[:5]
    named = ", ".join(f"{site} {percentile(lags, 95) / 60:.1f}" for site, lags in worst)
    print(f"{'':22} slowest sites (p95, min): {named}")


def main() -> int:
    args = options()
    folder = args.keep or Path(tempfile.mkdtemp(prefix="freshness-"))
    shutil.rmtree(folder, ignore_errors=True)
    common = {
        "hours": args.hours,
        "factor": args.factor,
        "rate": args.rate,
        "layout": args.layout,
        "sites": args.sites,
        "home_only": args.home_only,
        "unknown": args.unknown,
        "seed": args.seed,
    }
    plans = [Plan("as shipped", **common), Plan("every seed, 15 min", fixed_s=BASELINE_S, **common)]
    if args.only:
        plans = plans[:1] if args.only == "shipped" else plans[1:]
    with ThreadPoolExecutor(
        len(plans) if args.together else 1
    ) as pool:  # each run is processes of its own
        results = list(pool.map(lambda n: run(plans[n], folder / str(n)), range(len(plans))))
    for result in results:
        show(result)
    if args.report:
        save(results, plans, args.report)
    if args.plot:
        args.plot.write_text(draw(results, args.hours), encoding="utf-8")
    if not args.keep:
        shutil.rmtree(folder, ignore_errors=True)
    shipped = next((r for r in results if r.name == "as shipped"), None)
    return int(shipped is not None and not percentile(shipped.lags, 95) <= 60 * TARGET_MIN)


if __name__ == "__main__":
    with cli.interruptible("Stopped; nothing is told of a part."):
        raise SystemExit(main())
