"""Who imports whom in src/farthing, drawn from the import statements themselves.

    python docs/figures/imports.py          writes docs/imports.svg; needs only Python
    python docs/figures/imports.py --list   prints the imports between rooms instead

A room is a package or a module at the root. An arrow leads from a room to one below it that it imports, inside
functions too; it is left out where a longer way leads there. An import that leads upwards is red.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent
SOURCE = DOCS.parent / "src" / "farthing"

ROWS = [  # top to bottom, each room with its place from left (0) to right (1); a new room needs one
    {"tuning": 0.24, "adapters": 0.42, "cli": 0.6, "comparing": 0.78, "problems": 0.96},
    {"study": 0.5},
    {"warm_starting": 0.5},
    {"study_view": 0.66},
    {"runner": 0.4, "report": 0.7},
    {"session": 0.5},
    {"given": 0.24},
    {"policies": 0.5},
    {"record": 0.3, "acquisitions": 0.8},
    {"history": 0.3, "surrogates": 0.68, "designs": 0.92},
    {"run_context": 0.02, "space": 0.2, "budget": 0.36, "direction": 0.52},
    {"checks": 0.25},
    {"trial": 0.16, "numerics": 0.72},
    {"text": 0.25, "errors": 0.5},
]
PLACES = {room: (place, row) for row, rooms in enumerate(ROWS) for room, place in rooms.items()}
PUBLIC = "study"  # `import farthing` stands for the public names, of which this is the highest
OUTSIDE = {"__init__", "__main__"}  # name everything, lazily; start the command line

WIDTH, ROW_HEIGHT, MARGIN, BOX = 860, 58, 24, (104, 32)
FILLS = {
    "users": (
        "#fbe9df",
        {"adapters", "cli", "problems", "study", "study_view", "comparing", "tuning", "warm_starting"},
    ),
    "running": ("#fdf3d7", {"runner", "report", "session", "given"}),
    "mathematics": ("#e3edf4", {"policies", "acquisitions", "surrogates", "designs", "numerics"}),
    "records and values": (
        "#e6f0e6",
        {"record", "history", "space", "checks", "text", "trial", "budget", "direction", "run_context", "errors"},
    ),
}  # fmt: skip


def edges(source: Path = SOURCE) -> set[tuple[str, str]]:
    """(importer, imported) of all rooms."""
    found = set()
    for path in source.rglob("*.py"):
        room = path.relative_to(source).with_suffix("").parts[0]
        if room not in OUTSIDE:
            found |= {(room, target) for target in targets(path) if target != room}
    return found


def targets(path: Path) -> Iterator[str]:
    """The rooms that a module imports, for type checkers and inside functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            package, _, rest = name.partition(".")
            if package == "farthing":
                first = rest.partition(".")[0]
                yield first if is_room(first) else PUBLIC


def is_room(name: str) -> bool:
    return bool(name) and ((SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file())


def reduced(arrows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without those that a longer way makes superfluous."""
    below: dict[str, set[str]] = {}
    for upper, lower in arrows:
        below.setdefault(upper, set()).add(lower)

    def reached(room: str) -> set[str]:
        return {deeper for lower in below.get(room, ()) for deeper in {lower} | reached(lower)}

    return {(a, b) for a, b in arrows if not any(b in reached(c) for c in below[a] if c != b)}


def center(room: str) -> tuple[float, float]:
    place, row = PLACES[room]
    return MARGIN + BOX[0] / 2 + place * (WIDTH - 2 * MARGIN - BOX[0]), MARGIN + BOX[1] / 2 + row * ROW_HEIGHT


def arrow(upper: str, lower: str, colour: str) -> str:
    (x1, y1), (x2, y2) = center(upper), center(lower)
    y1, y2 = y1 + BOX[1] / 2, y2 - BOX[1] / 2 - 4
    bend = max(24.0, 0.45 * abs(y2 - y1))
    return (
        f'<path d="M{x1:.0f} {y1:.0f}C{x1:.0f} {y1 + bend:.0f} {x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}" fill="none" '
        f'stroke="{colour}" stroke-width="1.4" marker-end="url(#head)"/>'
    )


def box(room: str) -> str:
    (x, y), (width, height) = center(room), BOX
    fill = next(fill for fill, rooms in FILLS.values() if room in rooms)
    return (
        f'<rect x="{x - width / 2:.0f}" y="{y - height / 2:.0f}" width="{width}" height="{height}" rx="6" '
        f'fill="{fill}" stroke="#777777"/><text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle">{room}</text>'
    )


def legend() -> Iterator[str]:
    for i, (group, (fill, _)) in enumerate(FILLS.items()):
        y = MARGIN + 5 + 20 * i
        yield f'<rect x="{MARGIN}" y="{y - 10}" width="14" height="12" fill="{fill}" stroke="#777777"/>'
        yield f'<text x="{MARGIN + 20}" y="{y}">{group}</text>'


def picture() -> str:
    found = edges()
    unplaced = {room for edge in found for room in edge} - set(PLACES)
    if unplaced:
        raise SystemExit(f"imports.py: give {', '.join(sorted(unplaced))} a place in ROWS")
    up = {(a, b) for a, b in found if PLACES[a][1] >= PLACES[b][1]}
    height = 2 * MARGIN + BOX[1] + (len(ROWS) - 1) * ROW_HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="Helvetica, Arial, DejaVu Sans, sans-serif" font-size="13" fill="#333333">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="4" refY="4" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#888888"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *legend(),
        *(arrow(a, b, "#888888") for a, b in sorted(reduced(found - up))),
        *(arrow(a, b, "#c0392b") for a, b in sorted(up)),
        *(box(room) for room in sorted({room for edge in found for room in edge})),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    if "--list" in sys.argv:
        for upper in PLACES:
            lower = sorted(b for a, b in edges() if a == upper)
            sys.stdout.write(f"{upper}: {', '.join(lower) or 'nothing'}\n")
        return
    (DOCS / "imports.svg").write_text(picture())


if __name__ == "__main__":
    main()
