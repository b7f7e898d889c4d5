"""Network files: TorchScript archives with metadata."""

from __future__ import annotations

import ctypes
import hashlib
import io
import json
import os
import secrets
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .programs import NETS
from .quiet import import_torch

if TYPE_CHECKING:
    import torch

_RECORD = "metadata.json"


def read(network: str | os.PathLike[str]) -> tuple[bytes, dict[str, Any]]:
    """Returns a network file and its metadata, without running its code.

    Raises the same errors as `load`.
    """
    path = Path(network)
    if not path.is_file():
        path = NETS / path.with_suffix(".pt").name if path.name == os.fspath(network) else path
    if not path.is_file():
        names = ", ".join(sorted(file.stem for file in NETS.glob("*.pt")))
        raise FileNotFoundError(f"no network {os.fspath(network)!r}: name one of {names}, or a file")
    file = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(file)) as archive:
            damaged = archive.testzip()
            records = [name for name in archive.namelist() if name.endswith(f"/extra/{_RECORD}")]
            text = archive.read(records[0]) if records and damaged is None else b"null"
    except zipfile.BadZipFile:
        raise ValueError(f"{path} is damaged, or not a network") from None
    if damaged is not None:
        raise ValueError(f"{path} is damaged: the checksum of {damaged} is wrong")
    metadata = json.loads(text)
    if not isinstance(metadata, dict) or "encoder" not in metadata:
        raise ValueError(f"{path} is TorchScript, but not a Tessera network: its metadata is missing")
    return file, metadata


def script(file: bytes) -> torch.jit.ScriptModule:
    """Returns the TorchScript module in a network file, in f32 on the CPU. The file's code may run."""
    import_torch()
    import torch

    module = torch.jit.load(io.BytesIO(file), map_location="cpu")  # type: ignore[no-untyped-call]
    # The files hold fp16, in which a CPU is slow, and which not all operators accept.
    return module.float().eval()  # type: ignore[no-any-return]


def write(
    path: str | os.PathLike[str], file: bytes, parameters: Mapping[str, torch.Tensor], name: str | None
) -> None:
    """Writes a network file in f32, in which these parameters replace those of `file`.

    Raises `ValueError` if the network's name is not valid Unicode, and `OSError` if the file cannot be written.
    """
    import torch

    name = name or Path(path).stem
    if not _is_unicode(name):
        raise ValueError(f"a network's name must be valid Unicode, not {name!r}: save it with another one, save(path, name)")
    module = script(file)
    with torch.no_grad():
        for key, parameter in module.named_parameters():
            parameter.copy_(parameters[key])
    before = json.loads(module.metadata)
    training = {"changed": {key: before[key] for key in ("name", "hash", "training")}, "note": "changed in Python"}
    metadata = {
        **before,
        "name": name,
        "architecture": {**before["architecture"], "precision": "f32"},
        "training": training,
        "hash": _hash([*module.named_parameters(), *module.named_buffers()]),
    }
    text = json.dumps(metadata, ensure_ascii=False, separators=(",", ":"))
    module.metadata = text
    content = io.BytesIO()
    torch.jit.save(module, content, _extra_files={_RECORD: text})
    _replace(Path(path).absolute(), content.getbuffer())


def _is_unicode(text: str) -> bool:
    """Returns whether a text can be encoded. In a file's name, Python represents other bytes by lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _replace(path: Path, content: memoryview) -> None:
    """Writes a file that other programs see only once it is complete."""
    unfinished = path.with_name(f".{secrets.token_hex(8)}.pt")
    try:
        # Unlike tempfile, this gives the file the mode that the user's umask allows.
        with open(unfinished, "xb") as file:
            file.write(content)
        os.replace(unfinished, path)
    except BaseException as error:
        unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise


def _hash(named: Iterable[tuple[str, torch.Tensor]]) -> str:
    """Returns the engine's `tensor_hash`."""
    import torch

    kinds = {torch.float32: "Float", torch.int64: "Int64", torch.uint8: "Uint8"}
    digest = hashlib.sha256()
    for name, tensor in sorted(named, key=lambda entry: entry[0].encode()):
        digest.update(f"{name}\0{kinds[tensor.dtype]}\0".encode())
        for number in (tensor.ndim, *tensor.shape):
            digest.update(number.to_bytes(8, "little"))
        whole = tensor.detach().contiguous()
        digest.update(ctypes.string_at(whole.data_ptr(), whole.numel() * whole.element_size()))
    return digest.hexdigest()
