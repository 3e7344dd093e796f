"""What is said where something needs a package that the base install leaves out."""

from dragoman.model.errors import DragomanError


class MissingExtra(DragomanError):
    """A part of Dragoman that is not installed is needed here."""

    code = "MISSING_EXTRA"
    retry = False

    def __init__(self, message: str | None = None, *, next: str = "") -> None:
        super().__init__(message)
        if next:
            self.args = (f"{self.message.rstrip('.')}. {next}",)
