"""The documentation as a site (``make docs``): its search works offline, nothing is fetched."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "scripts"))

from cli_reference import reference  # noqa: E402

import tidegate  # noqa: E402

(HERE / "reference" / "cli.md").write_text(reference(), encoding="utf-8")

project = "Tidegate"
author = "The Tidegate contributors"
copyright = author
release = version = tidegate.__version__
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["**/README.md"]
myst_heading_anchors = 3  # links to headings, as forges make them
suppress_warnings = ["misc.highlighting_failure"]  # console blocks show output, too
html_theme = "furo"
html_title = f"Tidegate {version}"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "default", "monokai"
