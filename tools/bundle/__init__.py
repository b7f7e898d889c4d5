"""Makes an archive that runs anywhere: what `tools/release` is made of."""


class ReleaseError(Exception):
    """Something the user can mend; its text is one line."""
