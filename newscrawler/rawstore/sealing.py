"""Raw pages that only who has the key can read: AES-256-GCM, a record at a time.

A sealed record is a WARC record of its own kind in a gzip member of its own, with the page's whole
record encrypted inside: files are walked, mended, compacted and checked for being whole without the
key, and no reference is of another form. What anybody can see is how many pages there are, how
large, and the id of the key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from newscrawler.rawstore import record
from newscrawler.rawstore.errors import RawStoreUnavailable
from newscrawler.rawstore.record import RecordError

TYPE = b"application/vnd.newscrawler.sealed"
#: Beside the files of a store with sealed pages: without a key nothing more is written there.
MARKER = "newscrawler-sealed"
_KEY_BYTES, _ID_BYTES, _NONCE_BYTES = 32, 4, 12
_FORM = b"\x01"
#: Where the type stands in the clear, bytes from the beginning of a member.
_HEAD_BYTES = 400


class RawLocked(RawStoreUnavailable):
    """A page is sealed with a key that is not here. Nothing is lost by that."""


class Keys:
    """The first one seals; each opens what it has sealed."""

    def __init__(self, keys: list[bytes]) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._ciphers = {_id_of(key): AESGCM(key) for key in keys}
        self.id = _id_of(keys[0]) if keys else b""

    @classmethod
    def from_text(cls, text: str, where: str) -> Keys:
        """Keys of 32 bytes in base64, one a line or with commas between them.

        :param where: what an error names
        :raises RawStoreUnavailable: one is none; the text itself is not shown
        """
        words = [word for word in re.split(r"[\s,]+", text) if word]
        keys = []
        for number, word in enumerate(words, 1):
            try:
                key = base64.b64decode(word, validate=True)
            except (binascii.Error, ValueError):
                key = b""
            if len(key) != _KEY_BYTES:
                raise RawStoreUnavailable(
                    f"{where}: key {number} is not {_KEY_BYTES} bytes in base64; make one with:"
                    " openssl rand -base64 32"
                )
            keys.append(key)
        return cls(keys)

    def __bool__(self) -> bool:
        return bool(self._ciphers)

    def seal(self, member: bytes) -> bytes:
        """A record, encrypted. The same number of bytes for each key."""
        nonce = os.urandom(_NONCE_BYTES)
        head = _FORM + self.id
        content = head + nonce + self._ciphers[self.id].encrypt(nonce, member, head)
        return record.encode_metadata(TYPE, content, is_stored=True)

    def opened(self, member: bytes) -> bytes:
        """The record inside, of a sealed one; of another the same.

        :raises RawLocked: its key is not here
        :raises RecordError: it was altered
        """
        content = content_of(member)
        if content is None:
            return member
        head, rest = content[: 1 + _ID_BYTES], content[1 + _ID_BYTES :]
        cipher = self._ciphers.get(head[1:])
        if cipher is None:
            known = ", ".join(one.hex() for one in self._ciphers) or "none"
            raise RawLocked(
                f"raw pages are sealed with key {head[1:].hex()}, which is not here (keys here:"
                f" {known}); set RAW_KEY or RAW_KEY_FILE"
            )
        from cryptography.exceptions import InvalidTag

        try:
            return cipher.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], head)
        except InvalidTag:
            raise RecordError("was altered: it is not what was sealed") from None

    def resealed(self, member: bytes) -> bytes:
        """With the first key; a record that is no page stays as it is."""
        content = content_of(member)
        if content is not None and content[1 : 1 + _ID_BYTES] == self.id:
            return member
        inner = self.opened(member)
        return self.seal(inner) if record.kind_of(inner) == b"response" else member


def _id_of(key: bytes) -> bytes:
    return hashlib.sha256(b"newscrawler raw key" + key).digest()[:_ID_BYTES]


def content_of(member: bytes) -> bytes | None:
    """The content of a sealed record; None: it is not sealed.

    :raises RecordError: it is sealed and damaged
    """
    if TYPE not in member[:_HEAD_BYTES]:
        return None
    kind, content = record.metadata(member)
    return content if kind == TYPE else None


def keys_from(environment: Mapping[str, str], name: str, file: str) -> Keys:
    """Of the variable of that name, else of a file; none where neither is set.

    :raises RawStoreUnavailable: one clear line, without the key
    """
    if text := environment.get(name, "").strip():
        return Keys.from_text(text, name)
    if not file:
        return Keys([])
    try:
        found = Keys.from_text(Path(file).read_text(encoding="ascii"), f"RAW_KEY_FILE={file}")
    except (OSError, UnicodeDecodeError) as exc:
        reason = getattr(exc, "strerror", None) or "is no text"
        raise RawStoreUnavailable(f"RAW_KEY_FILE={file}: {reason}") from exc
    if not found:
        raise RawStoreUnavailable(f"RAW_KEY_FILE={file}: holds no key")
    return found
