"""Hypothesis strategies for spaces and points in them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from farthing.space import Choice, Integer, Ordered, Parameter, Real, Space

EXTREME_RANGES = [
    (1e-300, 1e300, True),
    (5e-324, 1e308, True),
    (1e300, 4e300, True),
    (1e9, 1e9 + 1, False),
    (1e9, 1e9 + 1, True),
    (0.0, 1e-12, False),
    (0.0, 5e-324, False),
    (0.0, 1e-320, False),
    (-1e308, 1e308, False),
    (-1e-9, 3e5, False),
    (-1.0, 1e-30, False),
    (-7.25, -7.2499999, False),
    (1 / 3, 2 / 3, False),
    (1 / 3, 2 / 3, True),
    (1.0, 1.0 + 2**-52, True),
    (0.1234567890123456, 0.9876543210987654, True),
    (1e-5, 1e-1, True),
]

unit = st.one_of(
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 1.0, 0.5, 1e-17, 1e-9, 1 - 2**-53]),
    st.floats(0.0, 1e-9),
    st.floats(0.0, 1e-9).map(lambda gap: 1.0 - gap),
)


@st.composite
def reals(draw: st.DrawFn, **conditions: object) -> Real:
    """Ranges of every size and sign, wide and narrow, linear and log."""
    log = draw(st.booleans())
    if draw(st.booleans()):
        low, high, log = draw(st.sampled_from(EXTREME_RANGES))
    else:
        ends = st.floats(1e-307 if log else -1e308, 1e308, allow_subnormal=False)
        low, high = sorted(draw(st.lists(ends, min_size=2, max_size=2, unique=True)))
    return Real(low, high, log=log, **conditions)


@st.composite
def integers(draw: st.DrawFn, **conditions: object) -> Integer:
    """From two levels to the most that are accepted, linear and log."""
    log = draw(st.booleans())
    largest = draw(st.sampled_from([1, 5, 30, 1000, 2**39 if log else 2**48 - 1]))
    gaps = draw(st.integers(1, largest))
    step = draw(st.sampled_from([1, 1, 2, 7]))
    low = draw(st.integers(1, 50) | st.integers(1, 2**58) if log else st.integers(-(2**58), 2**58))
    high = low + gaps * step + draw(st.integers(0, step - 1))
    return Integer(low, high, log=log, step=step, **conditions)


@st.composite
def ordereds(draw: st.DrawFn, **conditions: object) -> Ordered:
    """Grids of numbers, up or down, and of words."""
    if draw(st.booleans()):
        words = ["tiny", "small", "medium", "large", ("huge", 2)]
        return Ordered(words[: draw(st.integers(1, 5))], **conditions)
    numbers = sorted(draw(st.sets(st.integers(1, 10**6) | st.floats(0.001, 1e6), min_size=1, max_size=8)))
    if draw(st.booleans()):
        numbers.reverse()
    return Ordered(numbers, log=draw(st.booleans()), **conditions)


OPTIONS = [1, True, 1.0, "a", None, (1, 2), [1, 2], {"x": [1.5]}, float("inf"), min, np.ones(2), np.zeros(2)]


def choices(most: int = len(OPTIONS), **conditions: object) -> st.SearchStrategy[Choice]:
    """One to several options, hashable or not; the first nine can be rebuilt from a file."""
    return st.permutations(OPTIONS[:most]).flatmap(
        lambda options: st.integers(1, most).map(lambda k: Choice(options[:k], **conditions))
    )


@st.composite
def conditions(draw: st.DrawFn, earlier: dict[str, Parameter]) -> dict[str, object] | None:
    """No condition, or one or two on earlier parameters that have levels."""
    parents = [name for name, param in earlier.items() if not isinstance(param, Real)]
    if not parents or draw(st.booleans()):
        return None
    when: dict[str, object] = {}
    for name in draw(st.lists(st.sampled_from(parents), min_size=1, max_size=2, unique=True)):
        param = earlier[name]
        level = draw(st.integers(0, min(param.levels, 4) - 1))
        if isinstance(param, Integer) and draw(st.booleans()):
            when[name] = {param.value(i) for i in range(level + 1)}
        else:
            when[name] = param.value(level)
    return when


@st.composite
def spaces(draw: st.DrawFn, *, finite: bool = False, portable: bool = False, most: int = 6) -> Space:
    """Spaces with nested conditions, their parameters in any order."""
    params: dict[str, Parameter] = {}
    for i in range(draw(st.integers(1, most))):
        when = draw(conditions(params))
        kinds = [choices(9 if portable else len(OPTIONS), when=when), ordereds(when=when)]
        kinds.append(st.integers(2, 5).map(lambda high, when=when: Integer(1, high, when=when)))
        if not finite:
            kinds += [reals(when=when), integers(when=when)]
        params[f"p{i}"] = draw(st.one_of(kinds))
    names = draw(st.permutations(list(params)))
    return Space({name: params[name] for name in names})


@st.composite
def spaces_with_rows(draw: st.DrawFn, **options: object) -> tuple[Space, np.ndarray]:
    """A space and a few rows of unit coordinates, the corners of the cube among them."""
    space = draw(spaces(**options))
    n = draw(st.integers(1, 4))
    rows = [[draw(unit) for _ in space.names] for _ in range(n)]
    return space, np.array(rows)
