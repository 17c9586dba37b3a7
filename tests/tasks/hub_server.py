"""A small server on 127.0.0.1 that speaks the hub's protocol from a folder laid out like the hub, and can misbehave."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """What the server gives out, and how it fails.

    Attributes:
        folder: `datasets/<owner>/<name>/…` and `models/<owner>/<name>/…`.
        revisions: those that exist.
        cut: ends of paths whose content breaks off half-way.
        failing: end of a path to how many times it is answered with 500, counted down.
        requests: what was asked, in order: method and path.
    """

    folder: Path
    revisions: set[str] = field(default_factory=lambda: {"main", COMMIT})
    cut: set[str] = field(default_factory=set)
    failing: dict[str, int] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    address: str = ""


@contextmanager
def serve(folder: Path) -> Iterator[Hub]:
    """The hub of a folder, as long as the context lasts."""
    hub = Hub(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    hub.address = f"http://127.0.0.1:{server.server_port}"
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(b"")

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _answer(self, body: bytes) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.requests.append(f"{self.command} {path}")
        for end, times in self.hub.failing.items():
            if path.endswith(end) and times:
                self.hub.failing[end] -= 1
                return self._error(500, "", "Internal error")
        if path.startswith("/api/"):
            return self._api(path, body)
        if "/resolve/" in path:
            return self._file(path)
        return self._error(404, "RepoNotFound", "Repository not found")

    def _repository(self, kind: str, name: str, revision: str) -> Path | None:
        """Its folder; None if an error was sent."""
        folder = self.hub.folder / kind / name
        if not folder.is_dir():
            self._error(404, "RepoNotFound", "Repository not found")
        elif revision not in self.hub.revisions:
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        else:
            return folder
        return None

    def _api(self, path: str, body: bytes) -> None:
        # /api/<kind>/<owner>/<name>[/<what>[/<revision>[/<path>]]]
        parts = path.removeprefix("/api/").split("/")
        if len(parts) < 3:
            return self._error(404, "", "Not found")
        kind, owner, name, what, revision, *below = parts + ["revision", "main"][max(len(parts) - 3, 0) :]
        folder = self._repository(kind, f"{owner}/{name}", revision)
        if folder is None:
            return
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        if what == "revision":
            siblings = [{"rfilename": str(file.relative_to(folder))} for file in files]
            self._json({"id": f"{owner}/{name}", "sha": COMMIT, "siblings": siblings, "tags": [], "private": False})
        elif what == "tree":
            inside = folder / "/".join(below)
            if not inside.is_dir():
                return self._error(404, "EntryNotFound", "Entry not found")
            deep = parse_qs(urlsplit(self.path).query).get("recursive", ["false"])[0].lower() in ("true", "1")
            listed = inside.rglob("*") if deep else inside.iterdir()
            self._json([self._entry(folder, one) for one in sorted(listed)])
        elif what == "paths-info":
            form = parse_qs(body.decode()) if not body.startswith(b"{") else json.loads(body)
            named = [folder / one for one in form.get("paths", [])]
            self._json([self._entry(folder, one) for one in named if one.exists()])
        else:
            self._error(404, "EntryNotFound", "Entry not found")

    @staticmethod
    def _entry(folder: Path, one: Path) -> dict:
        path = str(one.relative_to(folder))
        if one.is_dir():
            return {"type": "directory", "oid": COMMIT, "size": 0, "path": path}
        return {
            "type": "file",
            "oid": hashlib.sha1(one.read_bytes()).hexdigest(),
            "size": one.stat().st_size,
            "path": path,
        }

    def _file(self, path: str) -> None:
        # /[datasets/]<owner>/<name>/resolve/<revision>/<path>
        repository, _, rest = path.strip("/").partition("/resolve/")
        revision, _, name = rest.partition("/")
        kind = "datasets" if repository.startswith("datasets/") else "models"
        folder = self._repository(kind, repository.removeprefix("datasets/"), revision)
        if folder is None:
            return
        file = folder / name
        if not file.is_file():
            return self._error(404, "EntryNotFound", "Entry not found")
        content = file.read_bytes()
        begin, end = 0, len(content)
        if given := self.headers.get("Range"):
            first, _, last = given.removeprefix("bytes=").partition("-")
            begin, end = int(first), int(last) + 1 if last else len(content)
        self.send_response(206 if given else 200)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
        self.send_header("Accept-Ranges", "bytes")
        if given:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(content)}")
        self.send_header("Content-Length", str(end - begin))
        self.end_headers()
        if self.command == "GET":
            if any(path.endswith(one) for one in self.hub.cut):
                self.wfile.write(content[begin : begin + (end - begin) // 2])
                self.close_connection = True
            else:
                self.wfile.write(content[begin:end])

    def _json(self, content) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _error(self, status: int, code: str, message: str) -> None:
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("X-Error-Message", message)
        self.send_header("Content-Length", "0")
        self.end_headers()
