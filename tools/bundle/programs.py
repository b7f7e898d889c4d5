"""Copies programs and the shared objects that they load to folders in which the programs find the objects.

On Linux and macOS the shared objects go into the folder `lib` next to the programs; on
Windows they go next to the programs themselves. Only Linux is tested.
"""

import os
import platform
import re
import shutil
from pathlib import Path

from . import ReleaseError
from .running import run

PROGRAMS = ("tessera", "tessera-train")
LIBRARIES = "lib"

# Libraries of glibc and the kernel, which must be those of the machine on which the programs run.
MACHINE = re.compile(r"(linux-vdso|linux-gate|ld-linux.*|lib(c|m|dl|pthread|rt|util|resolv))\.so(\.\d+)?")


def collect(binaries, libtorch, folder):
    """Copies the programs in the folder `binaries`, and the libraries that they load, to `folder`."""
    suffix = ".exe" if platform.system() == "Windows" else ""
    programs = [require(binaries / f"{name}{suffix}") for name in PROGRAMS]
    copies = [copy(program, folder) for program in programs]
    {"Linux": linux, "Darwin": macos, "Windows": windows}[platform.system()](copies, programs, libtorch, folder)


def require(program):
    if not program.is_file():
        raise ReleaseError(f"{program} is missing: cargo build --release --bins")
    return program


def copy(file, folder):
    folder.mkdir(exist_ok=True)
    made = folder / file.name
    shutil.copyfile(file, made)
    made.chmod(0o755)
    return made


def linux(copies, programs, _libtorch, folder):
    """Collects the libraries that the loader finds for each program, and then restricts the program's search path."""
    found = {}
    for program in programs:
        found.update(loaded(program))
    # The file name must be the one under which other objects load the library, whatever the links are called.
    for name, path in sorted(found.items()):
        library = copy(path, folder / LIBRARIES).rename(folder / LIBRARIES / name)
        # Removes symbols that only debuggers use; they are a fifth of libtorch_cpu.so.
        run("strip", "--strip-unneeded", library)
        # A library without a search path finds libraries that the program has already loaded.
        if run("patchelf", "--print-rpath", library).strip():
            run("patchelf", "--set-rpath", "$ORIGIN", library)
    for program in copies:
        settle(program, f"$ORIGIN/{LIBRARIES}")


def settle(program, path):
    """Sets a program's library path, and removes symbols that only debuggers use."""
    run("strip", program)
    run("patchelf", "--set-rpath", path, program)


def loaded(program, machine=False):
    """Returns the shared objects that a program loads, by name: only the machine's own, or only the others."""
    found = {}
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    for line in run("ldd", program, env=environment).splitlines():
        # Lines are `name => path (address)` or `path (address)`; the kernel's object has no path.
        name, _, rest = line.strip().partition(" => ")
        if rest.startswith("not found"):
            raise ReleaseError(f"{program} does not find {name}, which it loads")
        path = (rest or name).rpartition(" (")[0]
        name = os.path.basename(name.split(" (")[0])
        if bool(MACHINE.fullmatch(name)) == machine and "/" in path:
            found[name] = Path(path)
    return found


def macos(copies, _programs, libtorch, folder):
    """Copies everything that tools/setup keeps. Untested."""
    for library in sorted((libtorch / "lib").glob("*.dylib")):
        copy(library, folder / LIBRARIES)
    for program in copies:
        run("install_name_tool", "-add_rpath", f"@loader_path/{LIBRARIES}", program)
        # On Apple silicon, a changed program needs a new signature, which may be anonymous.
        run("codesign", "--force", "--sign", "-", program)


def windows(_copies, _programs, libtorch, folder):
    """Copies everything that tools/setup keeps next to the programs, where Windows looks for libraries. Untested."""
    for library in sorted((libtorch / "lib").glob("*.dll")):
        copy(library, folder)


def glibc(folder):
    """Returns the oldest glibc that provides all symbols of the programs and libraries in `folder`."""
    if platform.system() != "Linux":
        return "2.28"
    libraries = sorted((folder / LIBRARIES).glob("*"))
    needed = {28}
    for path in [folder / name for name in PROGRAMS] + libraries:
        symbols = run("objdump", "-T", path)
        needed |= {int(minor) for minor in re.findall(r"\(GLIBC_2\.(\d+)", symbols)}
        if not libraries:
            needed |= {libstdcxx_since(int(minor)) for minor in re.findall(r"\(GLIBCXX_3\.4\.(\d+)", symbols)}
    return f"2.{max(needed)}"


# For each version 3.4.NN of libstdc++, the oldest glibc 2.NN of distributions with it, by the manylinux policies.
LIBSTDCXX = {24: 28, 28: 31, 29: 34, 30: 35, 32: 38, 33: 39}


def libstdcxx_since(version):
    return next((glibc for known, glibc in LIBSTDCXX.items() if version <= known), 40)
