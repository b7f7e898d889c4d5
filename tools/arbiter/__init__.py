"""Plays engines against each other: the package behind `tools/match`."""


class MatchError(Exception):
    """An error that the user can fix; its text is one line."""
