"""Reads of the records of a cluster after the faults have ended."""

import http.client
import time

from clients import call, fresh_address, read_events

# The time in which all jobs end and all events arrive.
SETTLE_TIMEOUT = 180


def settled(port, method, path, token=None, body=None):
    """Sends a request until there is a response without a fault. Returns the status and the JSON."""
    end = time.monotonic() + SETTLE_TIMEOUT
    while True:
        try:
            status, found = call(port, method, path, token, body)
            if status < 500 and status != 429:
                return status, found
        except (OSError, http.client.HTTPException):
            pass
        if time.monotonic() > end:
            raise TimeoutError(path)
        time.sleep(0.2)


def read(cluster, path):
    """Reads through HAProxy until there is a response without a fault."""
    return settled(cluster.port, "GET", path, cluster.key)


def all_pages(cluster, path):
    """Returns the records of all pages of a list."""
    records, cursor = [], ""
    while True:
        separator = "&" if "?" in path else "?"
        status, page = read(cluster, f"{path}{separator}limit=100{cursor}")
        assert status == 200, (path, page)
        records += page["data"]
        pagination = page.get("pagination") or page
        following = pagination.get("nextCursor") or pagination.get("cursor")
        if not following:
            return records
        cursor = f"&cursor={following}"


def feed(cluster):
    """Returns all events of the change feed."""
    source = (fresh_address(), 0)
    connection = http.client.HTTPConnection("127.0.0.1", cluster.nodes[0].port + 2, timeout=60, source_address=source)
    connection.request("GET", "/api/v1/events?follow=false&lastEventId=0", headers={"authorization": f"Bearer {cluster.key}"})
    return list(read_events(connection.getresponse()))
