"""The processes of a cluster: etcd, Patroni, HAProxy, Redis, a fake of Stripe and three nodes of core-server."""

import glob
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import socketserver
import subprocess
import tempfile
import threading
import time
import urllib.request

import stripe
from servers import START_TIMEOUT, accepts_connections, free_ports, unprivileged, wait_until

PACKAGING = pathlib.Path("examples/server/packaging/cluster")
PASSWORD = "sesame"
NODES = 3
# The leases of jobs are short, so that a killed node delays them little. Nodes with one Stripe account divide its limits.
SETTINGS = [
    part
    for setting in (
        "worker.lease=5s",
        "billing.test_clock=true",
        "billing.tick_every=2s",
        "stripe.requests=33",
        "stripe.endpoint_requests=8",
    )
    for part in ("--set", f"settings.{setting}")
]


def responds(url):
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return response.status == 200
    except OSError:
        return False


class Proxy:
    """Forwards connections to a port. It can delay all that they send, or drop the responses."""

    def __init__(self, target):
        self.target = target
        self.swallows = threading.Event()
        self.drops = threading.Event()
        proxy = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                proxy.forward(self.request)

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def forward(self, client):
        try:
            server = socket.create_connection(("127.0.0.1", self.target), timeout=5)
        except OSError:
            return
        server.settimeout(None)
        back = threading.Thread(target=self.pump, args=(server, client, True), daemon=True)
        back.start()
        self.pump(client, server)
        back.join()
        server.close()

    def pump(self, source, target, has_responses=False):
        while True:
            try:
                data = source.recv(65536)
                while self.swallows.is_set():
                    time.sleep(0.05)
                if not data or (has_responses and self.drops.is_set()):
                    break
                target.sendall(data)
            except OSError:
                break
        for side in (source, target):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Database:
    """A node of Postgres under Patroni."""

    def __init__(self, cluster, name, etcd_port):
        self.cluster = cluster
        self.data = cluster.folder / name
        self.port = free_ports(1)
        self.rest_port = free_ports(1)
        self.proxy = Proxy(self.port)
        address, rest = f"127.0.0.1:{self.port}", f"127.0.0.1:{self.rest_port}"
        self.environment = {
            "PATRONI_NAME": name,
            "PATRONI_ETCD3_HOSTS": f"127.0.0.1:{etcd_port}",
            "PATRONI_RESTAPI_LISTEN": rest,
            "PATRONI_RESTAPI_CONNECT_ADDRESS": rest,
            "PATRONI_POSTGRESQL_LISTEN": address,
            "PATRONI_POSTGRESQL_CONNECT_ADDRESS": address,
            "PATRONI_POSTGRESQL_DATA_DIR": str(self.data),
            "PATRONI_POSTGRESQL_BIN_DIR": sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1],
            "PATRONI_POSTGRESQL_PGPASS": f"{self.data}.pgpass",
            "PATRONI_SUPERUSER_PASSWORD": PASSWORD,
            "PATRONI_REPLICATION_PASSWORD": PASSWORD,
            "PATRONI_REWIND_PASSWORD": PASSWORD,
            "CORE_DATABASE_PASSWORD": PASSWORD,
        }
        self.start()

    def start(self):
        """Starts Patroni, which starts Postgres."""
        command = [shutil.which("patroni"), str(self.cluster.folder / "patroni.yml")]
        self.patroni = self.cluster.spawn(command, self.data.name, environment=self.environment)

    def has_role(self, role):
        """Asks Patroni whether the node is `primary` or `sync`."""
        return responds(f"http://127.0.0.1:{self.rest_port}/{role}")

    def postmaster(self):
        """Returns the id of the process of Postgres, or `None` if there is none. One that recovers has a negative number."""
        try:
            return abs(int((self.data / "postmaster.pid").read_text().split()[0]))
        except (OSError, ValueError, IndexError):
            return None

    def crash(self):
        """Ends all processes of Postgres, as `pg_ctl stop -m immediate` does. Patroni starts it again, or another node takes over."""
        return send_signal(self.postmaster(), signal.SIGQUIT)

    def lose(self):
        """Ends Patroni and Postgres like a failure of the machine."""
        self.patroni.kill()
        self.patroni.wait()
        postmaster = self.postmaster()
        if not send_signal(postmaster, signal.SIGSTOP):
            return
        try:
            children = pathlib.Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        except OSError:
            children = []
        for process in [postmaster, *map(int, children)]:
            send_signal(process, signal.SIGKILL)


