"""Make a release: ``make release VERSION=0.2.0``.

Checks that the tree is clean and the changelog has something to say, writes the version where it
stands, dates the changelog, builds the archives and commits with a tag. Nothing is pushed: the
workflow publishes a tag when you push it.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLACES = {  # files, and the line in them that has the version
    "pyproject.toml": r'^version = "(.+)"$',
    "src/tidegate/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
}
HEADING = re.compile(r"^## (\S+) \(unreleased\)$", re.MULTILINE)


def stated_versions() -> dict[str, str]:
    """Return the version that each place states."""
    found = {}
    for name, line in PLACES.items():
        match = re.search(line, (ROOT / name).read_text(), re.MULTILINE)
        assert match, f"{name} states no version"
        found[name] = match[1]
    return found


def write_version(version: str) -> None:
    """Write the version wherever it stands."""
    for name, line in PLACES.items():
        path = ROOT / name
        text = path.read_text()
        match = re.search(line, text, re.MULTILINE)
        assert match
        path.write_text(text[: match.start(1)] + version + text[match.end(1) :])


def dated(changelog: str, version: str, day: str) -> str:
    """Return the changelog with its first section released.

    >>> dated("# Changelog\\n\\n## 0.1.0 (unreleased)\\n\\n- x\\n", "0.1.0", "2026-01-02")
    '# Changelog\\n\\n## 0.1.0 (2026-01-02)\\n\\n- x\\n'
    """
    changed, times = HEADING.subn(f"## {version} ({day})", changelog, count=1)
    if not times:
        raise SystemExit("CHANGELOG.md has no section '## VERSION (unreleased)'; write one first")
    return changed


def main(arguments: list[str]) -> None:
    """Make the release that was asked for."""
    if len(arguments) != 1 or not re.fullmatch(r"\d+\.\d+\.\d+", arguments[0]):
        raise SystemExit("usage: make release VERSION=0.2.0")
    version = arguments[0]
    if _git("status", "--porcelain"):
        raise SystemExit("the tree has changes; commit or remove them first")
    changelog = ROOT / "CHANGELOG.md"
    text = dated(changelog.read_text(), version, datetime.date.today().isoformat())
    write_version(version)
    changelog.write_text(text)
    subprocess.run([sys.executable, "-m", "hatchling", "build"], cwd=ROOT, check=True)
    _git("commit", "--all", "--message", f"Release {version}")
    _git("tag", "--annotate", f"v{version}", "--message", f"Tidegate {version}")
    print(f"committed and tagged v{version}; 'git push --follow-tags' publishes it")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    main(sys.argv[1:])
