"""Two wheels of one version: the one that maturin built, and the one that release/wheel.py packed. What users have of them is the same."""

import email
import sys
import zipfile


def contents(path):
    wheel = zipfile.ZipFile(path)
    files = {name: wheel.read(name) for name in wheel.namelist()}
    # Their tags and checksums name the packer and the program.
    kept = {name: content for name, content in files.items() if not name.endswith(("/WHEEL", "/RECORD", "/METADATA", "/scripts/dposlab"))}
    kept["/entry_points.txt"] = kept.pop(next(name for name in kept if name.endswith("/entry_points.txt"))).split()
    facts = email.message_from_bytes(files[next(name for name in files if name.endswith("/METADATA"))])
    told = sorted((name, value.replace('"', "'").replace(" ", "")) for name, value in facts.items() if name != "Metadata-Version")
    return kept, told, facts.get_payload().strip()


built, packed = map(contents, sys.argv[1:3])
names = set(built[0]) ^ set(packed[0])
assert not names, f"only one of them has {sorted(names)}"
other = [name for name in built[0] if built[0][name] != packed[0][name]]
assert not other, f"they differ in {other}"
assert built[1] == packed[1], f"facts that only one of them has: {sorted(set(built[1]) ^ set(packed[1]))}"
assert built[2] == packed[2], "they differ in the description"
print(f"{len(packed[0])} files and {len(packed[1])} facts are the same")
