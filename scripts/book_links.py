"""Whether every link of a built book leads to a file and a place in it.

    python3 scripts/book_links.py target/book
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places of a page, and what it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value)
            if name in ("href", "src"):
                self.links.append(value)


def main() -> int:
    book = Path(sys.argv[1]).resolve()
    # The page of everything repeats the others, and links from another folder.
    files = [file for file in book.rglob("*.html") if file.name not in ("print.html", "toc.html", "404.html")]
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in files}
    faults = []
    count = 0
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                faults.append(f"{file.relative_to(book)}: no file {link}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                faults.append(f"{file.relative_to(book)}: no place {link}")
    print("\n".join(sorted(set(faults))), end="\n" if faults else "")
    print(f"{len(pages)} pages, {count} links, {len(faults)} broken")
    return 1 if faults or count < 500 else 0


if __name__ == "__main__":
    sys.exit(main())
