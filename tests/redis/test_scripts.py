"""How the parts of the scripts are put together."""

from __future__ import annotations

import re

import pytest

from newscrawler.frontier import packing, records, scripts
from newscrawler.frontier.scripts import Scripts
from newscrawler.frontier.types import FrontierConfig


def test_names_that_stand_for_numbers_become_numbers() -> None:
    parts = {
        "": "if x == OUT.DONE then return d.tail, e.tail, OUT.GONE end\n",
        "a": "local OUT = { DONE = 1,\n  GONE = 6 }\n--@fields d raw tail\n--@fields d gate\nlocal x = d.gate\n",
    }
    assert scripts._with_numbers(parts) == {
        "": "if x == 1 then return d[2], e.tail, 6 end\n",
        "a": "--@fields d raw tail\n--@fields d gate\nlocal x = d[3]\n",
    }


@pytest.mark.parametrize("use", ["OUT.DOEN", "d.tial"])
def test_a_misspelt_name_is_no_nil_in_a_script(use: str) -> None:
    with pytest.raises(ValueError, match=use):
        scripts._with_numbers({"": f"return {use}\n", "a": "local OUT = { DONE = 1 }\n--@fields d tail\n"})


def test_single_values_of_the_configuration_are_written_into_the_scripts() -> None:
    config = packing.config(FrontierConfig(lease_ms=12_345, autothrottle=False))
    made = Scripts(None, config)  # type: ignore[arg-type]
    for name in (x for x in scripts.NAMES if scripts.CONFIG in scripts.load(x)):
        text = made.script(name).text
        left = set(re.findall(r"(?<![\w.])C\.(\w+)", re.sub(r"--.*", "", text)))
        assert left <= {"revisit_ms"}, name
    assert "real + (12345)" in made.script("step").text and "if not (false) then" in made.script("step").text


def test_the_domain_is_a_list_in_the_order_of_its_record() -> None:
    text = scripts._text("_domain")
    names = " ".join(re.findall(r"^--@fields d (.*)$", text, flags=re.MULTILINE)).split()
    first, site = map(int, re.findall(r"local FIRST, SITE = (\d+), (\d+)", text)[0])
    assert names[first - 1] == "schema" and names[site - 1] == "site" and len(names) == site
    assert site - first == len(records.DOMAIN.unpack(bytes(records.DOMAIN.size))) - 1, (
        "the site has its length before it"
    )
