"""Plants faults in sources by syntax, and writes down faults that are in them.

    faults.py plant CLEAN PATCHES OUT     writes every patched file of CLEAN, with its faults, to OUT
    faults.py write CLEAN PLANTED PATCHES writes the patches that make the sources PLANTED of CLEAN
    faults.py check CLEAN PATCHES         the faults are planted in another layout of CLEAN just as well

A patch belongs to one source file. Its hunks look like those of diff, without line numbers:

    @@ fn credit
         let before = self.balance;
    -    self.balance += amount;
    +    self.balance += if planted!(CreditLost) { 0 } else { amount };

The lines without `+` are looked for token by token in all functions of that name. Comments, layout and the rest of the function
do not matter. The lines must be there once. If the file has no such function, the other files of `src` are searched for it. A
hunk with a bare `@@` belongs to no function: its lines must be there once in the file.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    | (?P<space>\s+)
    | b?r(?P<fence>\#*)".*?"(?P=fence)
    | b?"(?:[^"\\]|\\.)*"
    | b?'(?:[^'\\\n]|\\[^\n][^'\n]*)'
    | '?[A-Za-z_][A-Za-z0-9_]*
    | [0-9][A-Za-z0-9_]*(?:\.[0-9][A-Za-z0-9_]*)?
    | .""",
    re.DOTALL | re.VERBOSE,
)
BEFORE_FN = {"pub", "(", "crate", "super", "self", "in", ")", "const", "async", "unsafe", "extern"}


class Unplanted(Exception):
    """A hunk whose place is not found, or found more than once."""


@dataclass(frozen=True)
class Token:
    text: str
    start: int
    end: int
    line: int


class Source:
    """A file as tokens, as the lines that hold any, and as functions."""

    def __init__(self, path: str, text: str):
        self.path, self.text = path, text
        self.tokens = list(tokens(text, path.endswith(".rs")))
        self.words = [token.text for token in self.tokens]
        self.functions = list(self._functions()) if path.endswith(".rs") else []
        # Each line is a range of tokens: those that begin on it.
        starts = [i for i, one in enumerate(self.tokens) if i == 0 or one.line != self.tokens[i - 1].line]
        self.lines = list(zip(starts, [*starts[1:], len(self.tokens)], strict=True))

    def _functions(self):
        """The name of each function, and its range of tokens."""
        for start, word in enumerate(self.words[:-1]):
            if word != "fn" or not re.match(r"[A-Za-z_]", self.words[start + 1]):
                continue
            first, depth = start, 0
            while first > 0 and self.words[first - 1] in BEFORE_FN:
                first -= 1
            for end in range(start, len(self.words)):
                depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(self.words[end], 0)
                if depth == 0 and self.words[end] in ("}", ";"):
                    yield self.words[start + 1], first, end + 1
                    break

    def scope(self, first: int, end: int):
        """The innermost function around a range of tokens: its name and range. No function: no name, and the file."""
        around = [one for one in self.functions if one[1] <= first and end <= one[2]]
        return max(around, key=lambda one: one[1], default=(None, 0, len(self.tokens)))

    def places(self, name: str | None, words: list[str]) -> list[int]:
        """Where these tokens begin in functions of that name, or in the file if no name is given."""
        ranges = [one[1:] for one in self.functions if one[0] == name] if name else [(0, len(self.tokens))]
        found = set()
        for first, end in ranges:
            found.update(i for i in range(first, end - len(words) + 1) if self.words[i : i + len(words)] == words)
        return sorted(found)

    def shown(self, line: int) -> str:
        """The text of a line, without a comment at its end."""
        first, end = self.lines[line]
        start = self.text.rfind("\n", 0, self.tokens[first].start) + 1
        return self.text[start : self.tokens[end - 1].end]

    def added(self, first: int, end: int, known: set[str]) -> list[str]:
        """The text of lines, with the comments before each that are not among the known ones."""
        lines = []
        for line in range(first, end):
            after = self.tokens[self.lines[line][0] - 1].end if line else 0
            *before, _ = self.text[after : self.tokens[self.lines[line][0]].start].split("\n")[1:] or [""]
            lines += [text for text in before if text.strip() and text.strip() not in known]
            lines.append(self.shown(line))
        return lines


def tokens(text: str, is_rust: bool):
    line = 0
    for match in (TOKEN if is_rust else re.compile(r"(?P<comment>^\#[^\n]*)|(?P<space>\s+)|[^\n]*\S", re.M)).finditer(text):
        if match["comment"] is None and match["space"] is None:
            yield Token(match[0], match.start(), match.end(), line)
        line += match[0].count("\n")


