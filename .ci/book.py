#!/usr/bin/env python3
"""Makes the documents a book whose links work.

As a preprocessor of mdBook (book.toml calls it) this script adds the pages outside docs/ as chapters and rewrites links: a link
to a page leads to its chapter, a link to another file becomes that file's name. `book.py check` builds the book, if mdBook is
installed, and fails if a link in it leads nowhere.
"""

import json
import posixpath
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "target" / "book"
# Pages outside docs/, as chapters: name, file, path in the book.
OUTSIDE = [
    ("Project", "README.md", "project.md"),
    ("Architecture", "ARCHITECTURE.md", "architecture.md"),
    ("Contributing", "CONTRIBUTING.md", "contributing.md"),
    ("The scenarios", "scenarios/README.md", "scenarios.md"),
    ("Test data", "tests/data/README.md", "test-data.md"),
    ("Fuzzing", "fuzz/README.md", "fuzzing.md"),
]
IMAGE = re.compile(r"!\[([^\[\]]*)\]\((docs/[^()\s]+)\)")
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")


def chapters(items):
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from chapters(item["Chapter"]["sub_items"])


def rewritten(text, file, path, pages):
    """The text of a page, with each link as the book needs it: `file` is the page's file, `path` its path in the book."""

    def link(found):
        shown, target = found.groups()
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return found[0]
        name, _, anchor = target.partition("#")
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(file), name))
        if not (ROOT / wanted).exists():
            sys.exit(f"{file}: {target} is not there")
        if wanted in pages:
            there = posixpath.relpath(pages[wanted], posixpath.dirname(path) or ".")
            return f"[{shown}]({there}{'#' + anchor if anchor else ''})"
        return shown if wanted in shown else f"{shown} (`{wanted}`)"

    def image(found):
        shown, target = found.groups()
        if not (ROOT / target).exists():
            sys.exit(f"{file}: {target} is not there")
        # mdBook copies what lies in docs/.
        return f"![{shown}]({posixpath.relpath(posixpath.relpath(target, 'docs'), posixpath.dirname(path) or '.')})"

    text = IMAGE.sub(image, text)
    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def preprocess():
    _, book = json.load(sys.stdin)
    items = book["items"] if "items" in book else book["sections"]
    names = [name for name, *_ in OUTSIDE]
    for name, file, path in OUTSIDE:
        text = (ROOT / file).read_text(encoding="utf-8")
        chapter = {"name": name, "content": text, "number": None, "sub_items": [], "path": path, "source_path": None,
                   "parent_names": []}
        items.insert(names.index(name) + 1, {"Chapter": chapter})
    files = {path: file for _, file, path in OUTSIDE}
    for chapter in chapters(items):
        if chapter["path"] not in files:
            files[chapter["path"]] = posixpath.join("docs", chapter["source_path"])
    pages = {file: path for path, file in files.items()}
    for chapter in chapters(items):
        path = chapter["path"]
        chapter["content"] = rewritten(chapter["content"], files[path], path, pages)
    json.dump(book, sys.stdout)


class Page(HTMLParser):
    """The ids of a page and the links it has."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids.update(value for key, value in attributes.items() if key in ("id", "name") and value)
        self.links.extend(value for key, value in attributes.items() if key in ("href", "src") and value)


def broken(folder):
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(folder.rglob("*.html"))}
    for file, page in pages.items():
        # The 404 page's links begin at the root of a server.
        for link in page.links if file.name != "404.html" else []:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            there = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if not there.exists():
                yield f"{file.relative_to(folder)}: {link} is not there"
            elif parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].ids:
                yield f"{file.relative_to(folder)}: {link} names no part of that page"


def check():
    if shutil.which("mdbook") is None:
        sys.exit("mdbook is not installed: cargo install mdbook --locked")
    subprocess.run(["mdbook", "build", str(ROOT)], check=True)
    pages, wrong = len(list(BOOK.rglob("*.html"))), list(broken(BOOK))
    if not list(BOOK.glob("searchindex*.js*")):
        wrong.append("the book has no search index")
    if wrong or pages < 20:
        sys.exit("\n".join([f"{pages} pages, {len(wrong)} broken links", *wrong]))
    print(f"{pages} pages, no broken link")


if sys.argv[1:2] == ["supports"]:
    sys.exit(0)
check() if sys.argv[1:2] == ["check"] else preprocess()
