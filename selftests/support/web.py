"""HTTP servers on loopback."""

import contextlib
import http.server
import ssl
import subprocess
import sys
import threading
import time


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


def trickle(handler, head, seconds=60.0):
    """Say something, byte by byte and never all: no read waits for long."""
    handler.close_connection = True
    handler.wfile.write(head)
    end, pause = time.monotonic() + seconds, threading.Event()
    while time.monotonic() < end:
        handler.wfile.write(b"x")
        handler.wfile.flush()
        pause.wait(0.05)  # tests replace time.sleep


def certificate(folder):
    """The files of a self-signed certificate of loopback and its key, made in `folder`."""
    words = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out cert.pem -subj /CN=localhost"
    )
    name = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*words.split(), *name], cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


@contextlib.contextmanager
def serving(handler, host="127.0.0.1", tls=()):
    """A server that answers by that handler, behind TLS with the files of a certificate; it ends here."""
    with _Server((host, 0), handler) as server:
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        server.url = f"http{'s' * bool(tls)}://{host}:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
