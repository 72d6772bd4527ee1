"""Measures a year of growth. See `run`."""

import argparse
import os
import pathlib
import shutil
import signal
import statistics
import sys
import tempfile
import time
import traceback

import growth
import measure
import report
import world
from processes import Postgres, Server

# Sweeps and background tasks are measured this often.
ROUNDS = 3


def main():
    parser = argparse.ArgumentParser(prog="tests/growth/run")
    parser.add_argument("gigabytes", nargs="?", type=float, default=1)
    parser.add_argument("--server", required=True)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--only", help="measures only the requests whose name contains one of these texts, separated by commas")
    parser.add_argument("--keep", action="store_true", help="waits at the end until Enter is pressed, with all processes running")
    arguments = parser.parse_args()
    began = time.monotonic()
    # The processes end with this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    def log(text):
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)

    folder = pathlib.Path(tempfile.mkdtemp(prefix="core-growth-"))
    folder.chmod(0o755)
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    postgres = Postgres(folder, arguments.postgres)
    program = folder / "core-server"
    shutil.copy(arguments.server, program)
    servers = [Server(folder, program, postgres, name) for name in ("small", "grown")]
    try:
        postgres.start()
        return run(postgres, servers, arguments, log)
    except BaseException:
        for server in servers:
            if server.process:
                print(server.log_tail())
        if arguments.keep:
            traceback.print_exc()
            wait(postgres, servers)
        raise
    finally:
        for server in servers:
            server.stop()
        postgres.end()
        shutil.rmtree(folder, ignore_errors=True)


def run(postgres, servers, arguments, log):
    small, grown = servers
    postgres.run("postgres", "CREATE DATABASE small")
    small.start()
    postgres.run("small", growth.FUNCTIONS)
    tenants, lanes = world.make(small)
    growth.add_dead_letters(postgres, "small", 30)
    # The last changes are sealed and metered.
    time.sleep(12)
    small.stop()
    log("the small installation is made")
    postgres.run("postgres", "CREATE DATABASE grown TEMPLATE small; CREATE EXTENSION pg_stat_statements")
    shutil.copytree(small.data, grown.data)
    if os.geteuid() == 0:
        for path in [grown.data, *grown.data.rglob("*")]:
            shutil.chown(path, "postgres", "postgres")
    entries = growth.Growth(postgres, "grown", tenants, arguments.gigabytes, log).generate()
    postgres.run("small", "VACUUM (ANALYZE)")
    log(f"a year of growth is generated, with {entries:,} audit entries")
    report.sizes(postgres, "grown")
    sides = [measure.Side(server.database, server, tenants, lanes) for server in servers]
    findings = []

    findings += sweeps(postgres, servers, log)
    report.heading("Requests")
    wanted = [kind for kind in measure.KINDS if not arguments.only or any(text in kind.name for text in arguments.only.split(","))]
    table = report.Requests()
    for kind in wanted:
        costs = measure.measure(postgres, sides, kind)
        if table.ratio(costs) > measure.LIMIT:
            # Other programs may have disturbed the first measurement.
            costs = min(costs, measure.measure(postgres, sides, kind, 2 * kind.rounds), key=table.ratio)
        table.add(kind, costs)
        if table.ratio(costs) > measure.LIMIT:
            findings.append(kind.name)
        if table.ratio(costs) > measure.LIMIT or table.reads_more(costs):
            report.statements(costs)
            plans = postgres.plans("grown", lambda: (kind.prepare and kind.prepare(sides[1]), kind.send(sides[1])))
            for plan in plans[:1]:
                print(plan[:5000], flush=True)
    table.end()
    jobs(postgres, sides)
    metering(postgres, sides[1])
    report.memory(servers)
    log(f"done: {len(findings)} findings: {'; '.join(findings)}")
    if arguments.keep:
        wait(postgres, servers)
    return 1 if findings else 0


def wait(postgres, servers):
    """Waits until Enter is pressed."""
    print(f"{postgres.url('grown')}, ports {[server.port for server in servers if server.process]}, {postgres.folder}", flush=True)
    sys.stdin.readline()


def sweeps(postgres, servers, log):
    """Starts each server with the same numbers of old records, which it removes at its start, several times in turn. Then both idle."""
    durations = {server.database: [] for server in servers}
    found = []
    for _ in range(ROUNDS):
        postgres.statements()
        for server in servers:
            left = growth.add_old_records(postgres, server.database)
            server.stop()
            began = time.monotonic()
            server.start()
            while postgres.value(server.database, left) != "0":
                assert time.monotonic() < began + 300, "the old records are not removed"
                time.sleep(0.2)
            durations[server.database].append(time.monotonic() - began)
        found.append(postgres.statements())
        # Otherwise the dead rows of the sweep would slow down the measurements that follow.
        for server in servers:
            postgres.run(server.database, f"VACUUM (ANALYZE) {', '.join([*growth.SWEPT, 'job_events'])}")
    report.heading("Sweeps of old records after the start")
    print(", ".join(f"{name}: {min(seconds):.1f} s" for name, seconds in durations.items()), "\n")
    findings = report.sweep(found)
    log("old records are removed")
    found = []
    for _ in range(ROUNDS):
        postgres.statements()
        time.sleep(30)
        found.append(postgres.statements())
    report.heading("Without requests: due queues, timers, metrics")
    return findings + report.compare(found)


def jobs(postgres, sides):
    report.heading("Jobs")
    rates = {side.name: [] for side in sides}
    for _ in range(3):
        for side in sides:
            rates[side.name].append(measure.drain(postgres, side, 96))
    for name, measured in rates.items():
        rate = statistics.median(rate for rate, _ in measured)
        server, database = (statistics.median(cpu[i] for _, cpu in measured) for i in (0, 1))
        print(f"{name}: {rate:.0f} jobs/s in 16 lanes, processor time of a job: core-server {server:.0f} us, Postgres {database:.0f} us")
    report.heading("Requests of 8 clients to the grown installation")
    print("| request | a second | server: us | Postgres: us |\n|---|---|---|---|")
    for kind in measure.LOADS:
        rate, (server, database) = measure.load(postgres, sides[1], kind, 5)
        print(f"| {kind.name} | {rate:.0f} | {server:.0f} | {database:.0f} |", flush=True)


def metering(postgres, side):
    """Prints how many usage events a platform gets that has requests all the time."""
    report.heading("Usage events of a platform with requests all the time")
    number = f"SELECT count(*) FROM usage_events WHERE platform_id = '{side.small.platform}'"
    before, began = int(postgres.value(side.name, number)), time.monotonic()
    while time.monotonic() < began + 60:
        side.server.get("gateway", f"/api/v1/platforms/{side.small.platform}", token=side.small.token)
        time.sleep(1)
    print(f"{int(postgres.value(side.name, number)) - before} in a minute")


sys.exit(main())
