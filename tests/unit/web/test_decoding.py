"""Content codings: whole bodies come back, whatever the chunks; bombs, lies and cut ends do not."""

from __future__ import annotations

import gzip
import random
import time
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
from backports import zstd

from newscrawler.fetch.decoding import MAX_MEMBERS, BodyDecoder, DecodeError
from tests.measured import least

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
BOMB = bytes(50_000_000)


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


@pytest.mark.parametrize(
    "coding", ["gzip", "deflate", "Deflate", "br", "zstd", "gzip, br", "gzip,gzip"]
)
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
        ("gzip", lambda: gzip.compress(BOMB, 1)),
        ("deflate", lambda: zlib.compress(BOMB, 1)),
        ("br", lambda: brotli.compress(BOMB, quality=1)),
        ("zstd", lambda: zstd.compress(BOMB)),
        ("gzip, gzip", lambda: gzip.compress(gzip.compress(BOMB, 1))),
        ("gzip", lambda: gzip.compress(bytes(90_000)) * 1000),
    ],
    ids=["gzip", "deflate", "br", "zstd", "nested", "members"],
)
def test_a_bomb_is_refused_without_being_inflated(coding: str, data: Callable[[], bytes]) -> None:
    packed = data()
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError) as caught:
            decode(coding, packed, limit=1_000_000, chunk=65536)
        assert caught.value.reason == "size"
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("size", "fits"), [(999, True), (1000, True), (1001, False)])
@pytest.mark.parametrize("coding", [None, "gzip", "deflate", "br", "zstd"])
def test_the_limit_is_exact(coding: str | None, size: int, fits: bool) -> None:
    page = random.Random(size).randbytes(100) * 11
    page = page[:size]
    encode = {
        "gzip": gzip.compress,
        "deflate": zlib.compress,
        "br": brotli.compress,
        "zstd": zstd.compress,
    }
    data = encode[coding](page) if coding else page
    if fits:
        assert decode(coding, data, limit=1000) == page
        return
    with pytest.raises(DecodeError) as caught:
        decode(coding, data, limit=1000)
    assert caught.value.reason == "size"


def test_a_zstd_window_that_would_take_memory_is_refused() -> None:
    options = {
        zstd.CompressionParameter.window_log: 27,
        zstd.CompressionParameter.compression_level: 1,
    }
    compressor = zstd.ZstdCompressor(options=options)
    data = compressor.compress(random.Random(3).randbytes(1_000_000)) + compressor.flush()
    with pytest.raises(DecodeError) as caught:
        decode("zstd", data)
    assert caught.value.reason == "bad_encoding"


# ---------------------------------------------------------------- what decoding costs
ENCODE: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, 1),
    "br": lambda data: brotli.compress(data, quality=1),
    "zstd": zstd.compress,
}
MANY = 2000  # members, all of them honest as far as the limit is concerned


def cpu_s(coding: str, data: bytes) -> float:
    """CPU seconds, the least of three: what other processes do to the caches is not ours."""
    taken = []
    for _ in range(3):
        start = time.thread_time()
        decode(coding, data)
        taken.append(time.thread_time() - start)
    return min(taken)


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_empty_members_do_not_each_copy_the_rest(coding: str) -> None:
    members = ENCODE[coding](b"") * MANY
    rest = ENCODE[coding](random.Random(5).randbytes(6_000_000))

    def ratio() -> float:
        apart = cpu_s(coding, members) + cpu_s(coding, rest)
        return cpu_s(coding, members + rest) / apart

    assert least(ratio, 3) < 3, "the whole costs more than its parts"


@pytest.mark.parametrize("outer", ["gzip", "br", "zstd"])
@pytest.mark.parametrize("inner", ["gzip", "zstd"])
def test_a_layer_of_members_costs_what_its_members_cost(inner: str, outer: str) -> None:
    def body(count: int) -> bytes:
        member = ENCODE[inner](random.Random(count).randbytes(900))
        return ENCODE[outer](member * count)

    coding = f"{inner}, {outer}"
    long, short = body(MANY), body(MANY // 2)
    assert least(lambda: cpu_s(coding, long) / cpu_s(coding, short), 3) < 3


@pytest.mark.parametrize(("count", "is_taken"), [(MAX_MEMBERS, True), (MAX_MEMBERS + 1, False)])
@pytest.mark.parametrize("coding", ["gzip", "zstd", "gzip, br", "zstd, gzip"])
def test_the_limit_of_members_is_exact(coding: str, count: int, is_taken: bool) -> None:
    inner, _, outer = coding.partition(", ")
    data = ENCODE[inner](b"x") * count
    data = ENCODE[outer](data) if outer else data
    if is_taken:
        assert decode(coding, data, chunk=5000) == b"x" * count
        return
    with pytest.raises(DecodeError) as caught:
        decode(coding, data, chunk=5000)
    assert caught.value.reason == "size"


@pytest.mark.parametrize("outer", ["gzip", "br", "zstd"])
@pytest.mark.parametrize("inner", ["gzip", "br", "zstd"])
@pytest.mark.parametrize("fault", ["none", "inner cut", "outer cut", "bomb"])
def test_layers_come_back_or_are_named(inner: str, outer: str, fault: str) -> None:
    page = BOMB[:3_000_000] if fault == "bomb" else PAGE
    data = ENCODE[inner](page)
    data = ENCODE[outer](data[:-50] if fault == "inner cut" else data)
    data = data[:-50] if fault == "outer cut" else data
    if fault == "none":
        assert decode(f"{inner}, {outer}", data, chunk=777) == PAGE
        return
    with pytest.raises(DecodeError) as caught:
        decode(f"{inner}, {outer}", data, limit=1_000_000, chunk=777)
    assert caught.value.reason == ("size" if fault == "bomb" else "truncated")


def test_a_member_whose_two_first_bytes_come_apart_is_not_lost() -> None:
    first = gzip.compress(b"one")
    decoder = BodyDecoder("gzip", 1000)
    decoder.feed(first + b"\x1f")
    decoder.feed(gzip.compress(b"two")[1:])
    assert decoder.finish() == b"onetwo"


def test_padding_stays_padding_whatever_the_chunks() -> None:
    decoder = BodyDecoder("gzip", 1000)
    decoder.feed(gzip.compress(b"one") + bytes(4))
    decoder.feed(b"\x1f\x8b is not the head of a member here")
    assert decoder.finish() == b"one"
