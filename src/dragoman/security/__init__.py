"""Keys, seals, signatures, scopes and redaction: the parts that decide trust, each a small pure piece.

Nothing here opens a connection, reads a request or knows a dialect; `signing.py` needs only the base install.
"""
