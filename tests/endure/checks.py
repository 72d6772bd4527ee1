"""The checks of a recorded history, after the faults have ended."""

import collections
import time

from billing import DEBTORS, check_billing
from clients import call
from deploys import check_deployments
from limits import check_limits
from people import check_people
from reading import SETTLE_TIMEOUT, all_pages, feed, read

RESOURCES = 6
# The number of lost leases after which a job fails, because it may be what ends its workers.
LOST_LEASES = 5
# The least acknowledged work in ten minutes, far below that of a slow machine. Other runs must do their share.
LEAST_WORK = {
    "platforms": 300, "jobs": 40, "reads": 1000, "users": 40, "sessions": 20, "suspensions": 10, "restorations": 5,
    "deployments": 20, "subscribers": 20, "generated invoices": 10, "events": 1000, "rounds": 10,
}
# With cells.
LEAST_MOVES = 10


def check_platforms(cluster, history):
    """Each acknowledged platform exists, and no slug twice."""
    stored = all_pages(cluster, "/api/v1/platforms")
    slugs = collections.Counter(platform["slug"] for platform in stored)
    ids = {platform["slug"]: platform["id"] for platform in stored}
    for slug, count in slugs.items():
        if count > 1:
            history.add_doubled(f"platform {slug} exists {count} times")
    for slug, platform in history.platforms.items():
        if ids.get(slug) != platform:
            history.add_lost(f"acknowledged platform {slug} is lost: {platform}, {ids.get(slug)}")
    history.counts["platforms"] = len(history.platforms)


def replay(cluster, history, job):
    """Replays a job that has failed because each of its workers was killed. An operator has to do that."""
    path = f"/api/v1/provisioning/dlq/{job['dlqEntryId']}/replay"
    status, found = call(cluster.port, "POST", path, cluster.key, {})
    if status >= 300:
        history.violation(f"replay of {job['jobId']}: {status} {found}")
    history.count("replayed jobs")


def ended_job(cluster, history, job):
    """Waits until a job has ended, and replays it at most once."""
    end = time.monotonic() + SETTLE_TIMEOUT
    is_replayed = False
    while True:
        status, found = read(cluster, f"/api/v1/provisioning/jobs/{job}")
        if status != 200 or time.monotonic() > end:
            return status, found
        if found["status"] == "FAILED" and found["lostLeases"] >= LOST_LEASES and not is_replayed:
            replay(cluster, history, found)
            is_replayed = True
        elif found["status"] in ("COMPLETED", "FAILED"):
            return status, found
        time.sleep(0.2)


def check_jobs(cluster, history):
    """Each acknowledged job completes, and its platform has each resource once."""
    results = collections.Counter()
    for job, platform in history.jobs.items():
        status, found = ended_job(cluster, history, job)
        if status != 200:
            history.add_lost(f"acknowledged job {job}: {status} {found}")
            continue
        results[found["status"]] += 1
        results["with lost leases"] += found["lostLeases"] > 0
        if found["status"] != "COMPLETED":
            history.violation(f"job {job}: {found}")
            continue
        resources = all_pages(cluster, f"/api/v1/platforms/{platform}/resources")
        names = {resource["cfName"] for resource in resources}
        if len(resources) != RESOURCES or len(names) != RESOURCES:
            history.add_doubled(f"platform {platform} has resources {sorted(names)}")
    history.counts["jobs"] = len(history.jobs)
    history.notes.append(f"provisioning jobs: {dict(results)}")


def check_events(cluster, history):
    """A follower received each event once and in order, and each platform has one event of its creation. Returns the data of
    all events."""
    created = "platform.created"
    end = time.monotonic() + SETTLE_TIMEOUT
    while True:
        stored = feed(cluster)
        known = collections.Counter(data["entityId"] for _, data in stored if data["type"] == created)
        if all(platform in known for platform in history.platforms.values()) or time.monotonic() > end:
            break
        time.sleep(0.5)
    for slug, platform in history.platforms.items():
        if known[platform] != 1:
            add = history.add_doubled if known[platform] else history.add_lost
            add(f"{known[platform]} events of the creation of {slug}")
    received = history.events
    if not received:
        history.violation("the follower received no event")
    if received != stored[: len(received)]:
        first = next(at for at, pair in enumerate(zip(received, stored)) if pair[0] != pair[1])
        history.violation(f"event {first} of the follower: {received[first]}, stored: {stored[first]}")
    history.counts["events"] = len(received)
    return [data for _, data in stored]


def check_cells(cluster, history):
    """Each platform is in at most one cell beside home, and every change of several databases has ended."""
    stored = collections.Counter(platform for cell in cluster.cells for platform in cell.texts("SELECT id FROM platforms"))
    for platform, count in stored.items():
        if count > 1:
            history.violation(f"the platform {platform} is in {count} cells")
    if history.pauses:
        pauses = sorted(history.pauses)
        history.notes.append(f"{len(pauses)} moves; changes waited {pauses[len(pauses) // 2]} ms (median), {pauses[-1]} ms (longest)")
    for cell in cluster.cells:
        platforms = cell.number("SELECT count(*) FROM platforms")
        if platforms == 0:
            history.violation(f"{cell.name} has no platforms")
        history.notes.append(f"{cell.name}: {platforms} platforms")
        end = time.monotonic() + SETTLE_TIMEOUT
        while prepared := cell.number("SELECT count(*) FROM pg_prepared_xacts"):
            if time.monotonic() > end:
                history.violation(f"{cell.name} has {prepared} changes that nobody has decided")
                break
            time.sleep(0.5)


def check_work(cluster, history, minutes):
    """Each kind of client had work acknowledged, so that the checks before had something to check."""
    done = {
        **history.counts,
        "subscribers": len(history.payers) - DEBTORS,
        "rounds": len(history.rounds),
    }
    least = {**LEAST_WORK, "moves": LEAST_MOVES if cluster.cells else 0}
    for what, number in least.items():
        needed = int(number * minutes / 10)
        if done.get(what, 0) < needed:
            history.violation(f"{done.get(what, 0)} {what} in {minutes} minutes, at least {needed} expected")


def check(cluster, history, minutes):
    """Runs all checks of a run of this length, and adds what they find to the violations."""
    cluster.wait_for_nodes()
    check_platforms(cluster, history)
    check_people(cluster, history)
    check_jobs(cluster, history)
    check_billing(cluster, history)
    check_deployments(cluster, history, check_events(cluster, history))
    check_limits(history)
    check_cells(cluster, history)
    check_work(cluster, history, minutes)
    for line in cluster.internal_errors():
        history.violation(f"internal error: {line[:500]}")
