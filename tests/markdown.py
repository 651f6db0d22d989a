"""Reading Markdown as far as the tests of the documents need it."""

import re
from pathlib import Path

CELL = re.compile(r"`([^`]+)`")


def sections(text: str, marks: str = "##") -> dict[str, str]:
    """The text below each heading of one level, up to the next heading of that level or above."""
    parts = re.split(rf"^{marks} (.+)$", text, flags=re.MULTILINE)
    return {
        title: re.split(rf"^#{{1,{len(marks) - 1}}} ", body, flags=re.MULTILINE)[0]
        for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }


def rows(text: str) -> list[list[str]]:
    """The cells of every table row, without heads."""
    found: list[list[str]] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else []
        if cells and set(cells[0]) == {"-"}:
            found.pop()  # the row above it was the head
        elif cells:
            found.append([cell.strip(" |") for cell in cells])
    return found


def words(text: str) -> list[str]:
    """What stands in backticks in the first cell of each row."""
    return [word for row in rows(text) for word in CELL.findall(row[0])]


def fences(text: str, *languages: str) -> list[str]:
    """The code blocks in these languages."""
    return re.findall(rf"^```(?:{'|'.join(languages)})\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def links(text: str) -> list[str]:
    """Where the links of a page lead."""
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def leads(page: Path, link: str) -> bool:
    """Whether a link of a page names a file that is there, and a heading in it."""
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or anchor in anchors(target.read_text()))


def anchors(text: str) -> set[str]:
    """The names that GitHub gives to headings: lower case, hyphens for spaces, other punctuation dropped."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
