"""The same thing in another dialect, without a hub: read by one dialect's functions, written by the other's.

    understand.py   what a body is, in no dialect's words
    express.py      the same in the words of the other dialect
    facets.py       what there is to say, to tell what gets lost
    translate.py    the way from one to the other

Pure, and no dialect is named: both are handed in.
"""

from dragoman.dialects.translation.translate import Translation, translate
from dragoman.dialects.translation.understand import Kind

__all__ = ["Kind", "Translation", "translate"]
