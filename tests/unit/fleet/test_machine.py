"""What a host has and has free, as the kernel says it, also inside a container."""

from __future__ import annotations

from pathlib import Path

import pytest

from newscrawler.fleet.machine import MachineMeter

MIB = 1024**2


def write(folder: Path, stat: str, cpu_max: str = "", memory: tuple[str, str] = ("", "")) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "stat").write_text(f"{stat}\ncpu0 1 2 3\n")
    (folder / "meminfo").write_text(
        "MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: 4194304 kB\n"
    )
    for name, value in (
        ("cpu.max", cpu_max), ("memory.max", memory[0]), ("memory.current", memory[1])
    ):  # fmt: skip
        if value:
            (folder / name).write_text(value + "\n")


@pytest.mark.parametrize(
    ("cpu_max", "memory", "cores", "free_mib"),
    [
        ("", ("", ""), None, 4096),
        ("max 100000", ("max", "77"), None, 4096),
        ("50000 100000", (str(1024 * MIB), str(300 * MIB)), 0.5, 724),
        ("50000 100000", (str(100 * MIB), str(300 * MIB)), 0.5, 0),
    ],
)
def test_of_a_container_its_limits_count(
    tmp_path: Path, cpu_max: str, memory: tuple[str, str], cores: float | None, free_mib: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 2, 3})
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    folder = tmp_path / "k"
    write(folder, "cpu  100 0 100 700 100 0 0 0 0 0", cpu_max, memory)
    meter = MachineMeter(folder, folder)
    # 100 ticks later, 75 of them idle
    write(folder, "cpu  125 0 100 765 110 0 0 0 0 0", cpu_max, memory)
    machine = meter.look()
    assert machine is not None
    assert machine.cores == (cores or 4.0)
    assert machine.free_cores == min(cores or 4.0, 3.0)
    assert machine.free_memory_bytes == free_mib * MIB


def test_this_machine_has_something() -> None:
    machine = MachineMeter().look()
    assert machine is not None and machine.cores > 0 and machine.memory_bytes > 64 * MIB
    assert 0 <= machine.free_memory_bytes <= machine.memory_bytes


def test_where_the_kernel_says_nothing_nothing_is_known(tmp_path: Path) -> None:
    assert MachineMeter(tmp_path, tmp_path).look() is None
