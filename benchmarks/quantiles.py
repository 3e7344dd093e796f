"""How long answers took: the median, and what one of a hundred took at least."""

import statistics


class Taken:
    """Times of one kind of question."""

    def __init__(self) -> None:
        self._ms: list[float] = []

    def add(self, seconds: float) -> None:
        """One more answer."""
        self._ms.append(seconds * 1000)

    @property
    def p50_ms(self) -> float:
        """Half of them took less."""
        return statistics.median(self._ms)

    @property
    def p99_ms(self) -> float:
        """One of a hundred took more."""
        return statistics.quantiles(self._ms, n=100)[98]

    def text(self) -> str:
        """Both, to be shown."""
        return f"{self.p50_ms:.2f}  {self.p99_ms:.2f}"

    def kept(self) -> dict[str, float]:
        """Both, to be kept."""
        return {"p50_ms": self.p50_ms, "p99_ms": self.p99_ms, "answers": len(self._ms)}
