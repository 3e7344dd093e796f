"""What things are: frozen structs and pure functions that no dialect owns.

Nothing here does I/O, reads a clock or knows how a protocol spells a word.
"""
