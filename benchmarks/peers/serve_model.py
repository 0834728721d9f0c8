"""mdmem's own embedding model behind an OpenAI-compatible address on this machine, for peers whose model cannot be had here.

    python benchmarks/peers/serve_model.py        prints the address, serves until its standard input is closed

What comes in one call is embedded as passages; a call with one text of up to 300 characters as a question.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from mdmem.config import Config
from mdmem.index.embed import load_embedder

_folder = tempfile.TemporaryDirectory(prefix="mdmem-model-")
_embedder = load_embedder(Config(), Path(_folder.name))
_mutex = threading.Lock()


class Handler(BaseHTTPRequestHandler):
    """Answers POST …/embeddings."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Return one vector for each text."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        texts = [asked] if isinstance(asked, str) else [str(text) for text in asked]
        with _mutex:
            question = len(texts) == 1 and len(texts[0]) <= 300
            rows = _embedder.queries(texts) if question else _embedder.passages(texts)
        data = [{"object": "embedding", "index": n, "embedding": row.tolist()} for n, row in enumerate(rows)]
        body = json.dumps(
            {"object": "list", "data": data, "model": "e5-small", "usage": {"prompt_tokens": 0, "total_tokens": 0}}
        )
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *words: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    sys.stdin.read()
