"""HTTP servers on loopback."""

import contextlib
import http.server
import sys
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


class _Server(http.server.ThreadingHTTPServer):
    """Takes it well when a client hangs up: what it printed would be taken for the client's."""

    daemon_threads = True

    def handle_error(self, request, address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, address)


@contextlib.contextmanager
def serving(handler, host="127.0.0.1"):
    """A server that answers by that handler; it ends here."""
    with _Server((host, 0), handler) as server:
        server.url = f"http://{host}:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
