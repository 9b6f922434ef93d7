"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path, *, mode: int, is_durable: bool = True) -> Iterator[IO[bytes]]:
    """A new file that takes the place of ``path`` when the block ends: who opens ``path`` finds the
    old text or the new one, also after a crash. Where the block raises, the old one stays and
    nothing is left beside it.

    :param mode: rights of the new file, whatever those of the old one are
    :param is_durable: its bytes are on the disk before it takes the place
    :raises OSError: the folder cannot be written, the disk is full
    """
    handle, name = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            os.fchmod(file.fileno(), mode)
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def write_whole(path: Path, data: bytes, *, mode: int, is_durable: bool = True) -> None:
    """See :func:`replacing`."""
    with replacing(path, mode=mode, is_durable=is_durable) as file:
        file.write(data)
