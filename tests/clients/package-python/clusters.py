"""Checks docs/clusters.md as far as one machine can: scripts parse and run with the batch system's variables set, the YAML is
read, and the parts make the whole that one process makes."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

import dposlab

root = Path(sys.argv[1])
page = (root / "docs/clusters.md").read_text()
blocks = {name: re.findall(rf"```{name}\n(.*?)```", page, re.DOTALL) for name in ("bash", "yaml")}
folder = Path(tempfile.mkdtemp())
(folder / "scenarios").symlink_to(root / "scenarios")
(folder / "bin").mkdir()
(folder / "bin/dposlab").symlink_to(dposlab.binary())
ENVIRONMENT = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "HOME": str(folder)}


def shell(text, **variables):
    subprocess.run(["bash", "-n", "-c", text], check=True)
    ended = subprocess.run(
        ["bash", "-euc", text], cwd=folder, env={**ENVIRONMENT, **variables}, capture_output=True, text=True, timeout=600
    )
    assert ended.returncode == 0, f"{text}\n{ended.stderr}"
    return ended.stdout


def merged(parts):
    """The digest of what `merge` makes of parts, which are taken away."""
    out = folder / "merged"
    shell("dposlab merge " + " ".join(sorted(str(part) for part in parts)) + f" --out {out}")
    text = (out / "runs.csv").read_bytes()
    shutil.rmtree(out)
    for part in parts:
        shutil.rmtree(part)
    return text


def small(text):
    """The same with fewer runs: what is shown would take a cluster."""
    found = re.search(r"--seeds 0\.\.\d+", text)
    assert found, text
    return text.replace(found.group(), "--seeds 0..12")


array, parallel = [text for text in blocks["bash"] if "--shard" in text]
command = re.search(r"dposlab sweep ([^\n]*?) --seeds", array).group(1)
shell(f"dposlab sweep {command} --seeds 0..12 --out whole")
whole = (folder / "whole/runs.csv").read_bytes()

# Slurm: each task of the array, then one of them again.
count = int(re.search(r"--array=0-(\d+)", array).group(1)) + 1
tasks = {"SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": str(count - 1), "SLURM_ARRAY_TASK_COUNT": str(count)}
for task in [*range(count), 2]:
    shell(small(array), SLURM_ARRAY_TASK_ID=str(task), SLURM_ARRAY_TASK_STEP="1", **tasks)
assert merged(list((folder / "out").glob("part-*"))) == whole, "Slurm"

# Kubernetes: the container's command with the variables of an Indexed Job.
[job] = [document for text in blocks["yaml"] for document in yaml.safe_load_all(text) if document["kind"] == "Job"]
spec = job["spec"]
assert spec["completionMode"] == "Indexed" and spec["parallelism"] <= spec["completions"]
container = spec["template"]["spec"]["containers"][0]
variables = {one["name"]: one["value"] for one in container["env"]}
assert variables["JOB_COMPLETIONS"] == str(spec["completions"]), "the variable says what the Job says"
[line] = container["command"][2:] if container["command"][:2] == ["sh", "-c"] else [None]
line = small(line).replace("/results", "results")
for index in range(spec["completions"]):
    shell(line, JOB_COMPLETION_INDEX=str(index), **variables)
assert merged(list((folder / "results").glob("part-*"))) == whole, "Kubernetes"

# GNU parallel: where it is not installed, xargs has the same meaning for this line.
subprocess.run(["bash", "-n", "-c", parallel], check=True)
body = re.search(r"parallel[^']*'([^']*)'", parallel).group(1)
number = int(re.search(r"seq (\d+)", parallel).group(1))
for part in range(1, number + 1):
    shell(small(body).replace("{}", str(part)))
assert merged(list((folder / "out").glob("part-*"))) == whole, "parallel"

shutil.rmtree(folder)
print(json.dumps({"slurm": count, "kubernetes": spec["completions"], "parallel": number}))
