"""Real frameworks on both sides of the hub: every client at every server, with the hub between them and without."""
