#!/usr/bin/env python3
"""Packs the Python package with a program that is there, and compiles nothing: what `maturin build` does after cargo.

    release/wheel.py --program PATH --out DIR

The same sources and program give the same bytes. SOURCE_DATE_EPOCH is the time of the files in the wheel.
"""

import argparse
import base64
import hashlib
import os
import platform
import re
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "python" / "src"
# Of 1 January 1980: the earliest that a zip can hold.
EARLIEST = 315_532_800


def tag(program):
    """The machines that a program is for. One that is linked to glibc needs the newest version that its symbols name, or later."""
    cpu = platform.machine()
    told = subprocess.run(["objdump", "-T", program], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    versions = [tuple(map(int, found.split("."))) for found in re.findall(r"\bGLIBC_(\d+\.\d+)", told.stdout)]
    if not versions:
        # A static program needs no library, so it runs beside any.
        return f"py3-none-manylinux_2_17_{cpu}.musllinux_1_1_{cpu}"
    major, minor = max((2, 17), max(versions))
    return f"py3-none-manylinux_{major}_{minor}_{cpu}"


def metadata(project, version):
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {version}",
        *(f"Classifier: {classifier}" for classifier in project["classifiers"]),
        *(f"Requires-Dist: {needed}" for needed in project["dependencies"]),
        *(f"Requires-Dist: {one} ; extra == '{extra}'" for extra, all in project["optional-dependencies"].items() for one in all),
        *(f"Provides-Extra: {extra}" for extra in project["optional-dependencies"]),
        f"Summary: {project['description']}",
        f"Keywords: {','.join(project['keywords'])}",
        f"License: {project['license']['text']}",
        f"Requires-Python: {project['requires-python']}",
        "Description-Content-Type: text/markdown; charset=UTF-8; variant=GFM",
    ]
    return "\n".join(lines) + "\n\n" + (ROOT / "python" / project["readme"]).read_text(encoding="utf-8")


def entry_points(project):
    groups = project["entry-points"].items()
    return "".join(f"[{group}]\n" + "".join(f"{name}={target}\n" for name, target in points.items()) for group, points in groups)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--program", required=True, type=Path)
    options.add_argument("--out", required=True, type=Path)
    given = options.parse_args()
    given.program = given.program.resolve()
    project = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["package"]["version"]
    said = subprocess.run([given.program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if said != f"dposlab {version}":
        sys.exit(f"release/wheel.py: {given.program}: found '{said}', expected 'dposlab {version}' as in Cargo.toml")
    tags = tag(given.program)
    info = f"dposlab-{version}.dist-info"
    files = {str(file.relative_to(SOURCES)): file.read_bytes() for file in sorted(SOURCES.rglob("*")) if file.suffix in (".py", ".typed")}
    files[f"dposlab-{version}.data/scripts/dposlab"] = given.program.read_bytes()
    python, abi, machines = tags.split("-")
    all_tags = "".join(f"Tag: {python}-{abi}-{machine}\n" for machine in machines.split("."))
    files[f"{info}/METADATA"] = metadata(project, version).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: dposlab release/wheel.py\nRoot-Is-Purelib: false\n{all_tags}".encode()
    files[f"{info}/entry_points.txt"] = entry_points(project).encode()
    record = ""
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    given.out.mkdir(parents=True, exist_ok=True)
    moment = time.gmtime(max(EARLIEST, int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST))))[:6]
    path = given.out / f"dposlab-{version}-{tags}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            entry.create_system = 3
            wheel.writestr(entry, content)
    print(path)


main()
