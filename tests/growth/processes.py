"""The processes of a measurement: PostgreSQL, and core-server on one of its databases."""

import csv
import http.client
import io
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import threading
import time

from servers import free_ports, unprivileged, wait_until

KEY = "open-sesame-open-sesame"
# All nodes of an installation have the same secret.
SECRET = secrets.token_hex(32)
# Rates that the requests do not reach.
LIMITS = [
    f"settings.gateway.rates.{kind}={{ requests = 1000000000, window = \"1m\" }}"
    for kind in ("default", "strict", "client", "authentication")
]
SERVICES = ["gateway", "iam", "registry", "provisioning", "cli", "billing", "stacks"]


def cpu_times(pids):
    """Returns the processor time of each thread of these processes, in nanoseconds."""
    times = {}
    for pid in pids:
        for file in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                times[file] = int(file.read_text().split()[0])
            except (OSError, ValueError, IndexError):
                # The thread has ended.
                pass
    return times


def cpu_between(before, after):
    """Returns the processor time between two results of `cpu_times`, in seconds. Threads that ended meanwhile do not count."""
    return sum(time - before.get(thread, 0) for thread, time in after.items()) / 1e9


class Postgres:
    """A PostgreSQL server whose commits are flushed to the disk."""

    SETTINGS = {
        "shared_preload_libraries": "pg_stat_statements,auto_explain", "pg_stat_statements.max": "10000", "pg_stat_statements.track_utility": "off",
        "shared_buffers": "2GB", "effective_cache_size": "8GB", "maintenance_work_mem": "512MB", "work_mem": "16MB",
        "max_wal_size": "8GB", "checkpoint_timeout": "15min", "max_connections": "100", "random_page_cost": "1.1",
        "wal_level": "minimal", "max_wal_senders": "0", "fsync": "on", "jit": "off", "autovacuum_naptime": "20s",
        "log_line_prefix": "%d ",
    }

    def __init__(self, folder, programs):
        self.folder = folder
        self.data = folder / "postgres"
        self.programs = pathlib.Path(programs)
        self.port = free_ports()

    def start(self):
        self.data.mkdir()
        if os.geteuid() == 0:
            shutil.chown(self.data, "postgres", "postgres")
        initdb = [self.programs / "initdb", "-D", self.data, "-U", "core", "-A", "trust", "-E", "UTF8", "--locale=C"]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, **unprivileged())
        with open(self.data / "postgresql.conf", "a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in self.SETTINGS.items())
        command = [self.programs / "postgres", "-D", self.data, "-h", "127.0.0.1", "-p", str(self.port), "-k", self.data]
        with open(self.folder / "postgres.log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, **unprivileged())
        is_ready = [self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        wait_until(lambda: subprocess.run(is_ready).returncode == 0, "PostgreSQL")

    def url(self, database):
        return f"postgres://core@127.0.0.1:{self.port}/{database}"

    def run(self, database, sql):
        """Runs SQL. Returns the rows of its last query as dictionaries of texts; `None` is a NULL."""
        command = [self.programs / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "--csv", "-P", "null=\x01", "-d", self.url(database)]
        ran = subprocess.run(command, input=sql, capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError(f"{ran.stderr.strip()}\n{sql[:2000]}")
        rows = csv.DictReader(io.StringIO(ran.stdout))
        return [{name: None if value == "\x01" else value for name, value in row.items()} for row in rows]

    def value(self, database, sql):
        """Returns the only value of a query as text."""
        (row,) = self.run(database, sql)
        (value,) = row.values()
        return value

    def set(self, **settings):
        """Changes settings that need no restart. `None` restores the value of the command line."""
        for name, value in settings.items():
            self.run("postgres", f"ALTER SYSTEM SET {name} = '{value}'" if value is not None else f"ALTER SYSTEM RESET {name}")
        self.run("postgres", "SELECT pg_reload_conf()")

    def sessions(self, database):
        """Returns the ids of the processes that serve the connections to a database."""
        rows = self.run("postgres", f"SELECT pid FROM pg_stat_activity WHERE datname = '{database}' AND backend_type = 'client backend'")
        return [int(row["pid"]) for row in rows]

    def statements(self):
        """Returns the statistics of all statements since the last call, and resets them."""
        rows = self.run("postgres", """
            SELECT datname, query, sum(calls) AS calls, sum(rows) AS rows, sum(total_exec_time) AS ms, sum(shared_blks_hit) AS hit,
                sum(shared_blks_read) AS read, max(max_exec_time) AS max_ms
            FROM pg_stat_statements JOIN pg_database ON pg_database.oid = dbid GROUP BY datname, query""")
        self.run("postgres", "SELECT pg_stat_statements_reset()")
        found = {}
        for row in rows:
            found.setdefault(row["datname"], {})[row["query"]] = {key: float(row[key]) for key in ("calls", "rows", "ms", "hit", "read", "max_ms")}
        return found

    def plans(self, database, action):
        """Returns the plans of the statements that an action runs in a database, those that read most blocks first."""
        log = self.folder / "postgres.log"
        options = {"auto_explain.log_min_duration": "0", "auto_explain.log_analyze": "on", "auto_explain.log_buffers": "on"}
        self.set(**options)
        time.sleep(1)
        begin = log.stat().st_size
        action()
        time.sleep(0.5)
        with open(log, "rb") as file:
            file.seek(begin)
            text = file.read().decode(errors="replace")
        self.set(**dict.fromkeys(options))
        plans = []
        for entry in re.split(r"^(?=\w+ LOG: )", text, flags=re.M):
            if entry.startswith(f"{database} LOG:  duration:") and "Query Text:" in entry:
                blocks = [int(n) for n in re.findall(r"(?:hit|read)=(\d+)", entry.split("Buffers:", 1)[1].split("\n", 1)[0])] if "Buffers:" in entry else []
                plans.append((sum(blocks), entry))
        return [entry for _, entry in sorted(plans, key=lambda plan: -plan[0])]

    def end(self):
        if getattr(self, "process", None) and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()


class Failed(Exception):
    """A response that was not expected."""


class Server:
    """A node of core-server."""

    def __init__(self, folder, program, postgres, database, settings=()):
        self.folder = folder
        self.program = program
        self.postgres = postgres
        self.database = database
        self.settings = settings
        self.data = folder / f"data-{database}"
        self.process = None
        self.connections = threading.local()

    def start(self):
        """Starts the node, and waits until it accepts requests."""
        self.data.mkdir(exist_ok=True)
        if os.geteuid() == 0:
            shutil.chown(self.data, "postgres", "postgres")
        self.port = free_ports(11)
        self.connections = threading.local()
        command = [self.program, "--base-port", str(self.port), "--data", self.data]
        for setting in [*LIMITS, *self.settings]:
            command += ["--set", setting]
        environment = {
            "AUTH_API_KEY": KEY, "CORE_SECRET": SECRET, "CORE_MASTER_KEY": SECRET, "RUST_LOG": "warn", "HOME": str(self.folder),
            "DATABASE_URL": self.postgres.url(self.database),
            # The cookies and the origins of both installations are the same.
            "CORE_IAM_PUBLIC_URL": "http://iam.localhost", "CORE_GATEWAY_PUBLIC_URL": "http://gateway.localhost",
        }
        with open(self.folder / f"{self.database}.log", "ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, cwd=self.folder, text=True,
                env={**os.environ, **environment}, **unprivileged(),
            )
        line = self.process.stdout.readline()
        if not line.startswith("ready"):
            raise RuntimeError(f"core-server did not start: {self.log_tail()}")
        threading.Thread(target=self.process.stdout.read, daemon=True).start()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait()

    def log_tail(self):
        return "\n".join((self.folder / f"{self.database}.log").read_text(errors="replace").splitlines()[-10:])

    def memory(self):
        """Returns the resident memory and its maximum, in bytes."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines())
        return [int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM")]

    def exchange(self, service, method, path, body=None, token=KEY, headers=None, data=None):
        """Sends a request over a connection of this thread. Returns the status, the headers and the body."""
        sent = dict(headers or {})
        if token:
            sent["authorization"] = f"Bearer {token}"
        if body is not None:
            data = json.dumps(body)
            sent["content-type"] = "application/json"
        for attempt in (1, 2):
            connection = getattr(self.connections, service, None)
            if connection is None:
                port = self.port + SERVICES.index(service)
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                setattr(self.connections, service, connection)
            try:
                connection.request(method, path, data, sent)
                response = connection.getresponse()
                return response.status, response.headers, response.read()
            except (OSError, http.client.HTTPException):
                # The server may have closed a connection that was idle.
                connection.close()
                setattr(self.connections, service, None)
                if attempt == 2:
                    raise
        return None

    def call(self, service, method, path, body=None, **options):
        """Sends a request that must succeed. Returns its parsed response."""
        status, _, text = self.exchange(service, method, path, body, **options)
        if status >= 300:
            raise Failed(f"{method} {path}: {status} {text.decode(errors='replace')[:500]}")
        return json.loads(text) if text else {}

    def get(self, service, path, **options):
        return self.call(service, "GET", path, **options)

    def post(self, service, path, body=None, **options):
        return self.call(service, "POST", path, body if body is not None else {}, **options)
