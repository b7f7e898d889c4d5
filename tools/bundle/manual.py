"""Shell completions and manual pages, in the standard locations below a prefix."""

import platform

from .running import run

COMPLETIONS = {
    "bash": "bash-completion/completions/{}",
    "zsh": "zsh/site-functions/_{}",
    "fish": "fish/vendor_completions.d/{}.fish",
}


def describe(binaries, programs, share):
    """Writes each program's completions and manual pages to `share`."""
    if platform.system() == "Windows":
        return
    for name in programs:
        executable = binaries / name
        (share / "man/man1").mkdir(parents=True, exist_ok=True)
        run(name, "man", share / "man/man1", executable=executable)
        for shell, place in COMPLETIONS.items():
            script = share / place.format(name)
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(run(name, "completions", shell, executable=executable), encoding="utf-8")
