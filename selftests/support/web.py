"""HTTP servers on loopback."""

import contextlib
import http.server
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    """Says nothing on standard error."""

    def say(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(handler, host="127.0.0.1"):
    """A server that answers by that handler; it ends here."""
    with http.server.ThreadingHTTPServer((host, 0), handler) as server:
        server.daemon_threads = True
        server.url = f"http://{host}:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