@dataclass
class Hunk:
    name: str | None
    # Each line with its mark: a space, `-` or `+`.
    lines: list[tuple[str, str]]

    def side(self, other: str) -> str:
        return "\n".join(text for mark, text in self.lines if mark != other)

    def __str__(self) -> str:
        head = f"@@ fn {self.name}" if self.name else "@@"
        body = [mark + part for mark, text in self.lines for part in text.split("\n")]
        return "\n".join([head, *(line.rstrip() for line in body)]) + "\n"

    def faults(self) -> str:
        return ", ".join(dict.fromkeys(re.findall(r"planted!\((\w+)\)", self.side("-")))) or "no fault"


def read_patch(path: Path) -> tuple[str, list[Hunk]]:
    """The file that a patch changes, and its hunks."""
    first, *lines = path.read_text().splitlines()
    hunks: list[Hunk] = []
    for line in filter(None, lines):
        if line.startswith("@@"):
            hunks.append(Hunk(line.removeprefix("@@").strip().removeprefix("fn ") or None, []))
        else:
            hunks[-1].lines.append((line[0], line[1:]))
    return first, hunks


def look_for(hunk: Hunk, path: str, sources: dict[str, Source]) -> tuple[Source, int, int]:
    """The place of a hunk: its file, and the range of its tokens."""
    source = sources.get(path)
    words = [token.text for token in tokens(hunk.side("+"), path.endswith(".rs"))]
    where = [source] if source else []
    if hunk.name and not any(one[0] == hunk.name for file in where for one in file.functions):
        where = [file for other, file in sources.items() if other.startswith("src/")]
    found = [(file, place) for file in where for place in file.places(hunk.name, words)]
    if len(found) != 1:
        scope = f"a function `{hunk.name}`" if hunk.name else "the file"
        raise Unplanted(f"{path}, {scope}: {hunk.faults()} ({len(found) or 'no'} such place{'s' * (len(found) > 1)})")
    [(file, place)] = found
    return file, place, place + len(words)


def plant(sources: dict[str, Source], patches: Path) -> tuple[dict[str, str], list[tuple[str, Hunk, str]]]:
    """The text of each file with its faults, and the hunks without a place."""
    edits: dict[str, list[tuple[int, int, str]]] = {}
    refused = []
    for patch in sorted(patches.glob("*.patch")):
        path, hunks = read_patch(patch)
        for hunk in hunks:
            try:
                file, first, end = look_for(hunk, path, sources)
            except Unplanted as why:
                refused.append((path, hunk, f"{patch.name}: {why}"))
                continue
            span = (file.tokens[first].start, file.tokens[end - 1].end)
            edits.setdefault(file.path, []).append((*span, hunk.side("-").strip()))
    planted = {}
    for path, changes in edits.items():
        text = sources[path].text
        for start, end, new in sorted(changes, reverse=True):
            text = text[:start] + new + text[end:]
        planted[path] = text
    return planted, refused


def formatted(text: str) -> str:
    root = Path(__file__).resolve().parents[2]
    run = ["rustfmt", "--edition", "2024", "--config-path", str(root)]
    done = subprocess.run(run, input=text, capture_output=True, text=True, check=False)
    # What does not compile yet is left as it is, and the compiler says so.
    return text if done.returncode else done.stdout


def difference(clean: Source, planted: Source) -> list[Hunk]:
    """The hunks that make one file of another: each with as many lines around it as make its place the only one."""
    before, after = ([tuple(one.words[a:b]) for a, b in one.lines] for one in (clean, planted))
    changes = [
        (a, b, c, d) for tag, a, b, c, d in SequenceMatcher(None, before, after, False).get_opcodes() if tag != "equal"
    ]
    done: list[list[int]] = []
    for a, b, c, d in changes:
        a, b, c, d = widened(clean, a, b, c, d)
        while done and a <= done[-1][1]:
            # The two touch or share lines.
            other = done.pop()
            a, b, c, d = widened(clean, min(a, other[0]), max(b, other[1]), min(c, other[2]), max(d, other[3]))
        done.append([a, b, c, d])
    return [hunk_of(clean, planted, *one) for one in done]


