"""What the Python tests share to start servers: ports, users, and waiting."""

import os
import pwd
import secrets
import socket
import time

# Seconds after which a server is taken for dead. Much longer than any start takes.
START_TIMEOUT = 120

# The ports that are chosen, and may not be in use yet.
chosen = set()


def free_ports(count=1):
    """Returns the first of `count` free ports in a row.

    They are below the range that the system uses for outgoing connections: a port of that range can be taken by a connection
    before the server listens on it.
    """
    while True:
        first = 20000 + secrets.randbelow(12000)
        row = range(first, first + count)
        if not chosen.isdisjoint(row):
            continue
        try:
            for port in row:
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        chosen.update(row)
        return first


def unprivileged():
    """Returns the arguments of `Popen` that start a program as a user that is not root, which servers such as Postgres require."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def wait_until(condition, what):
    """Waits until `condition` returns a true value, and returns it."""
    end = time.monotonic() + START_TIMEOUT
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise TimeoutError(what)


def accepts_connections(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=2).close()
        return True
    except OSError:
        return False
