"""Reproducible archives: the same files always give the same bytes."""

import hashlib
import shutil
import stat
import tarfile
import time
import zipfile

from . import ReleaseError

SUFFIXES = (".tar.xz", ".tar", ".zip")
# The earliest date that the zip format supports.
ZIP_EPOCH = 315532800


def pack(folder, archive, mtime):
    """Packs `folder` into `archive`. Files are sorted by name and dated `mtime`, and have no owner."""
    files = sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.as_posix())
    named = [(path, path.relative_to(folder.parent).as_posix()) for path in files]
    if archive.name.endswith(".zip"):
        pack_zip(named, archive, mtime)
    elif archive.name.endswith(SUFFIXES):
        pack_tar(named, archive, mtime)
    else:
        raise ReleaseError(f"{archive.name} does not end in {', '.join(SUFFIXES)}")


def mode(path):
    return 0o755 if path.stat().st_mode & 0o100 else 0o644


def pack_tar(named, archive, mtime):
    compression = {"mode": "w:xz", "preset": 6} if archive.name.endswith(".xz") else {"mode": "w"}
    with tarfile.open(archive, **compression, format=tarfile.GNU_FORMAT) as tar:
        for path, name in named:
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = path.stat().st_size, mode(path), mtime
            with open(path, "rb") as file:
                tar.addfile(member, file)


def pack_zip(named, archive, mtime):
    date = time.gmtime(max(mtime, ZIP_EPOCH))[:6]
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, name in named:
            member = zipfile.ZipInfo(name, date)
            member.compress_type = zipfile.ZIP_DEFLATED
            # pip keeps the modes of regular files only.
            member.external_attr = (stat.S_IFREG | mode(path)) << 16
            # Marks the archive as made on Unix; otherwise, modes are ignored.
            member.create_system = 3
            with open(path, "rb") as source, packed.open(member, "w") as sink:
                shutil.copyfileobj(source, sink)


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
