"""What people look at: figures, the report, the live page, cards in notebooks.

figures/    one module per figure: the numbers that are drawn, and the drawing of them
drawing.py  a drawing as plain values, which Plotly shows here and in a browser
plots.py    `study.plot`: the figures by name
"""
