"""The hub as an MCP server, at `/mcp`: every skill that a caller may use is a tool of it.

requests.py   a request as it came: revision, session, method          toolbox.py   which tools there are, and whose
route.py      what each method is answered with

Every tool call is an ordinary call, with all of admission; who calls is asked where it always is.
"""
