"""Hooks of MkDocs: pages may link to files of the repository outside of docs/, and the built site needs no network.

A linked file becomes a page below tree/, a linked folder a list of its files. After the build every reference of the
site is checked: a resource from elsewhere, a missing file or a missing anchor fails the build.
"""

import html.parser
import posixpath
import re
import urllib.parse
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
# Search is about the manual, not about the code that it links to.
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
LANGUAGES = {".go": "go", ".yaml": "yaml", ".yml": "yaml", ".py": "python", ".json": "json", ".sh": "bash"}


def repository_path(uri):
    """The path in the repository of a page of the site."""
    return uri.removeprefix("tree/").removesuffix(".page.md") if uri.startswith("tree/") else "docs/" + uri


def site_uri(path):
    """The page or file of the site for a path of the repository."""
    if path.startswith("docs/") and (ROOT / path).is_file():
        return path.removeprefix("docs/")
    if (ROOT / path).is_dir():
        return "tree/" + path + "/index.md"
    return "tree/" + path + ("" if path.endswith(".md") else ".page.md")


def targets(path, text):
    """The links of a page to files of the repository: the link, and the path that it leads to."""
    for found in LINK.finditer(re.sub(r"(?s)```.*?```", "", text)):
        link = found.group(2)
        if "://" in link or link.startswith(("#", "mailto:")):
            continue
        name, _, _ = link.partition("#")
        yield link, posixpath.normpath(posixpath.join(posixpath.dirname(path), name))


def content(path):
    """The Markdown of a file or folder outside of docs/."""
    file = ROOT / path
    if file.is_dir():
        names = sorted(p.name for p in file.iterdir() if p.is_file() and not p.name.startswith("."))
        return f"# {path}/\n\n" + "".join(f"* [{name}]({name})\n" for name in names)
    text = file.read_text()
    if path.endswith(".md"):
        return text
    fence = "`" * 6
    return f"# {path}\n\n{fence}{LANGUAGES.get(file.suffix, 'text')}\n{text}{fence}\n"


def called(text, path):
    """The words of a link: where they are the name of a page, its title."""
    if text != posixpath.basename(path) or not text.endswith(".md") or not (ROOT / path).is_file():
        return text
    title = re.search(r"(?m)^# (.+)$", (ROOT / path).read_text())
    return title.group(1) if title else text


def on_files(files, config):
    waiting = [f for f in files if f.src_uri.endswith(".md")]
    while waiting:
        page = waiting.pop()
        path = repository_path(page.src_uri)
        if page.src_uri.endswith("/index.md") and page.src_uri.startswith("tree/"):
            path = path.removesuffix("/index.md") + "/."
        for _, target in targets(path, page.content_string):
            uri = site_uri(target)
            if files.get_file_from_path(uri) or not (ROOT / target).exists():
                continue
            made = File.generated(config, uri, content=UNSEARCHED + content(target))
            files.append(made)
            if target.endswith(".md") or (ROOT / target).is_dir():
                waiting.append(made)
    return files


def on_page_markdown(markdown, page, config, files):
    uri = page.file.src_uri
    path = repository_path(uri)
    if uri.startswith("tree/") and uri.endswith("/index.md"):
        path = path.removesuffix("/index.md") + "/."

    def changed(found):
        link = found.group(2)
        if "://" in link or link.startswith(("#", "mailto:")):
            return found.group(0)
        name, hash_, anchor = link.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        there = posixpath.relpath(site_uri(target), posixpath.dirname(uri) or ".")
        return f"[{called(found.group(1), target)}]({there}{hash_}{anchor})"

    parts = re.split(r"(?s)(```.*?```)", markdown)
    return "".join(part if part.startswith("```") else LINK.sub(changed, part) for part in parts)


# What Material takes from a network for the search of a page that was opened from a file.
SHIM = re.compile(r"https://[^\"']*/iframe-worker/shim")


def on_post_page(output, page, config):
    return SHIM.sub(get_relative_url("frame-worker.js", page.url), output)


def on_post_template(output, template_name, config):
    return SHIM.sub("frame-worker.js", output)


class References(html.parser.HTMLParser):
    """The anchors of an HTML file, and all that it refers to."""

    def __init__(self):
        super().__init__()
        self.anchors, self.links, self.resources = set(), [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(v for k, v in attrs.items() if k in ("id", "name") and v)
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        for key in ("src", "srcset", "poster", "data"):
            if attrs.get(key) and tag in ("script", "img", "iframe", "source", "video", "audio", "object", "embed"):
                self.resources.append(attrs[key])
        if tag == "link" and attrs.get("href") and attrs.get("rel") not in ("canonical", "prev", "next"):
            self.resources.append(attrs["href"])

    handle_startendtag = handle_starttag


def on_post_build(config):
    site = Path(config["site_dir"])
    read = {}
    for file in site.rglob("*.html"):
        read[file] = References()
        read[file].feed(file.read_text())
    faults = []
    for file, found in sorted(read.items()):
        name = file.relative_to(site)
        faults += [f"{name}: resource from elsewhere: {r}" for r in found.resources if "//" in r.split("?")[0]]
        for reference in found.links + found.resources:
            fault = missing(file, reference, read) if not name.match("404.html") else None
            if fault:
                faults.append(f"{name}: {fault}: {reference}")
    for style in site.rglob("*.css"):
        if re.search(r"@import\s|url\(['\"]?(https?:)?//", style.read_text()):
            faults.append(f"{style.relative_to(site)}: resource from elsewhere")
    if faults:
        raise PluginError("the site refers to what is not there:\n" + "\n".join(faults[:50]))


def missing(file, reference, read):
    """The fault of a reference, or None."""
    url = urllib.parse.urlsplit(reference)
    if url.scheme or url.netloc:
        return None
    target = (file.parent / urllib.parse.unquote(url.path)).resolve() if url.path else file
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return "no such file"
    if url.fragment and target in read and urllib.parse.unquote(url.fragment) not in read[target].anchors:
        return "no such anchor"
    return None
