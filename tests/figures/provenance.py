"""What studies say of themselves: their RO-Crates by roc-validator, their Parquet metadata by pyarrow, and CITATION.cff by cffconvert."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet

from compare import Comparison

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.executable).parent
STUDIES = {
    "run": ["run", "scenarios/lossy.toml", "--seed", 3, "--set", "rounds=3", "--without", "events"],
    "sweep": ["sweep", "scenarios/lossy.toml", "--seeds", "0..3", "--set", "rounds=3"],
}
PROGRAM = {"version", "commit", "profile", "optimisation", "target"}


def is_crate(folder):
    command = [sys.executable, Path(__file__).with_name("crate.py"), folder]
    return subprocess.run(command, capture_output=True, text=True)


def check(dposlab, folder):
    comparison = Comparison()
    for name, arguments in STUDIES.items():
        out = folder / name
        dposlab(*arguments, "--out", out)
        done = is_crate(out)
        comparison.value("provenance.crate", f"{out}: {done.stdout}{done.stderr}", done.returncode, 0)
        crate = out / "ro-crate-metadata.json"
        graph = {entity["@id"]: entity for entity in json.loads(crate.read_text())["@graph"]}
        # All that lies there is described, but for the description itself.
        described = {part["@id"] for part in graph["./"]["hasPart"]}
        there = {str(file.relative_to(out)) for file in out.rglob("*") if file.is_file()} - {crate.name}
        comparison.value("provenance.files", str(out), described, there)
        for part in described:
            comparison.value("provenance.size", part, int(graph[part]["contentSize"]), (out / part).stat().st_size)
        program = json.loads((out / "provenance.json").read_text())["played"][-1]["program"]
        comparison.value("provenance.program", str(out), set(program), PROGRAM)
        for table in out.glob("*.parquet"):
            about = pyarrow.parquet.ParquetFile(table).metadata.metadata
            texts = json.loads(about[b"dposlab.scenario"])
            kept = {str(file.relative_to(out)): file.read_text() for file in (out / "scenario").iterdir()}
            comparison.value("provenance.texts", str(table), texts, kept)
            comparison.value("provenance.set", str(table), json.loads(about[b"dposlab.study"])["set"], ["rounds=3"])
            named = json.loads(about[b"dposlab.program"])
            comparison.value("provenance.program", str(table), named, {"name": "dposlab"} | program)
        # What is no crate is noticed.
        for entity in graph.values():
            entity.pop("datePublished", None)
        crate.write_text(json.dumps({"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": list(graph.values())}))
        comparison.value("provenance.planted", str(out), is_crate(out).returncode != 0, True)
    cited = subprocess.run([PROGRAMS / "cffconvert", "--validate"], cwd=ROOT, capture_output=True, text=True)
    comparison.value("provenance.citation", cited.stdout + cited.stderr, cited.returncode, 0)
    version = [line for line in (ROOT / "Cargo.toml").read_text().splitlines() if line.startswith("version = ")][0]
    told = [line for line in (ROOT / "CITATION.cff").read_text().splitlines() if line.startswith("version: ")][0]
    comparison.value("provenance.version", "CITATION.cff", told.split()[1], version.split('"')[1])
    return comparison
