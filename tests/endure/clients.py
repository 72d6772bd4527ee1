"""Clients that load a cluster and record its responses."""

import collections
import http.client
import json
import random
import threading
import time
import uuid

# The time after which a request is given up.
TIMEOUT = 15
# The time after which a sign-out or a suspension holds at every node.
EFFECT_DELAY = 5
PASSWORD = "correct horse battery"


class Refused(Exception):
    """A response that a client did not expect."""


def call(port, method, path, token=None, body=None, headers=None):
    """Sends a request. Returns the status and the JSON of the response."""
    return exchange(port, method, path, token, body, headers)[:2]


def exchange(port, method, path, token=None, body=None, headers=None):
    """Sends a request. Returns the status, the JSON and the cookie of the response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        sent = {"content-type": "application/json"} if body is not None else {}
        if token:
            sent["authorization"] = f"Bearer {token}"
        connection.request(method, path, json.dumps(body) if body is not None else None, {**sent, **(headers or {})})
        response = connection.getresponse()
        text = response.read()
        content = response.getheader("content-type") or ""
        found = json.loads(text) if content.startswith("application/json") and text else None
        return response.status, found, (response.getheader("set-cookie") or "").split(";")[0]
    finally:
        connection.close()


class History:
    """The responses that clients received."""

    def __init__(self):
        self.lock = threading.Lock()
        self.platforms = {}
        self.jobs = {}
        self.events = []
        self.errors = collections.Counter()
        self.counts = collections.Counter()
        self.violations = []
        self.last_write = time.monotonic()
        self.longest_pause = 0.0

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def count_error(self, what, error):
        with self.lock:
            self.errors[f"{what}: {error}"] += 1

    def add_platform(self, slug, record):
        """Records an acknowledged platform, and the pause since the write before it."""
        with self.lock:
            self.platforms[slug] = record["id"]
            now = time.monotonic()
            self.longest_pause = max(self.longest_pause, now - self.last_write)
            self.last_write = now

    def violation(self, text):
        with self.lock:
            self.violations.append(text)


class Client(threading.Thread):
    """A client that repeats its work until the load ends."""

    def __init__(self, cluster, history, stop, seed):
        super().__init__(daemon=True)
        self.cluster = cluster
        self.history = history
        self.stop = stop
        self.random = random.Random(seed)

    def run(self):
        while not self.stop.is_set():
            try:
                self.work()
            except Refused as error:
                self.history.violation(f"{type(self).__name__}: {error}")
            except Exception as error:  # A defect of the client must not end it silently.
                self.history.violation(f"{type(self).__name__} failed: {error!r}")

    def send(self, method, path, token=None, body=None, headers=None, iam=False):
        """Like `exchange`, without the cookie."""
        answer = self.exchange(method, path, token, body, headers, iam)
        return answer and answer[:2]

    def exchange(self, method, path, token=None, body=None, headers=None, iam=False):
        """Sends a request through HAProxy until there is an answer. Returns it, or `None` if the load ends before."""
        port = self.cluster.port + (1 if iam else 0)
        while not self.stop.is_set():
            try:
                status, found, cookie = exchange(port, method, path, token, body, headers)
            except (OSError, http.client.HTTPException) as error:
                self.history.count_error(method, type(error).__name__)
            else:
                if status < 500 and status != 429:
                    return status, found, cookie
                self.history.count_error(method, status)
            self.stop.wait(0.2)
        return None

    def write(self, path, body, expected, token=None, iam=False):
        """Sends a request with an idempotency key until it is acknowledged. Returns the response."""
        headers = {"idempotency-key": str(uuid.UUID(int=self.random.getrandbits(128), version=4))}
        while answer := self.send("POST", path, token or self.cluster.key, body, headers, iam):
            status, found = answer
            if status == expected:
                return found
            # The first attempt still runs on another node.
            if status == 409 and found["error"]["code"] == "IDEMPOTENCY_IN_PROGRESS":
                self.history.count_error("POST", found["error"]["code"])
                self.stop.wait(0.2)
                continue
            raise Refused(f"POST {path}: {status} {found}")
        return None

    def check(self, token, path, expected):
        """Uses a session at each node that responds."""
        for node in self.cluster.nodes:
            try:
                status, found = call(node.port, "GET", path, token)
            except (OSError, http.client.HTTPException):
                continue
            if status != expected and status < 500:
                raise Refused(f"{node.name}, {expected} expected: {status} {found}")


class Writer(Client):
    """Creates platforms, and provisions some of them."""

    def work(self):
        slug = f"p-{self.random.getrandbits(64):016x}"
        created = self.write("/api/v1/platforms", {"name": slug, "slug": slug}, 201)
        if created is None:
            return
        self.history.add_platform(slug, created)
        if self.random.random() < 0.2:
            body = {"platformId": created["id"], "planTier": "starter", "billingEmail": "ada@example.org"}
            queued = self.write("/api/v1/provisioning/platform", body, 202)
            if queued is not None:
                self.history.jobs[queued["jobId"]] = created["id"]


class Reader(Client):
    """Reads acknowledged platforms."""

    def work(self):
        with self.history.lock:
            known = list(self.history.platforms.items())
        if not known:
            self.stop.wait(0.1)
            return
        slug, platform = self.random.choice(known)
        answer = self.send("GET", f"/api/v1/platforms/{platform}", self.cluster.key)
        if answer is None:
            return
        status, found = answer
        if status != 200 or found["slug"] != slug:
            raise Refused(f"acknowledged platform {platform}: {status} {found}")
        self.history.count("reads")


class Person(Client):
    """Signs up, uses the session at each node, signs out, and checks that no node accepts the session any more."""

    def work(self):
        email = f"p{self.random.getrandbits(64):016x}@example.org"
        body = {"name": "Ada", "email": email, "password": PASSWORD}
        # The first attempt may have created the user before its response was lost.
        if self.send("POST", "/api/auth/sign-up/email", body=body, iam=True) is None:
            return
        answer = self.send("POST", "/api/auth/sign-in/email", body={"email": email, "password": PASSWORD}, iam=True)
        if answer is None:
            return
        status, found = answer
        if status != 200:
            raise Refused(f"sign-in after an acknowledged sign-up: {status} {found}")
        token = found["token"]
        self.check(token, "/api/v1/platforms", 200)
        answer = self.send("POST", "/api/auth/sign-out", token, {}, {"origin": f"http://127.0.0.1:{self.cluster.port + 1}"}, iam=True)
        if answer is None:
            return
        # The first attempt may have ended the session before its response was lost.
        if answer[0] not in (200, 401):
            raise Refused(f"sign-out: {answer}")
        if self.stop.wait(EFFECT_DELAY):
            return
        self.check(token, "/api/v1/platforms", 401)
        self.history.count("sessions")


class Tenant(Client):
    """Signs up with a platform of its own, and checks that no node lets it in any more after the platform is suspended."""

    def work(self):
        slug = f"t-{self.random.getrandbits(64):016x}"
        body = {"name": "Ada", "email": f"{slug}@example.org", "password": PASSWORD}
        answer = self.exchange("POST", "/api/auth/sign-up/email", body=body, iam=True)
        # Without the cookie of the first attempt, this user cannot set up an organization.
        if answer is None or answer[0] != 200:
            return
        token, cookie = answer[1]["token"], answer[2]
        headers = {"cookie": cookie, "origin": f"http://127.0.0.1:{self.cluster.port + 1}"}
        answer = self.send("POST", "/api/core/org-setup", None, {"name": slug, "slug": slug}, headers, iam=True)
        # The first attempt may have set it up before its response was lost.
        if answer is None or answer[0] == 409:
            return
        if answer[0] != 201:
            raise Refused(f"set-up of an organization: {answer}")
        path = f"/api/v1/platforms/{answer[1]['platformId']}"
        self.check(token, path, 200)
        answer = self.send("POST", f"{path}/suspend", self.cluster.key, {})
        # The first attempt may have suspended the platform before its response was lost.
        if answer is None:
            return
        if answer[0] not in (200, 409):
            raise Refused(f"suspension: {answer}")
        if self.stop.wait(EFFECT_DELAY):
            return
        self.check(token, path, 451)
        self.history.count("suspensions")


class Follower(Client):
    """Follows the change feed, and continues at another node when its stream ends."""

    def work(self):
        events = self.history.events
        headers = {"authorization": f"Bearer {self.cluster.key}", "last-event-id": str(events[-1][0]) if events else "0"}
        node = self.random.choice(self.cluster.nodes)
        connection = http.client.HTTPConnection("127.0.0.1", node.port + 2, timeout=TIMEOUT)
        try:
            connection.request("GET", "/api/v1/events", headers=headers)
            response = connection.getresponse()
            if response.status != 200:
                self.history.count_error("events", response.status)
                self.stop.wait(0.2)
                return
            for event in read_events(response):
                events.append(event)
                if self.stop.is_set():
                    return
        except (OSError, http.client.HTTPException) as error:
            self.history.count_error("events", type(error).__name__)
            self.stop.wait(0.2)
        finally:
            connection.close()


def read_events(response):
    """Yields the position and the data of each event of a stream. An event whose end does not arrive is left out."""
    position, data = None, []
    for line in response:
        line = line.decode().rstrip("\r\n")
        if line.startswith("id:"):
            position = int(line[3:])
        elif line.startswith("data:"):
            data.append(line[5:].strip())
        elif not line and position is not None and data:
            yield position, json.loads("\n".join(data))
            position, data = None, []
