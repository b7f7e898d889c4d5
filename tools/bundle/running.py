"""Runs the external programs that make a release."""

import subprocess

from . import ReleaseError


def run(*command, **options):
    """Returns a program's standard output; raises ReleaseError with the last line of its standard error."""
    command = [str(word) for word in command]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **options
        )
    except FileNotFoundError:
        raise ReleaseError(f"{command[0]} is missing (Debian and Ubuntu: apt install patchelf binutils)") from None
    if done.returncode != 0:
        reason = (done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}").splitlines()[-1]
        raise ReleaseError(f"{command[0]}: {reason}")
    return done.stdout
