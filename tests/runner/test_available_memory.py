"""How much memory the machine and its container have left."""

from __future__ import annotations

from pathlib import Path

from farthing.runner.available_memory import available_bytes


def available(folder: Path, lines: str, files: dict[str, str]) -> float:
    (folder / "proc" / "self").mkdir(parents=True)
    (folder / "proc" / "meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n")
    (folder / "proc" / "self" / "cgroup").write_text(lines)
    for name, text in files.items():
        file = folder / "cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return available_bytes(folder / "proc", folder / "cgroup")


def test_a_machine_without_containers(tmp_path):
    assert available(tmp_path, "0::/user.slice\n", {}) == 8_000_000 * 1024


def test_a_container_of_either_version_has_less(tmp_path):
    two = {"box/memory.max": "3000", "box/memory.current": "2000", "box/memory.stat": "file 9\ninactive_file 500"}
    one = {
        "memory/memory.limit_in_bytes": "3000", "memory/memory.usage_in_bytes": "2000",
        "memory/memory.stat": "total_inactive_file 700",
    }  # fmt: skip
    assert available(tmp_path / "two", "0::/box/inner\n", two) == 1500
    assert available(tmp_path / "one", "4:memory:/elsewhere\n0::/\n", one) == 1700
    assert available(tmp_path / "none", "0::/box\n", {**two, "box/memory.max": "max"}) == 8_000_000 * 1024
