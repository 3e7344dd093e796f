"""HTTP in: the server, its protocol class, routes and pages. Only `app.py` names backends."""
