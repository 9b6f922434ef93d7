"""How the raw store fails."""

from __future__ import annotations


class RawStoreUnavailable(Exception):
    """Raw pages cannot be written or read now (disk full, read-only, bucket away). Nothing half-written is
    left behind; what raised is to be offered again. The text says what to do."""


class RawNotFound(LookupError):
    """A reference names no record: malformed, the file is gone, or what stands there is not a record."""