class Cell:
    """The database of a cell: a Postgres server without a standby."""

    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.data = cluster.folder / name
        self.port = free_ports(1)
        self.programs = pathlib.Path(sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1])
        initdb = [self.programs / "initdb", "-D", self.data, "-U", "core", "-A", "trust", "-E", "UTF8", "--locale=C"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd=cluster.folder, **unprivileged())
        self.start()
        wait_until(lambda: accepts_connections(self.port), name)

    def start(self):
        command = [self.programs / "postgres", "-D", self.data, "-h", "127.0.0.1", "-p", str(self.port), "-k", self.cluster.folder]
        settings = ["-c", "max_connections=200", "-c", "max_prepared_transactions=100"]
        self.process = self.cluster.spawn([*command, *settings], self.name)

    def url(self):
        return f"postgres://core@127.0.0.1:{self.port}/postgres"

    def stop(self):
        """Ends all processes of Postgres, as `pg_ctl stop -m immediate` does."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def crash(self):
        """Ends all processes of Postgres, and starts it again."""
        self.stop()
        self.start()

    def texts(self, query):
        """Returns the texts that a query returns, one a row."""
        psql = [self.programs / "psql", "-qAtX", "-c", query, self.url()]
        return subprocess.run(psql, check=True, capture_output=True, text=True).stdout.split()

    def number(self, query):
        """Returns the number that a query returns."""
        return int(self.texts(query)[0])


def send_signal(process, number):
    """Sends a signal to a process. Returns whether the process exists."""
    try:
        os.kill(process, number)
    except (ProcessLookupError, TypeError):
        return False
    return True


class Node:
    """A process of core-server."""

    def __init__(self, cluster, number, server):
        self.cluster = cluster
        self.name = f"node{number}"
        self.server = server
        self.port = free_ports(11)
        self.process = None
        # The number of processes so far. Each counts in its own memory while Redis is away.
        self.generation = 0

    def url(self, service="gateway"):
        services = ["gateway", "iam", "registry", "provisioning"]
        return f"http://127.0.0.1:{self.port + services.index(service)}"

    def start(self):
        command = [self.server, "--base-port", str(self.port), "--data", str(self.cluster.data), *SETTINGS]
        self.generation += 1
        self.process = self.cluster.spawn(command, self.name, environment=self.cluster.environment)

    def fallbacks(self):
        """Returns how often the present process has counted a request in its memory, or `None` if it does not respond."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port + 9}/metrics", timeout=2) as response:
                text = response.read().decode()
        except OSError:
            return None
        return int(float(re.search(r"^core_rate_limiter_fallbacks_total (\S+)$", text, re.M)[1]))

    def is_ready(self):
        return responds(f"{self.url()}/readyz")


