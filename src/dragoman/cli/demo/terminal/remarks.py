"""A remark about one line of code."""

import msgspec


class Remark(msgspec.Struct, frozen=True, order=True):
    """A line, counted from 1, what is wrong there, and what to write instead."""

    line: int
    fault: str
    instead: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.fault}. {self.instead}."
