"""Plays engines against each other: what `tools/match` is made of."""


class MatchError(Exception):
    """Something the user can mend; its text is one line."""
