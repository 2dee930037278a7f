"""A server of images that cuts, stalls and changes."""

import contextlib
import hashlib
import re
import time

from selftests.support import web


@contextlib.contextmanager
def serving(content):
    """A server of one file with an ETag, and its `checksum`; `cut` ends the next answers after so many bytes,
    and `asked` is what was asked for.
    """
    with web.serving(Handler) as server:
        server.content, server.cut, server.asked, server.sent = content, [], [], 0
        server.stalls, server.checksum = False, ""
        server.url += "/images/a.wic.zst"
        yield server


class Handler(web.Handler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        if server.stalls:
            time.sleep(3)
        if not self.path.endswith(".zst"):
            known = server.checksum and self.path.endswith(".sha256")
            self.say(200 if known else 404, server.checksum.encode())
            return
        tag = f'"{hashlib.sha256(server.content).hexdigest()[:8]}"'
        wanted = self.headers.get("Range")
        server.asked.append(wanted or "whole")
        if self.headers.get("If-None-Match") == tag:
            server.asked[-1] = "same"
            self.say(304)
            return
        start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if self.headers.get("If-Range") == tag else 0
        body = server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", tag)
        self.end_headers()
        if server.cut:
            body = body[: server.cut.pop(0)]
            self.close_connection = True
        self.wfile.write(body)
        server.sent += len(body)
