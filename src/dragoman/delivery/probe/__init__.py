"""What a URL really speaks: the same look for registration, for `dragoman doctor` and for a hub that has doubts.

look.py        the order of it, and the decision
asker.py       bounds and manners            card.py      the search for a card
introduced.py  agents that have no card, and say what they are when they are asked
questions.py   what can be asked safely      listen.py    where it is asked, and what is kept
together.py    what answers mean together    places.py    addresses
oddities.py    quirks and what they mean     send.py      one real message, only on request
findings.py    all of it as data             report.py    the same as JSON and as a refusal
"""

from dragoman.delivery.probe.findings import Examined, Said, Spoken, Tried, Verdict
from dragoman.delivery.probe.look import look
from dragoman.delivery.probe.report import document, examined_card
from dragoman.delivery.probe.send import send

__all__ = ["Examined", "Said", "Spoken", "Tried", "Verdict", "document", "examined_card", "look", "send"]
