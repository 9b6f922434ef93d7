import time

import pytest

from newscrawler.web.advertisers import is_advertiser
from newscrawler.web.script_shell import is_script_shell
from tests.measured import least

ROOTS = [
    b'<div id="root"></div>',
    b"<div id='app'><div class=spinner></div></div>",
    b"<div id=__next></div>",
    b'<div id="__nuxt"></div>',
    b"<app-root></app-root>",
    b"<noscript>You need to enable JavaScript to run this app.</noscript>",
]


def page(body: bytes) -> bytes:
    return b"<!doctype html><head><title>Tin</title></head><body>" + body + b"</body>"


@pytest.mark.parametrize("root", ROOTS)
def test_an_empty_frame_with_a_script_is_one(root: bytes):
    assert is_script_shell(page(root + b'<script src="/app.js"></script>'))


@pytest.mark.parametrize(
    "body",
    [
        ROOTS[0],  # no script
        b"<p>Short note</p><script src=a.js></script>",  # nothing says that it is a frame
        ROOTS[0] + b"<p>" + b"chu " * 100 + b"</p><script></script>",  # it has a text
        ROOTS[0] + b'<script>{"articleBody": "' + b"chu " * 100 + b'"}</script>',
        b"",
    ],
)
def test_other_pages_are_none(body: bytes):
    assert not is_script_shell(page(body))


def test_application_state_beside_the_frame_is_no_text():
    state = b'<script id="__NEXT_DATA__">' + b"x " * 20_000 + b"</script>"
    assert is_script_shell(page(ROOTS[2] + state))


@pytest.mark.parametrize(
    "part", [b"<noscript>", b"<a ", b"<!--", b"<div id=x", b"<svg ", b"<", b'id="']
)
def test_what_never_ends_costs_time_in_proportion_to_its_length(part: bytes):
    def cpu_s(size: int) -> float:
        body = page(
            b"<script></script><noscript>javascript</noscript>" + part * (size // len(part))
        )
        start = time.process_time()
        is_script_shell(body)
        return time.process_time() - start

    assert least(lambda: cpu_s(400_000) / max(cpu_s(50_000), 0.005), 30) < 30


def test_hosts_below_an_advertisers_are_its_own():
    assert is_advertiser("www.googletagmanager.com")
    assert is_advertiser("securepubads.g.doubleclick.net.")
    assert not is_advertiser("notdoubleclick.net")
    assert not is_advertiser("vnexpress.net")
    assert not is_advertiser("net")
