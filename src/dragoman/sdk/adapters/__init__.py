"""Objects of other frameworks as agents: one file for each framework, imported when such an object is handed in."""
