"""Content codings: whole bodies come back, whatever the chunks; bombs, lies and cut ends do not."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib

import brotli
import pytest
from backports import zstd

from newscrawler.web.decoding import BodyDecoder, DecodeError

PAGE = ("<p>Thủ tướng chủ trì họp " * 2000).encode() + random.Random(1).randbytes(20_000)
RAW_DEFLATE = zlib.compressobj(wbits=-15)
CODED = {
    "gzip": gzip.compress(PAGE),
    "x-gzip": gzip.compress(PAGE),
    "deflate": zlib.compress(PAGE),
    "Deflate": RAW_DEFLATE.compress(PAGE) + RAW_DEFLATE.flush(),
    "br": brotli.compress(PAGE, quality=3),
    "zstd": zstd.compress(PAGE),
    "gzip, br": brotli.compress(gzip.compress(PAGE), quality=3),
    "gzip,gzip": gzip.compress(gzip.compress(PAGE)),
    "identity": PAGE,
    "utf-8": PAGE,
    "": PAGE,
}
BOMB = bytes(100_000_000)


def decode(coding: str | None, data: bytes, limit: int = 10**7, chunk: int = 10**9) -> bytes:
    decoder = BodyDecoder(coding, limit)
    for start in range(0, len(data), chunk):
        decoder.feed(data[start : start + chunk])
    return decoder.finish()


@pytest.mark.parametrize("chunk", [1, 7, 1000, 65536, 10**9])
@pytest.mark.parametrize("coding", CODED)
def test_every_coding_comes_back_whatever_the_chunks(coding: str, chunk: int) -> None:
    if chunk == 1 and len(CODED[coding]) > 40_000:
        chunk = 3
    assert decode(coding, CODED[coding], chunk=chunk) == PAGE


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_several_members_are_one_body(coding: str) -> None:
    assert decode(coding, CODED[coding] * 3, chunk=999) == PAGE * 3


def test_padding_behind_the_end_is_ignored() -> None:
    assert decode("gzip", CODED["gzip"] + bytes(100)) == PAGE


@pytest.mark.parametrize("coding", [None, "gzip", "br", "zstd", "deflate"])
def test_an_answer_without_a_body_is_empty(coding: str | None) -> None:
    assert BodyDecoder(coding, 10).finish() == b""


@pytest.mark.parametrize("coding", ["gzip", "deflate", "Deflate", "br", "zstd", "gzip, br", "gzip,gzip"])
@pytest.mark.parametrize("lacking", [1, 5, 5000])
def test_a_cut_end_is_seen(coding: str, lacking: int) -> None:
    if (coding, lacking) == ("gzip, br", 1):
        lacking = 2  # the last byte of brotli may be padding
    with pytest.raises(DecodeError) as caught:
        decode(coding, CODED[coding][:-lacking])
    assert caught.value.reason == "truncated"


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "deflate", "gzip, gzip"])
def test_a_wrong_label_is_bad_encoding(coding: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(coding, b"<!doctype html><html><body>plain</body></html>" * 50)
    assert caught.value.reason == "bad_encoding"


@pytest.mark.parametrize("coding", ["compress", "gzip, sdch", "gzip, gzip, gzip", "aes128gcm"])
def test_codings_that_nobody_asked_for_are_bad_encoding(coding: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(coding, PAGE)
    assert caught.value.reason == "bad_encoding"


def test_a_damaged_checksum_is_bad_encoding() -> None:
    data = bytearray(CODED["gzip"])
    data[-6] ^= 1
    with pytest.raises(DecodeError) as caught:
        decode("gzip", bytes(data))
    assert caught.value.reason == "bad_encoding"


@pytest.mark.parametrize(
    ("coding", "data"),
    [
        ("gzip", gzip.compress(BOMB)),
        ("deflate", zlib.compress(BOMB)),
        ("br", brotli.compress(BOMB, quality=1)),
        ("zstd", zstd.compress(BOMB)),
        ("gzip, gzip", gzip.compress(gzip.compress(BOMB))),
        ("gzip", gzip.compress(bytes(90_000)) * 1000),
    ],
    ids=["gzip", "deflate", "br", "zstd", "nested", "members"],
)
def test_a_bomb_is_refused_without_being_inflated(coding: str, data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError) as caught:
            decode(coding, data, limit=1_000_000, chunk=65536)
        assert caught.value.reason == "size"
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("size", "fits"), [(999, True), (1000, True), (1001, False)])
@pytest.mark.parametrize("coding", [None, "gzip", "deflate", "br", "zstd"])
def test_the_limit_is_exact(coding: str | None, size: int, fits: bool) -> None:
    page = random.Random(size).randbytes(100) * 11
    page = page[:size]
    encode = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstd.compress}
    data = encode[coding](page) if coding else page
    if fits:
        assert decode(coding, data, limit=1000) == page
        return
    with pytest.raises(DecodeError) as caught:
        decode(coding, data, limit=1000)
    assert caught.value.reason == "size"


def test_a_zstd_window_that_would_take_memory_is_refused() -> None:
    options = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.compression_level: 1}
    compressor = zstd.ZstdCompressor(options=options)
    data = compressor.compress(random.Random(3).randbytes(1_000_000)) + compressor.flush()
    with pytest.raises(DecodeError) as caught:
        decode("zstd", data)
    assert caught.value.reason == "bad_encoding"
