"""How the raw store fails."""

from __future__ import annotations


class RawStoreUnavailable(Exception):
    """Raw pages cannot be written or read now (disk full, read-only, bucket away). Nothing
    half-written is left behind; what raised is to be offered again. The text says what to do."""


class RawStoreGone(RawStoreUnavailable):
    """The file that was written to is not there any more: it was deleted. Waiting
    brings nothing back."""


class RawNotFound(LookupError):
    """A reference names no record: malformed, the file is gone, or what stands
    there is not a record."""
