"""Studio: look into runs on a web page of one's own machine.

    tidegate studio ──▶ serve.py   a server on 127.0.0.1 with a token
                          guard.py   token, Host and Origin
                          api.py     the routes; every answer is JSON, a tile or an image
                          library.py runs and their recordings, within a bound of memory
                          tiles.py   a view of a recording as pixels
                          jobs.py    what takes longer: races, curves, plans, papers
                          page/      the page: ES modules, no build step, no foreign request

Starlette and uvicorn are an extra: ``pip install 'tidegate[studio]'``.
"""
