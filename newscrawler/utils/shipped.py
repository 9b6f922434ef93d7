"""Where the data files that come with the program are: sites.json and the folder selectors."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path


def shipped(name: str) -> Traversable:
    """``name`` in this folder, else beside the package (a checkout that is used from elsewhere),
    else the copy that the build puts into an egg. The last may not exist."""
    package = resources.files("newscrawler")
    beside = [Path(name)]
    if isinstance(package, Path):  # an egg is a zip file
        beside.append(package.parent / name)
    for path in beside:
        if path.is_file() if path.suffix else path.is_dir():
            return path
    return package / "_shipped" / name
