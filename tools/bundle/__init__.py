"""Makes an archive that runs anywhere: the package behind `tools/release`."""


class ReleaseError(Exception):
    """An error that the user can fix; its text is one line."""
