"""Collects the pages of the site from the whole repository and adapts their Markdown to MkDocs."""

import logging
import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
log = logging.getLogger("mkdocs.plugins.pages")

# What the theme would load from other hosts otherwise.
SCRIPTS = {
    "javascripts/iframe-worker.js": "node_modules/iframe-worker/shim/index.js",
    "javascripts/mermaid.js": "node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js",
}
# A page that says the same as a file, for readers.
READABLE = {"docs/openapi.json": "docs/api.md"}
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# CommonMark indents what belongs to a list item by 2 or 3 spaces, Python-Markdown by 4: whole code blocks and single lines.
IN_LIST = re.compile(r"^ {2,3}```.*?^ {2,3}```$|^ {2,3}(?=\S)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files, config):
    """Pages keep their paths, so that links between them work unchanged."""
    paths = [path for path in paths_of(config.nav) if (ROOT / path).exists()]
    paths += ["docs/openapi.json", "docs/asyncapi.yaml"]
    paths += [path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/*/*.png")]
    for target, source in {**{path: path for path in paths}, **SCRIPTS}.items():
        files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    return files


def paths_of(nav):
    for item in nav:
        for value in item.values():
            if isinstance(value, str):
                yield value
            else:
                yield from paths_of(value)


def on_page_markdown(markdown, page, config, files):
    # Only what is between code blocks. The second word after the fence is for the tests.
    parts, at = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [adapt(markdown[at : fence.start()], page, files), re.sub(r"^```(\w+) [\w-]+", r"```\1", fence[0])]
        at = fence.end()
    return "".join([*parts, adapt(markdown[at:], page, files)])


def adapt(text, page, files):
    text = LINK.sub(lambda link: link_in_site(link, page, files), text)
    return IN_LIST.sub(lambda lines: re.sub("^", "  ", lines[0], flags=re.MULTILINE), text)


def link_in_site(link, page, files):
    text, target, anchor = link[1], link[2], link[3] or ""
    if re.match(r"\w+:", target):
        return link[0]
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_uri), target))
    if not (ROOT / path).exists() and not files.get_file_from_path(path):
        log.warning("%s links to %s, which does not exist", page.file.src_uri, target)
    if page.file.src_uri not in READABLE.values():
        path = READABLE.get(path, path)
    for candidate in (path, f"{path}/README.md"):
        if files.get_file_from_path(candidate):
            relative = posixpath.relpath(candidate, posixpath.dirname(page.file.src_uri) or ".")
            return f"[{text}]({relative}{anchor})"
    # A file of the repository that is not in the site.
    return text if posixpath.basename(path) in text else f"{text} (`{path}`)"
