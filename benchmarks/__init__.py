"""Experiments that measure Farthing, each in a folder of its own; their results are the pages in docs/.

    python -m benchmarks.blackbox            from the root of the repository; `make bench-blackbox` does the same
    QUICK=1 python -m benchmarks.blackbox    a short version that only prints

An experiment has

    __main__.py    the command line, and the page where that is short
    runs.py        what is run, by which method, with which seed
    findings.py    what the runs say: tables and numbers
    page.py        the text of the page, with sentences made from the numbers
    figure.py      the figure, drawn from docs/data/<page>.json
    peers/         programs that run in environments of their own; task.py says what all of them are given

as far as it needs them. `common/` holds what they share. `common/requirements/<name>.txt` is an environment,
which is made in `.venvs/<name>` the first time it is needed.
"""
