"""The bus of a hub that is one process."""