class Cluster:
    """All processes. Leaving the context ends them and removes their files."""

    def __init__(self, server, cells):
        self.server = os.path.abspath(server)
        self.number_of_cells = cells
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="core-endure-"))
        self.data = self.folder / "data"
        self.processes = []
        self.is_ending = False

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            print(self.log_tail())
            self.end()
            raise
        return self

    def __exit__(self, *_):
        self.end()

    def spawn(self, command, name, environment=None):
        """Starts a program as a user that is not root, with its output in a file."""
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                env={**os.environ, "HOME": str(self.folder), **(environment or {})}, **unprivileged(),
            )
        self.processes.append(process)
        return process

    def start(self):
        self.folder.chmod(0o755)
        self.data.mkdir()
        for file in ("patroni.yml", "create-database"):
            text = (PACKAGING / "postgres" / file).read_text()
            copy = self.folder / file
            copy.write_text(text.replace("/etc/patroni/create-database", str(self.folder / "create-database")))
            copy.chmod(0o755)
        if os.geteuid() == 0:
            for path in [self.folder, *self.folder.iterdir()]:
                shutil.chown(path, "postgres", "postgres")
        etcd_port = self.start_etcd()
        self.databases = [Database(self, f"db{number}", etcd_port) for number in (1, 2)]
        self.cells = [Cell(self, f"cell-{number}") for number in range(1, self.number_of_cells + 1)]
        self.redis_times = []
        self.start_redis()
        self.start_stripe()
        wait_until(self.standby, "a synchronous standby")
        self.start_nodes()
        self.start_haproxy()

    def start_etcd(self):
        port, peer_port = free_ports(1), free_ports(1)
        client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
        command = [shutil.which("etcd"), "--data-dir", str(self.folder / "etcd")]
        command += ["--listen-client-urls", client, "--advertise-client-urls", client]
        command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        self.spawn([*command, "--initial-cluster", f"default={peer}"], "etcd")
        return port

    def start_redis(self):
        self.redis_port = getattr(self, "redis_port", None) or free_ports(1)
        command = [shutil.which("redis-server"), "--port", str(self.redis_port), "--bind", "127.0.0.1", "--save", ""]
        self.redis = self.spawn(command, "redis")
        self.redis_times.append([time.monotonic(), None])

    def stop_redis(self):
        self.redis.kill()
        self.redis.wait()
        self.redis_times[-1][1] = time.monotonic()

    def start_stripe(self):
        """Starts the fake of Stripe, whose clock is as far ahead as that of billing will be."""
        program = os.path.join(os.path.dirname(self.server), "core-stripe-fake")
        self.stripe = stripe.Account(free_ports(1))
        now = int(time.time()) + stripe.AHEAD
        self.spawn([program, str(self.stripe.port), str(now)], "stripe")
        self.stripe_proxy = Proxy(self.stripe.port)

    def start_nodes(self):
        hosts = ",".join(f"127.0.0.1:{database.proxy.port}" for database in self.databases)
        self.key = secrets.token_hex(16)
        self.environment = {
            "AUTH_API_KEY": self.key,
            "CORE_SECRET": secrets.token_hex(32),
            "CORE_MASTER_KEY": secrets.token_hex(32),
            "DATABASE_URL": f"postgres://core:{PASSWORD}@{hosts}/core",
            "REDIS_URL": f"redis://127.0.0.1:{self.redis_port}/0",
            "STRIPE_SECRET_KEY": stripe.SECRET_KEY,
            "STRIPE_WEBHOOK_SECRET": stripe.WEBHOOK_SECRET,
            "STRIPE_API_BASE_URL": f"http://127.0.0.1:{self.stripe_proxy.port}",
            # HAProxy names its clients.
            "CORE_TRUSTED_PROXIES": "127.0.0.1",
            "RUST_LOG": os.environ.get("RUST_LOG", "warn"),
        }
        if self.cells:
            file = self.folder / "cells.toml"
            tables = [f'[[cell]]\nname = "{cell.name}"\ndatabase_url = "{cell.url()}"\n' for cell in self.cells]
            file.write_text("home_takes_new_platforms = true\n" + "".join(tables))
            self.environment["CORE_CELLS"] = str(file)
        # The ports of HAProxy, which clients use.
        self.port = free_ports(6)
        self.environment["CORE_IAM_PUBLIC_URL"] = f"http://127.0.0.1:{self.port + 1}"
        self.environment["CORE_BILLING_PUBLIC_URL"] = f"http://127.0.0.1:{self.port + 5}"
        self.nodes = [Node(self, number, self.server) for number in range(1, NODES + 1)]
        for node in self.nodes:
            node.start()
        threading.Thread(target=self.supervise, daemon=True).start()
        self.wait_for_nodes()

    def supervise(self):
        """Restarts nodes that have ended, as a service manager does. A node ends if it starts while there is no database."""
        while not self.is_ending:
            for node in self.nodes:
                if node.process.poll() is not None and not self.is_ending:
                    node.start()
            time.sleep(0.5)

    def wait_for_nodes(self):
        wait_until(lambda: all(node.is_ready() for node in self.nodes), "three nodes that are ready")

    def start_haproxy(self):
        """Starts HAProxy with the example, for the addresses of this machine."""
        text = (PACKAGING / "haproxy.cfg").read_text()
        text = text.replace(" resolvers dns\n", "\n").replace("resolvers dns\n    parse-resolv-conf\n    hold valid 5s\n", "")
        # An unprivileged user may open fewer files.
        text = text.replace("maxconn 20000", "maxconn 400")
        for offset in (0, 1, 5):
            text = text.replace(f"bind :{8080 + offset}", f"bind 127.0.0.1:{self.port + offset}")
            for node in self.nodes:
                text = text.replace(f" {node.name}:{8080 + offset}", f" 127.0.0.1:{node.port + offset}")
        file = self.folder / "haproxy.cfg"
        file.write_text(text)
        self.spawn([shutil.which("haproxy"), "-db", "-f", str(file)], "haproxy")
        wait_until(lambda: responds(f"http://127.0.0.1:{self.port}/readyz"), "HAProxy")
        self.stripe.send_webhooks(self.port + 5, "/webhooks/stripe")

    def run(self, *arguments, timeout=START_TIMEOUT):
        """Runs a command of core-server on the database of the nodes. Returns the exit status and the output."""
        done = subprocess.run(
            [self.server, "--data", str(self.data), *arguments], capture_output=True, text=True, cwd=self.folder,
            env={**os.environ, **self.environment}, timeout=timeout, **unprivileged(),
        )
        return done.returncode, done.stdout + done.stderr

    def primary(self):
        return next((one for one in self.databases if one.has_role("primary")), None)

    def standby(self):
        return next((one for one in self.databases if one.has_role("sync")), None)

    def log_tail(self):
        """Returns the last lines of each log, for a failure."""
        tails = []
        for file in sorted(self.folder.glob("*.log")):
            lines = [line[:300] for line in file.read_text(errors="replace").splitlines()[-5:]]
            tails += [f"== {file.name}", *lines]
        return "\n".join(tails)

    def internal_errors(self):
        """Returns the lines of the nodes' logs about errors that are no outage of another program."""
        lines = [line for file in sorted(self.folder.glob("node*.log")) for line in file.read_text(errors="replace").splitlines()]
        return [line for line in lines if '"INTERNAL_ERROR"' in line or "panicked" in line]

    def end(self):
        self.is_ending = True
        time.sleep(1)
        for database in getattr(self, "databases", []):
            database.lose()
        for process in reversed(self.processes):
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
