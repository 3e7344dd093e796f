"""An agent that connects out: sessions, and what is owed to the hub until it is on disk."""
