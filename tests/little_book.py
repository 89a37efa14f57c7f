"""A book of one page, built with the real configuration: broken, or fuller than any chapter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

import nbformat
import yaml

ROOT = Path(__file__).resolve().parent.parent
STRICT = ("-W", "-n", "--keep-going")


def build(
    folder: Path,
    *cells: str,
    words: str = "",
    options: tuple[str, ...] = STRICT,
    timeout: int = 60,
) -> subprocess.CompletedProcess[str]:
    """Build a notebook of `words` and code `cells` in `folder`.

    The page is `_build/html/book/page.html` there. What was fetched is copied from the project: ask
    for `book_html` first, so that it exists.
    """
    copytree(ROOT / "book", folder / "book", ignore=ignore_patterns("*.ipynb", "__pycache__"))
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    config["execute"]["timeout"] = timeout
    (folder / "_config.yml").write_text(yaml.safe_dump(config), "utf-8")
    (folder / "_toc.yml").write_text("{format: jb-book, root: book/page}", "utf-8")
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    body = [nbformat.v4.new_markdown_cell(f"# One page\n\nIts words, and $x^2$.\n\n{words}")]
    body += [nbformat.v4.new_code_cell(cell) for cell in cells]
    notebook = nbformat.v4.new_notebook(cells=body, metadata={"kernelspec": kernel})
    nbformat.write(notebook, folder / "book" / "page.ipynb")
    command = [sys.executable, "-m", "jupyter", "book", "build", ".", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
