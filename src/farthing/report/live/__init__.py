"""The live page: a small server that shows study files while they grow, to whoever runs it.

watching.py  follows a file: opens it, reads what is new, says what is wrong with it
kept.py      what was computed of a study, until it is out of date
studies.py   the studies that are shown: what the page asks of them, as answers
streams.py   tells open pages that a study has changed
guard.py     who may ask for what: hosts, origins, tokens
control.py   requests to the process that runs a study
assets.py    the files of the page
app.py       the routes, with Starlette
server.py    the socket and the server, with uvicorn
"""
