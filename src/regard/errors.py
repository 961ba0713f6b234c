"""What can go wrong, said in one line: what, where, and what to do. The command line prints it and leaves with `code`."""

from __future__ import annotations


class RegardError(Exception):
    """An error that its reader can mend; never shown with a traceback."""

    code = 1

    def __init__(self, what: str, *, where: str = "", do: str = ""):
        super().__init__(what)
        self.what, self.where, self.do = what, where, do

    def __str__(self) -> str:
        line = f"{self.where}: {self.what}" if self.where else self.what
        return f"{line}; {self.do}" if self.do else line


class UsageError(RegardError):
    """A wrong flag, key or combination in what the user wrote."""

    code = 2


class DataError(RegardError):
    """Text or data files that cannot be used as they are."""

    code = 3


class ModelError(RegardError):
    """A model or checkpoint folder that is missing, damaged or of another kind."""

    code = 4


class OutOfMemory(RegardError):
    """More memory was needed than there is."""

    code = 5


class Interrupted(RegardError):
    """Stopped on request with everything saved; the same command with --resume goes on (EX_TEMPFAIL)."""

    code = 75