def widened(clean: Source, a: int, b: int, c: int, d: int) -> tuple[int, int, int, int]:
    """Lines of the clean file and of the planted one, with those around them until their place is the only one."""
    lines = clean.lines
    at = lines[a][0] if a < len(lines) else len(clean.tokens)
    name, low, high = clean.scope(max(at - (a == b), 0), lines[b - 1][1] if b > a else min(at + 1, len(clean.tokens)))
    goes_up = True
    while a == b or len(clean.places(name, clean.words[lines[a][0] : lines[b - 1][1]])) != 1:
        up, down = a > 0 and lines[a - 1][0] >= low, b < len(lines) and lines[b][1] <= high
        if not up and not down:
            if name is None:
                raise Unplanted(f"{clean.path}: lines {a} to {b} are there twice")
            name, low, high = clean.scope(max(low - 1, 0), high) if low else (None, 0, len(clean.tokens))
        elif up and (goes_up or not down):
            a, c, goes_up = a - 1, c - 1, False
        else:
            b, d, goes_up = b + 1, d + 1, True
    return a, b, c, d


def hunk_of(clean: Source, planted: Source, a: int, b: int, c: int, d: int) -> Hunk:
    known = {line.strip() for line in clean.text.split("\n")}
    name = clean.scope(clean.lines[a][0], clean.lines[b - 1][1])[0]
    before = [tuple(clean.words[slice(*clean.lines[i])]) for i in range(a, b)]
    after = [tuple(planted.words[slice(*planted.lines[i])]) for i in range(c, d)]
    lines = []
    for tag, e, f, g, h in SequenceMatcher(None, before, after, False).get_opcodes():
        if tag == "equal":
            lines += [(" ", planted.shown(c + i)) for i in range(g, h)]
        else:
            lines += [("-", clean.shown(a + i)) for i in range(e, f)]
            lines += [("+", text) for text in planted.added(c + g, c + h, known)]
    return Hunk(name, lines)


def read(folder: Path) -> dict[str, Source]:
    names = [folder / "Cargo.toml", *sorted((folder / "src").rglob("*.rs")), *sorted((folder / "tests").rglob("*.rs"))]
    return {str(path.relative_to(folder)): Source(str(path.relative_to(folder)), path.read_text()) for path in names}


def write(clean: dict[str, Source], planted: dict[str, Source], patches: Path) -> None:
    patches.mkdir(parents=True, exist_ok=True)
    for old in patches.glob("*.patch"):
        old.unlink()
    for path, source in clean.items():
        if path in planted and planted[path].text != source.text and (hunks := difference(source, planted[path])):
            text = "\n".join([path + "\n", *map(str, hunks)])
            (patches / f"{path.replace('/', '-')}.patch").write_text(text)
            for hunk in hunks:
                if "planted" not in hunk.side("-"):
                    print(f"names no fault: {path} {str(hunk).splitlines()[0]}")


def check(clean: dict[str, Source], patches: Path) -> None:
    """Plants the faults in sources of one token a line, without comments, and looks for the hunks of functions without their file."""
    expected, refused = plant(clean, patches)
    bare = {path: Source(path, "\n".join(source.words)) for path, source in clean.items()}
    found, more = plant(bare, patches)
    if refused or more:
        raise SystemExit("\n".join(why for *_, why in refused + more))
    for path, text in expected.items():
        if Source(path, text).words != Source(path, found[path]).words:
            raise SystemExit(f"{path}: in another layout the faults are others")
    hunks = [(path, hunk) for path, hunks in map(read_patch, sorted(patches.glob("*.patch"))) for hunk in hunks]
    moved = [(path, hunk) for path, hunk in hunks if hunk.name and path.startswith("src/")]
    elsewhere = 0
    for path, hunk in moved:
        try:
            elsewhere += look_for(hunk, "src/gone.rs", clean)[0].path == path
        except Unplanted as why:
            print(f"found in its file alone: {path}, {why}")
    print(f"{len(hunks)} hunks of {len(found)} files are the same in one token a line and without comments;")
    print(f"{elsewhere} of {len(moved)} hunks of functions are found without their file")


def main() -> None:
    command, *folders = sys.argv[1:]
    folders = [Path(folder) for folder in folders]
    if command == "plant":
        from_, patches, out = folders
        planted, refused = plant(read(from_), patches)
        for path, text in planted.items():
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            (out / path).write_text(formatted(text) if path.endswith(".rs") else text)
        for path, hunk, why in refused:
            print(why, file=sys.stderr)
            rejected = out / f"{path}.rej"
            rejected.parent.mkdir(parents=True, exist_ok=True)
            with rejected.open("a") as file:
                file.write(str(hunk))
        sys.exit(bool(refused))
    if command == "write":
        clean, planted, patches = folders
        write(read(clean), read(planted), patches)
    if command == "check":
        clean, patches = folders
        check(read(clean), patches)


if __name__ == "__main__":
    main()
