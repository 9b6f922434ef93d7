"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def replacing(
    path: Path, *, mode: int, is_durable: bool = True, is_shared: bool = False
) -> Iterator[IO[bytes]]:
    """A new file that takes the place of ``path`` when the block ends: who opens ``path`` finds the
    old text or the new one, also after a crash. Where the block raises, the old one stays and
    nothing is left beside it.

    :param mode: rights of the new file, whatever those of the old one are
    :param is_durable: its bytes are on the disk before it takes the place
    :param is_shared: several processes may write at once, or strangers in the same folder: the part
        has a name that nobody knows. Else what a killed process left is written over by the next
    :raises OSError: the folder cannot be written, the disk is full
    """
    if is_shared:
        handle, name = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
    else:
        name = f"{path}.part"
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
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


def write_whole(
    path: Path, data: bytes, *, mode: int, is_durable: bool = True, is_shared: bool = False
) -> None:
    """See :func:`replacing`."""
    with replacing(path, mode=mode, is_durable=is_durable, is_shared=is_shared) as file:
        file.write(data)
