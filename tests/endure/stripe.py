"""The fake of Stripe: what it has stored, and the delivery of its webhooks."""

import hashlib
import hmac
import http.client
import http.server
import json
import queue
import random
import threading
import time
import urllib.parse

from clients import exchange

SECRET_KEY = "sk_test_fake"
WEBHOOK_SECRET = "whsec_fake"
# The clock of billing is this far ahead of the time, so that usage of the time before is closed.
AHEAD = 26 * 60 * 60
# The events that the guide of billing asks for, as far as the fake has them.
EVENTS = [
    "invoice.created", "invoice.finalized", "invoice.paid", "invoice.payment_failed", "invoice.voided",
    "payment_method.attached", "customer.updated",
]
# Stripe repeats for three days.
DELIVERY_TIMEOUT = 180


class Account:
    """The account at the fake."""

    def __init__(self, port):
        self.port = port
        self.relay = None

    def call(self, method, path, form=None):
        """Sends a request to the fake, and returns the JSON of the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            headers = {"authorization": f"Bearer {SECRET_KEY}", "content-type": "application/x-www-form-urlencoded"}
            connection.request(method, path, urllib.parse.urlencode(form) if form else None, headers)
            response = connection.getresponse()
            found = json.loads(response.read())
            assert response.status == 200, found
            return found
        finally:
            connection.close()

    def invoices(self):
        """Returns all invoices."""
        invoices, after = [], ""
        while True:
            page = self.call("GET", f"/v1/invoices?limit=100{after}")
            invoices += page["data"]
            if not page["has_more"]:
                return invoices
            after = f"&starting_after={invoices[-1]['id']}"

    def send_webhooks(self, port, path):
        """Registers an endpoint for webhooks, which delivers them to a port and path."""
        self.relay = Relay(port, path)
        names = [("enabled_events[]", name) for name in EVENTS]
        self.call("POST", "/v1/webhook_endpoints", [("url", self.relay.url), *names])


class Relay:
    """Delivers webhooks as Stripe does: signed at the time of each attempt, without an order, repeated until they are
    accepted, and some of them twice. The fake itself sends each once."""

    def __init__(self, port, path):
        self.port = port
        self.path = path
        self.waiting = queue.PriorityQueue()
        self.random = random.Random(11)
        self.delivered = 0
        self.lost = []
        relay = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                for _ in range(1 + (relay.random.random() < 0.2)):
                    relay.add(body, time.monotonic() + relay.random.uniform(0, 3), time.monotonic() + DELIVERY_TIMEOUT)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        for _ in range(2):
            threading.Thread(target=self.deliver, daemon=True).start()

    def add(self, body, at, end):
        self.waiting.put((at, self.random.random(), body, end))

    def deliver(self):
        while True:
            at, _, body, end = self.waiting.get()
            time.sleep(max(0, at - time.monotonic()))
            if self.send(body):
                self.delivered += 1
            elif time.monotonic() > end:
                self.lost.append(body)
            else:
                self.add(body, time.monotonic() + 2, end)

    def send(self, body):
        now = int(time.time())
        digest = hmac.new(WEBHOOK_SECRET.encode(), f"{now}.".encode() + body, hashlib.sha256).hexdigest()
        headers = {"content-type": "application/json", "stripe-signature": f"t={now},v1={digest}"}
        try:
            return exchange(self.port, "POST", self.path, body=body, headers=headers).status == 200
        except (OSError, http.client.HTTPException):
            return False
