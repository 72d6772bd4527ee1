"""Runs a cluster under load and faults. See `run`."""

import argparse
import random
import sys
import threading
import time

from billing import Debtor, Subscriber, prepare
from checks import check
from clients import Follower, History, Reader, Writer
from cluster import Cluster
from deploys import Deployer
from faults import inject
from limits import Flooder
from moves import MOVERS, Mover
from people import Person, Tenant

CLIENTS = [
    *[Writer] * 4, *[Reader] * 4, *[Person] * 4, *[Tenant] * 2, *[Deployer] * 3, *[Subscriber] * 6, Debtor, *[Flooder] * 2, Follower, *[Mover] * MOVERS,
]


def main():
    parser = argparse.ArgumentParser(prog="tests/endure/run")
    parser.add_argument("minutes", nargs="?", type=float, default=1)
    parser.add_argument("seed", nargs="?", type=int, default=7)
    parser.add_argument("--server", required=True)
    parser.add_argument("--cells", type=int, default=0, help="databases beside home, over which platforms are spread")
    arguments = parser.parse_args()
    began = time.monotonic()

    def log(text):
        print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True)

    history, stop = History(), threading.Event()
    with Cluster(arguments.server, arguments.cells) as cluster:
        log("the cluster is ready")
        prepare(cluster, history, Debtor(cluster, history, stop, arguments.seed))
        log("the debtors are ready")
        history.last_write = time.monotonic()
        clients = [kind(cluster, history, stop, f"{arguments.seed}-{number}") for number, kind in enumerate(CLIENTS)]
        for client in clients:
            client.start()
        inject(cluster, random.Random(arguments.seed), arguments.minutes * 60, log)
        # Everything recovers under load.
        time.sleep(20)
        stop.set()
        for client in clients:
            client.join()
        log("the load has ended")
        check(cluster, history, arguments.minutes)
        if history.violations:
            print(cluster.log_tail())
    log(f"done: {dict(history.counts)}")
    print(f"acknowledged writes: {history.writes.total()} {dict(history.writes)}")
    print(f"longest time without a write: {history.longest_pause:.1f} s")
    for error, count in history.errors.most_common():
        print(f"  {count:6}  {error}")
    for note in history.notes:
        print(note)
    for violation in history.violations[:20]:
        print(f"VIOLATION  {violation[:1500]}")
    print(f"lost: {history.lost}, doubled: {history.doubled}")
    print(f"seed {arguments.seed}: {len(history.violations)} violations")
    return 1 if history.violations else 0


sys.exit(main())
