"""Clients that load a cluster and record its responses."""

import collections
import http.client
import itertools
import json
import random
import threading
import time
import typing
import uuid

# The time after which a request is given up.
TIMEOUT = 15
# The time after the end of the load in which a request that may charge money gets its response.
LAST_RESPONSES = 120
# The refusals of a repeated request while an earlier one is in progress.
IN_PROGRESS = ("IDEMPOTENCY_IN_PROGRESS", "OPERATION_IN_PROGRESS")


class Refused(Exception):
    """A response that a client did not expect."""


class Answer(typing.NamedTuple):
    """A response."""

    status: int
    # The JSON of the body, or `None` if it has no JSON.
    found: typing.Any
    headers: http.client.HTTPMessage

    @property
    def cookie(self):
        return (self.headers.get("set-cookie") or "").split(";")[0]


numbers = itertools.count()


def fresh_address():
    """Returns an address of this machine that was not used before, so that a request comes from another client."""
    number = next(numbers)
    return f"127.{1 + number // 62500 % 250}.{1 + number // 250 % 250}.{1 + number % 250}"


def call(port, method, path, token=None, body=None, headers=None):
    """Sends a request. Returns the status and the JSON of the response."""
    return exchange(port, method, path, token, body, headers)[:2]


def exchange(port, method, path, token=None, body=None, headers=None, source=None):
    """Sends a request, from a client that was not used before or from the address `source`. Bytes are sent as they are."""
    source = (source or fresh_address(), 0)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT, source_address=source)
    try:
        is_json = body is not None and not isinstance(body, bytes)
        sent = {"content-type": "application/json"} if is_json else {}
        if token:
            sent["authorization"] = f"Bearer {token}"
        connection.request(method, path, json.dumps(body) if is_json else body, {**sent, **(headers or {})})
        response = connection.getresponse()
        text = response.read()
        content = response.getheader("content-type") or ""
        found = json.loads(text) if content.startswith("application/json") and text else None
        return Answer(response.status, found, response.headers)
    finally:
        connection.close()


def error_code(answer):
    """Returns the status of a refusal with its code. The pages of HAProxy have none."""
    if not isinstance(answer.found, dict):
        return f"{answer.status} (HAProxy)"
    error = answer.found.get("error")
    return f"{answer.status} {error['code'] if isinstance(error, dict) else answer.found.get('code')}"


class History:
    """The responses that clients received."""

    def __init__(self):
        self.lock = threading.Lock()
        self.platforms = {}
        self.jobs = {}
        self.deployments = {}
        self.payers = []
        # The addresses of users.
        self.users = set()
        # The tokens of sessions that have ended.
        self.ended_sessions = []
        self.organizations = []
        self.rounds = []
        self.events = []
        self.errors = collections.Counter()
        self.counts = collections.Counter()
        # The acknowledged writes by client.
        self.writes = collections.Counter()
        # How long changes waited for the switch of each move of a platform, in milliseconds.
        self.pauses = []
        self.violations = []
        self.lost = self.doubled = 0
        # Further figures for the report.
        self.notes = []
        self.last_write = time.monotonic()
        self.longest_pause = 0.0

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def count_error(self, what, error):
        with self.lock:
            self.errors[f"{what}: {error}"] += 1

    def add_write(self, what):
        """Records an acknowledged write, and the pause since the one before it."""
        with self.lock:
            now = time.monotonic()
            self.writes[what] += 1
            self.longest_pause = max(self.longest_pause, now - self.last_write)
            self.last_write = now

    def add_platform(self, slug, record):
        with self.lock:
            self.platforms[slug] = record["id"]

    def add_user(self, email):
        with self.lock:
            self.users.add(email)

    def add_ended_session(self, token):
        with self.lock:
            self.ended_sessions.append(token)

    def add_organization(self, organization):
        with self.lock:
            self.organizations.append(organization)

    def violation(self, text):
        with self.lock:
            self.violations.append(text)

    def add_lost(self, text):
        """Records that something acknowledged is not there."""
        with self.lock:
            self.lost += 1
        self.violation(text)

    def add_doubled(self, text):
        """Records that something was done twice."""
        with self.lock:
            self.doubled += 1
        self.violation(text)


class Client(threading.Thread):
    """A client that repeats its work until the load ends."""

    def __init__(self, cluster, history, stop, seed):
        super().__init__(daemon=True)
        self.cluster = cluster
        self.history = history
        self.stop = stop
        self.random = random.Random(seed)
        # The failed attempts of the present request.
        self.failures = []

    def run(self):
        while not self.stop.is_set():
            try:
                self.work()
            except Refused as error:
                self.history.violation(f"{type(self).__name__}: {error}")
            except Exception as error:  # A defect of the client must not end it silently.
                self.history.violation(f"{type(self).__name__} failed: {error!r}")

    def gives_up(self):
        """Returns whether a request that has no response yet is not repeated any more."""
        return self.stop.is_set()

    def send(self, method, path, token=None, body=None, headers=None, iam=False):
        """Like `exchange`, with the status and the JSON only."""
        answer = self.exchange(method, path, token, body, headers, iam)
        return answer and answer[:2]

    def exchange(self, method, path, token=None, body=None, headers=None, iam=False, port=0):
        """Sends a request through HAProxy until there is an answer. Returns it, or `None` if the load ends before. `port` is
        that of the gateway plus the number of a service."""
        port = self.cluster.port + (1 if iam else port)
        while not self.gives_up():
            try:
                answer = exchange(port, method, path, token, body, headers)
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(type(error).__name__)
            else:
                if answer.status < 500 and answer.status != 429:
                    return answer
                self.failures.append(error_code(answer))
            self.history.count_error(method, self.failures[-1])
            time.sleep(0.2)
        return None

    def new_key(self):
        """Returns the header with a new idempotency key."""
        return {"idempotency-key": str(uuid.UUID(int=self.random.getrandbits(128), version=4))}

    def write(self, path, body, expected, token=None, iam=False, method="POST", headers=None, port=0):
        """Sends a request with an idempotency key until it is acknowledged with one of the statuses. Returns the response."""
        self.failures = []
        headers = {**self.new_key(), **(headers or {})}
        statuses = expected if isinstance(expected, tuple) else (expected,)
        while answer := self.exchange(method, path, token or self.cluster.key, body, headers, iam, port):
            if answer.status in statuses:
                self.history.add_write(f"{type(self).__name__}: {method}")
                return answer.found
            # The first attempt still runs on another node, or its charge has no outcome yet.
            if answer.status == 409 and answer.found["error"]["code"] in IN_PROGRESS:
                self.failures.append(answer.found["error"]["code"])
                self.history.count_error(method, self.failures[-1])
                time.sleep(0.2)
                continue
            raise Refused(f"{method} {path}: {answer.status} {answer.found}, after {self.failures}")
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


class Steady(Client):
    """A client that waits for the outcome of what it has begun when the load ends."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.latest = None

    def gives_up(self):
        if self.latest is None and self.stop.is_set():
            self.latest = time.monotonic() + LAST_RESPONSES
        return self.latest is not None and time.monotonic() > self.latest


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


class Follower(Client):
    """Follows the change feed, and continues at another node when its stream ends."""

    def work(self):
        events = self.history.events
        headers = {"authorization": f"Bearer {self.cluster.key}", "last-event-id": str(events[-1][0]) if events else "0"}
        node = self.random.choice(self.cluster.nodes)
        source = (fresh_address(), 0)
        connection = http.client.HTTPConnection("127.0.0.1", node.port + 2, timeout=TIMEOUT, source_address=source)
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
