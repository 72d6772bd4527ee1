"""The faults of a run."""

import time

from servers import wait_until


def kill_node(cluster, random):
    """Kills a node of core-server, which is then restarted."""
    node = random.choice(cluster.nodes)
    node.process.kill()
    return f"killed {node.name}"


def stop_redis(cluster, _):
    """Ends Redis for some seconds. All that it stored is lost."""
    cluster.stop_redis()
    time.sleep(4)
    cluster.start_redis()
    return "stopped Redis for 4 s"


def crash_postgres(cluster, _):
    """Crashes the primary. Patroni restarts it, or the standby takes over."""
    primary = cluster.primary()
    if primary is None or not primary.crash():
        return None
    return f"crashed {primary.data.name}"


def swallow_packets(cluster, _):
    """Delays all packets between the nodes and the primary for some seconds."""
    primary = cluster.primary()
    if primary is None:
        return None
    primary.proxy.swallows.set()
    time.sleep(6)
    primary.proxy.swallows.clear()
    return f"swallowed the packets of {primary.data.name} for 6 s"


def lose_charges(cluster, _):
    """Drops the responses of the payment provider for some seconds. What was asked for has happened there."""
    cluster.stripe_proxy.drops.set()
    time.sleep(3)
    cluster.stripe_proxy.drops.clear()
    return "dropped the responses of Stripe for 3 s"


def crash_cell(cluster, random):
    """Crashes the database of a cell, and starts it again."""
    if not cluster.cells:
        return None
    cell = random.choice(cluster.cells)
    cell.crash()
    return f"crashed {cell.name}"


def stop_cell(cluster, random):
    """Ends the database of a cell for some seconds, and counts the platforms that are created in the other cells meanwhile."""
    if not cluster.cells:
        return None
    cell = random.choice(cluster.cells)
    others = [other for other in cluster.cells if other is not cell]

    def count():
        return sum(other.number("SELECT count(*) FROM platforms") for other in others)

    cell.stop()
    # Until the nodes have noticed it.
    time.sleep(5)
    before = count()
    time.sleep(8)
    created = count() - before
    cell.start()
    return f"stopped {cell.name} for 13 s; {created} platforms were created in the other cells in the last 8 s"


def lose_primary(cluster, _):
    """Ends the primary and its Patroni for good; the standby is promoted. The old primary returns as a standby."""
    primary, standby = cluster.primary(), cluster.standby()
    if primary is None or standby is None or primary is standby:
        return None
    primary.lose()
    since = time.monotonic()
    wait_until(lambda: standby.has_role("primary"), f"the promotion of {standby.data.name}")
    took = time.monotonic() - since
    primary.start()
    return f"lost {primary.data.name}; {standby.data.name} was promoted after {took:.1f} s"


# Faults of nodes are the most frequent. Each other fault affects the whole cluster, and leaves time to recover.
COMMON = [kill_node] * 6 + [stop_redis] * 2 + [lose_charges]
RARE = [crash_postgres, swallow_packets]
# Only with cells.
OF_CELLS = [crash_cell, stop_cell]


def inject(cluster, random, seconds, log):
    """Injects faults for this time. The primary is lost once, in the middle."""
    end = time.monotonic() + seconds
    lost_at = time.monotonic() + seconds / 2
    rare_at = time.monotonic() + 10
    is_lost = False
    while time.monotonic() < end:
        if not is_lost and time.monotonic() > lost_at:
            fault = lose_primary
            # If there is no standby now, other faults go on until there is one.
            lost_at = time.monotonic() + 10
        elif time.monotonic() > rare_at:
            fault = random.choice(RARE + (OF_CELLS if cluster.cells else []))
            rare_at = time.monotonic() + random.uniform(25, 45)
        else:
            fault = random.choice(COMMON)
        done = fault(cluster, random)
        if done:
            is_lost |= fault is lose_primary
            log(done)
        time.sleep(random.uniform(2, 6))
