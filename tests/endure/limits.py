"""Rate limits: clients that exceed them, and the check that no more was admitted than the guide of operations allows."""

import collections
import concurrent.futures
import http.client
import time
import typing

from clients import Client, exchange, fresh_address

# Shorter than a window of a limit, so that all requests of a round are in one window of each counter.
ROUND_SECONDS = 40
# The requests of a round as multiples of the quota: a short round is over before the next fault, and a long one exceeds what
# several counters admit together.
LENGTHS = [1.2, 1.2, 6]
# The number of requests at a time.
PARALLEL = 8


class Limit(typing.NamedTuple):
    """A documented limit of requests of a client in 60 seconds."""

    name: str
    quota: int
    # The port of the service minus that of the gateway.
    service: int
    method: str
    path: str
    body: typing.Any
    # A service that is reached directly does not limit the holder of the service key.
    has_key: bool


LIMITS = [
    Limit("default", 100, 0, "GET", "/api/v1/platforms?limit=1", None, True),
    Limit("strict", 10, 1, "POST", "/oauth/device/code", {"client_id": "core-cli"}, False),
]


class Round(typing.NamedTuple):
    """The responses to one client."""

    limit: Limit
    admitted: int
    refused: int
    # Requests without a response of a node. They may have been counted.
    lost: int
    # The number of counters that may have counted the requests, each up to the quota.
    counters: int


def count_redis(cluster, began, ended):
    """Returns the number of processes of Redis in a time. Each begins to count at zero."""
    return sum(start < ended and (stop is None or stop > began) for start, stop in cluster.redis_times)


def count_memories(before, after):
    """Returns the number of processes of a node that may have counted in their memory."""
    (old, old_fallbacks), (new, fallbacks) = before, after
    earlier = old_fallbacks if old == new else 0
    # Nothing is known about processes that were killed.
    return new - old + (fallbacks is None or earlier is None or fallbacks > earlier)


class Flooder(Client):
    """A client that sends more requests than a limit admits, through all nodes."""

    def work(self):
        limit = self.random.choice(LIMITS)
        states = [self.state(node) for node in self.cluster.nodes]
        began = time.monotonic()
        counts = self.flood(limit, fresh_address(), began + ROUND_SECONDS)
        ended = time.monotonic()
        counters = count_redis(self.cluster, began, ended)
        for node, before in zip(self.cluster.nodes, states):
            counters += count_memories(before, self.state(node))
        self.history.rounds.append(Round(limit, *counts, counters))
        self.stop.wait(1)

    def state(self, node):
        """Returns the number of the process of a node, and how often it has counted in its memory."""
        while True:
            generation, fallbacks = node.generation, node.fallbacks()
            if generation == node.generation:
                return generation, fallbacks

    def flood(self, limit, source, end):
        """Sends the requests of a round. Returns the numbers of those that were admitted, refused and lost."""
        count = int(limit.quota * self.random.choice(LENGTHS))
        with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
            outcomes = collections.Counter(pool.map(lambda _: self.outcome(limit, source, end), range(count)))
        return outcomes["admitted"], outcomes["refused"], outcomes["lost"]

    def outcome(self, limit, source, end):
        """Sends a request, unless the round is over. Returns its outcome."""
        if self.stop.is_set() or time.monotonic() > end:
            return "not sent"
        port, key = self.cluster.port + limit.service, self.cluster.key if limit.has_key else None
        try:
            answer = exchange(port, limit.method, limit.path, key, limit.body, source=source)
        except (OSError, http.client.HTTPException):
            return "lost"
        if answer.status == 429:
            return "refused"
        return "admitted" if answer.headers.get("ratelimit") else "lost"


def check_limits(history):
    """No client had more requests admitted than its counters allow, and none was refused before its quota was used."""
    for one in history.rounds:
        if one.admitted > one.counters * one.limit.quota:
            history.violation(f"limit {one.limit.name}: {one}")
        if one.refused and one.admitted + one.lost < one.limit.quota:
            history.violation(f"limit {one.limit.name}, refused too early: {one}")
    for limit in LIMITS:
        rounds = [one for one in history.rounds if one.limit == limit and one.refused]
        if not rounds:
            continue
        exact = [one for one in rounds if one.counters == 1]
        most = max(rounds, key=lambda one: one.admitted)
        history.notes.append(
            f"limit {limit.name}: {len(rounds)} clients exceeded {limit.quota}; {len(exact)} with one counter, of which at most "
            f"{max((one.admitted for one in exact), default=0)} were admitted; at most {most.admitted} with {most.counters}"
        )
