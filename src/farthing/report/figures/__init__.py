"""The figures, one module each.

A figure is two functions: `numbers(session, ...)` gives a frozen dataclass of the arrays that are drawn, or raises a
FarthingError that says in one sentence why there is nothing to draw; `draw(numbers)` makes the drawing. Tests look at
the numbers.
"""
