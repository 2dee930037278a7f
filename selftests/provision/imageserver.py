"""A server of images that cuts, stalls and changes."""

import hashlib
import http.server
import re
import threading
import time

from selftests.support import web


class Server(http.server.ThreadingHTTPServer):
    """One file with an ETag, and its `checksum`; `cut` ends the next answers after so many bytes."""

    daemon_threads = True

    def __init__(self, content):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.cut, self.asked, self.sent = content, [], [], 0
        self.stalls, self.checksum = False, ""
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_port}/images/a.wic.zst"


class Handler(web.Handler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        if server.checksum and self.path.endswith(".sha256"):
            self.answer(200, server.checksum.encode())
            return
        if not self.path.endswith(".zst"):
            self.answer(404, b"")
            return
        tag = f'"{hashlib.sha256(server.content).hexdigest()[:8]}"'
        wanted = self.headers.get("Range")
        server.asked.append(wanted or "whole")
        if self.headers.get("If-None-Match") == tag:
            server.asked[-1] = "same"
            self.answer(304, b"")
        elif wanted and self.headers.get("If-Range") == tag:
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])
            self.answer(206, server.content[start:], tag)
        else:
            self.answer(200, server.content, tag)

    def answer(self, status, body, tag=""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if tag:
            self.send_header("ETag", tag)
        self.end_headers()
        if self.server.stalls:
            time.sleep(3)
        if body and self.server.cut:
            body = body[: self.server.cut.pop(0)]
            self.close_connection = True
        self.wfile.write(body)
        self.server.sent += len(body)
