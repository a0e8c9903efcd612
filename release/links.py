#!/usr/bin/env python3
"""The links of an archive's pages: `links.py cut FOLDER` makes text of each link to a file that is not in the folder, and `links.py check
FOLDER` names such links and fails."""

import re
import sys
from pathlib import Path

LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")


def leads_out(page, folder, target):
    """Whether a link leads to a file that the folder does not hold."""
    if re.match(r"[a-z]+:", target) or target.startswith("#"):
        return False
    there = (page.parent / target.partition("#")[0]).resolve()
    return not there.exists() or not there.is_relative_to(folder)


def main(what, folder):
    found = []
    for page in sorted(folder.rglob("*.md")):

        def cut(link):
            if not leads_out(page, folder, link[3]):
                return link[0]
            found.append(f"{page.relative_to(folder)}: {link[3]} is not there")
            return link[2]

        text = page.read_text(encoding="utf-8")
        kept = LINK.sub(cut, text)
        if what == "cut" and kept != text:
            page.write_text(kept, encoding="utf-8")
    if what == "check" and found:
        sys.exit("\n".join(found))


main(sys.argv[1], Path(sys.argv[2]).resolve())
