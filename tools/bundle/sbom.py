"""The bill of materials in CycloneDX format: https://cyclonedx.org/docs/1.5/json/."""

import datetime
import hashlib

from .crates import expression

KINDS = {".pt": "machine-learning-model"}


def bill_of_materials(crates, libtorch, packages, folder, time):
    """Lists crates, libtorch, the page's packages, and every program, library and network in `folder` with its SHA-256.

    `libtorch` is the version of libtorch, `packages` maps the page's npm packages to their versions,
    and `time` is in seconds since 1970.
    """
    made = datetime.datetime.fromtimestamp(time, datetime.timezone.utc)
    torch = {
        "type": "library", "bom-ref": f"pkg:pypi/torch@{libtorch}", "name": "libtorch", "version": libtorch,
        "licenses": [{"license": {"id": "BSD-3-Clause"}}], "purl": f"pkg:pypi/torch@{libtorch}",
    }
    needs = {reference(crates, crate): needed for crate, needed in crates.needs.items()}
    graph = [
        {"ref": ref, "dependsOn": sorted({reference(crates, need) for need in needed})}
        for ref, needed in sorted(needs.items())
    ]
    for node in graph:
        if node["ref"] == reference(crates, crates.root["id"]):
            node["dependsOn"].append(torch["bom-ref"])
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {
            "timestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": component(crates.root, "application"),
        },
        "components": [
            *(component(crate, "library") for crate in crates.crates), torch,
            *(package(name, version) for name, version in packages.items()),
            *(file_component(path, folder) for path in sorted(folder.rglob("*")) if is_listed(path)),
        ],
        "dependencies": graph,
    }


def package(name, version):
    """Returns an npm package."""
    purl = f"pkg:npm/{name.replace('@', '%40')}@{version}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def purl(crate):
    return f"pkg:cargo/{crate['name']}@{crate['version']}"


def reference(crates, identity):
    """Returns the package URL of a crate from its ID in cargo's metadata."""
    every = [crates.root, *crates.crates]
    return next(purl(crate) for crate in every if crate["id"] == identity)


def component(crate, kind):
    described = {
        "type": kind, "bom-ref": purl(crate), "name": crate["name"], "version": crate["version"],
        "licenses": [{"expression": expression(crate)}], "purl": purl(crate),
    }
    if crate["repository"]:
        described["externalReferences"] = [{"type": "vcs", "url": crate["repository"]}]
    return described


def is_listed(path):
    """Returns whether a file is a program, a library or a network."""
    return path.is_file() and (path.suffix in (".pt", ".exe", ".dll", ".dylib") or path.stat().st_mode & 0o100)


def file_component(path, folder):
    name = path.relative_to(folder).as_posix()
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "type": KINDS.get(path.suffix, "file"), "bom-ref": f"file:{name}", "name": name,
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }
