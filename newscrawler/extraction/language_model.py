"""The model of py3langid, unpacked once for all processes of a user.

The package holds it compressed: every process that reads pages spent 0.4 s of CPU on unpacking it
and kept 70 MB of its own. What was unpacked is kept in the user's cache folder and mapped from
there, which takes a tenth of that and is in memory once. The cache is only a cache: where there is
no folder to write to, or where the file is not what was written, the package's own file is read.
"""

from __future__ import annotations

import fcntl
import json
import logging
import mmap
import os
import stat
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

logger = logging.getLogger(__name__)

#: Of the file: what it was made from and where its parts are, as JSON.
_HEAD_BYTES = 4096
_NAME = "py3langid-model"
#: Parts of a model, as the attributes of LanguageIdentifier are called, and their types here.
_PARTS = {
    "nb_ptc": np.float16,
    "nb_pc": np.float32,
    "tk_nextmove": np.uint32,
    "tk_row": np.uint16,
    "tk_output": np.int32,
}


def cache_folder() -> Path | None:
    """Where programs of this user keep what can be made again; None where there is no home."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    if Path(named).is_absolute():
        return Path(named) / "newscrawler"
    try:
        return Path.home() / ".cache" / "newscrawler"
    except RuntimeError:
        return None


def load(folder: Path | None) -> Any:
    """A LanguageIdentifier that gives probabilities.

    :param folder: of the cache; None = without one
    :raises OSError: there is no cache, and the package's file cannot be unpacked
    """
    from py3langid.langid import MODEL_DIR, MODEL_FILE, LanguageIdentifier

    source = Path(MODEL_DIR) / MODEL_FILE
    if folder is None:
        return LanguageIdentifier.from_model_file(source, norm_probs=True)
    made_of = _identity(source)
    try:
        return _mapped(folder / _NAME, made_of)
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.info("The unpacked model of languages is made anew: %s", error)
    model = LanguageIdentifier.from_model_file(source, norm_probs=True)
    with suppress(OSError, ValueError):
        _keep(folder, model, made_of)
    return model


def _identity(source: Path) -> list[Any]:
    from py3langid import __version__

    found = source.stat()
    return [__version__, found.st_size, found.st_mtime_ns]


def _mapped(path: Path, made_of: list[Any]) -> Any:
    """:raises ValueError: not what this program wrote from the package's present file"""
    from py3langid.langid import LanguageIdentifier

    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ValueError(f"{path} can be written by others")
        if found.st_size < _HEAD_BYTES:
            raise ValueError(f"{path} is cut off")
        # Never written in place: a file that is replaced stays whole for those that map it.
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    head = json.loads(bytes(data[:_HEAD_BYTES]))
    if head["made_of"] != made_of:
        raise ValueError(f"{path} was made from another file of py3langid")
    if zlib.crc32(data[_HEAD_BYTES:]) != head["crc32"]:
        raise ValueError(f"{path} is damaged")
    parts = {name: data[start:end] for name, (start, end) in head["parts"].items()}
    log_prior = np.frombuffer(parts["nb_pc"], np.float32)
    return LanguageIdentifier(
        np.frombuffer(parts["nb_ptc"], np.float16).reshape(-1, len(log_prior)),
        log_prior,
        head["classes"],
        parts["tk_nextmove"].cast("I"),
        parts["tk_output"].cast("i"),
        norm_probs=True,
        tk_row=parts["tk_row"].cast("H"),
    )


def _keep(folder: Path, model: Any, made_of: list[Any]) -> None:
    """Writes the file beside its place and puts it there whole; one process at a time."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / f"{_NAME}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new = folder / f"{_NAME}.new"
        try:
            new.unlink(missing_ok=True)  # of a process that was killed at it
            _write(new, model, made_of)
            new.replace(folder / _NAME)
        except BaseException:
            new.unlink(missing_ok=True)
            raise


def _write(path: Path, model: Any, made_of: list[Any]) -> None:
    parts, at, checksum = {}, _HEAD_BYTES, 0
    with path.open("xb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.seek(at)
        for name, kind in _PARTS.items():
            piece = _exactly(getattr(model, name), kind).tobytes()
            file.write(piece)
            checksum = zlib.crc32(piece, checksum)
            parts[name] = (at, at + len(piece))
            at += len(piece)
        head = {
            "made_of": made_of,
            "crc32": checksum,
            "parts": parts,
            "classes": list(model.nb_classes),
        }
        file.seek(0)
        file.write(json.dumps(head).encode().ljust(_HEAD_BYTES))
        if file.tell() != _HEAD_BYTES:
            raise ValueError(f"the head of {path} is too long")


def _exactly(values: Any, kind: Any) -> Any:
    """:raises ValueError: ``kind`` cannot hold them all"""
    made = np.asarray(values).astype(kind)
    if not np.array_equal(made, np.asarray(values)):
        raise ValueError(f"the model of languages has values that are no {kind.__name__}")
    return made
