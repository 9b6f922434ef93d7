"""Where the next worker goes, and how many have something to do."""

from __future__ import annotations

import pytest

from newscrawler.fleet.placement import Need, NodeRoom, place, taken
from newscrawler.fleet.scaling import Demand, useful, waste, within

MIB = 1024**2
NEED = Need(1.0, 500 * MIB)


def room(name: str, cores: float, mib: int = 8000, workers: int = 0, host: str = "") -> NodeRoom:
    return NodeRoom(name, host, cores, mib * MIB, workers)


def spread(rooms: list[NodeRoom], workers: int) -> dict[str, int]:
    """node -> workers, after so many were placed one after the other."""
    for _ in range(workers):
        node = place(rooms, NEED)
        assert node is not None
        rooms = taken(rooms, node, NEED)
    return {one.name: one.workers for one in rooms}


def test_workers_go_where_cores_are_free_and_not_in_turn() -> None:
    assert spread([room("big", 6.0), room("small", 1.0)], 5) == {"big": 5, "small": 0}
    assert spread([room("big", 6.0), room("small", 2.0)], 8) == {"big": 6, "small": 2}


def test_memory_counts_as_cores_do() -> None:
    assert spread([room("a", 8.0, 1000), room("b", 2.0, 8000)], 4) == {"a": 2, "b": 2}


def test_a_node_without_memory_for_a_worker_gets_none_even_when_it_idles() -> None:
    assert place([room("idle", 8.0, 499), room("busy", -2.0, 500)], NEED) == "busy"
    assert place([room("idle", 8.0, 499)], NEED) is None


def test_nodes_as_full_as_each_other_take_turns() -> None:
    assert spread([room("a", 0.0), room("b", 0.1), room("c", 0.05)], 6) == {"a": 2, "b": 2, "c": 2}


def test_nodes_of_one_host_share_what_it_has() -> None:
    rooms = [room("a1", 3.0, host="a"), room("a2", 3.0, host="a"), room("b", 2.0, host="b")]
    assert spread(rooms, 5) == {"a1": 2, "a2": 1, "b": 2}


def test_a_node_of_which_nothing_is_known_is_tried() -> None:
    assert place([room("known", 1.0), NodeRoom("new")], NEED) == "new"


@pytest.mark.parametrize(
    ("queued", "domains", "rate", "workers"),
    [
        (0, 0, 0.0, 0),
        (10, 0, 0.0, 0),  # all of their domains are paused
        (1, 1, 0.5, 1),
        (100_000, 1, 0.5, 1),  # one domain: one worker, however long its queue
        (100_000, 400, 200.0, 5),  # 200 pages/s by 40
        (100_000, 3, 200.0, 3),  # never more than domains
        (3000, 400, 200.0, 1),  # 10 pages/s work off the queue in five minutes
    ],
)
def test_workers_that_have_something_to_do(
    queued: int, domains: int, rate: float, workers: int
) -> None:
    assert useful(Demand(queued, domains, rate), 40.0).workers == workers


def test_more_workers_than_due_domains_are_named() -> None:
    demand = Demand(queued=50, due_domains=3, rate=1.5)
    assert "3 due domains" in waste(5, demand) and "2 of them have nothing" in waste(5, demand)
    assert "1 of them has nothing" in waste(4, demand)
    assert waste(3, demand) == ""
    assert waste(5, Demand()) == "", "an empty queue is no waste: articles come at any time"


@pytest.mark.parametrize(("number", "is_within"), [(0, 2), (2, 2), (5, 5), (8, 8), (9, 8)])
def test_a_number_is_kept_between_least_and_most(number: int, is_within: int) -> None:
    assert within(number, 2, 8) == is_within
