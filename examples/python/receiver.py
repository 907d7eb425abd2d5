"""A target of push in Python's standard library: it takes what is signed with its secret, and nothing else.

It prints its port, then reads the secret that `pawl targets put` showed from its standard input (or PAWL_SECRET), and serves.
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE = 300  # seconds that a delivery may be old, or ahead of this clock


def is_signed(secret: bytes, headers, body: bytes) -> bool:
    """Whether any of the signatures is ours: while a secret is rotated there are two."""
    told_id, told_at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not told_at.isdigit() or abs(time.time() - int(told_at)) > TOLERANCE:
        return False
    content = f"{told_id}.{told_at}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(secret, content, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected, one) for one in headers.get("webhook-signature", "").split(" "))


def work(job: dict) -> dict:
    """What is done for a job. It may come twice, with the same job["job"]: whoever minds remembers it."""
    return {"did": job["data"]}


class Receiver(BaseHTTPRequestHandler):
    secret = b""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        # The bytes as they came: parsed and printed again they may be others.
        if not is_signed(self.secret, self.headers, body):
            return self.answer(401, {"error": "not signed"})
        self.answer(200, work(json.loads(body)))

    def answer(self, status: int, content: dict) -> None:
        text = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "0"))), Receiver)
    print(server.server_address[1], flush=True)
    secret = os.environ.get("PAWL_SECRET") or sys.stdin.readline().strip()
    Receiver.secret = base64.b64decode(secret.removeprefix("whsec_"))
    print("ready", flush=True)
    server.serve_forever()
