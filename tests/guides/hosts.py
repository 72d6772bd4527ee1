"""The servers behind the example hosts of the guides: Postgres, PgBouncer, Redis, a bucket and a collector of traces."""

import glob
import http.server
import os
import re
import shutil
import subprocess
import threading
import urllib.parse

from pages import REPOSITORY
from servers import accepts_connections, free_ports, unprivileged, wait_until

S3_KEY = ("AKIAEXAMPLE", "secret-of-the-example")
S3_SERVER = REPOSITORY / "adapters/s3/src/testing/server.py"


def program(name):
    """Returns the path of a program of Debian."""
    found = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin") or next(
        iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)), None
    )
    if found is None:
        raise SystemExit(f"{name} is missing; tests/run installs it")
    return found


class Collector(http.server.ThreadingHTTPServer):
    """Receives traces over OTLP, and counts the requests."""

    daemon_threads = True

    def __init__(self):
        self.received = 0
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                collector.received += self.path == "/v1/traces"
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Hosts:
    """All of these servers, from `with` to its end."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = []
        url = os.environ.get("CORE_TEST_POSTGRES_URL")
        if url is None:
            raise SystemExit("CORE_TEST_POSTGRES_URL must name a Postgres server, as in tests/run")
        self.postgres = urllib.parse.urlsplit(url)
        # A name of its own, so that no other database is removed.
        self.database = f"core_guides_{os.getpid()}"
        self.redis_port, self.pooler_port = free_ports(), free_ports()
        # No server listens here.
        self.closed_port = free_ports()
        self.services_port = free_ports(11)
        self.certificate = folder / "bucket.pem"

    def __enter__(self):
        self.collector = Collector()
        self.bucket_port = self.start_bucket()
        redis = [program("redis-server"), "--port", str(self.redis_port), "--bind", "127.0.0.1"]
        self.spawn([*redis, "--save", "", "--requirepass", "password"])
        wait_until(lambda: accepts_connections(self.redis_port), "Redis")
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
        self.drop_database()
        self.collector.shutdown()

    def spawn(self, command, **arguments):
        """Starts a server. `arguments` are those of `Popen`."""
        process = subprocess.Popen(
            command, cwd=self.folder, stderr=subprocess.DEVNULL,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **arguments},
        )
        self.processes.append(process)
        return process

    def start_bucket(self):
        environment = dict(os.environ, PYTHONPATH=os.environ.get("CORE_TEST_MOTO", ""))
        subprocess.run(
            [program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-subj", "/CN=bucket", "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE",
             "-keyout", str(self.folder / "bucket.key"), "-out", str(self.certificate)],
            check=True, stderr=subprocess.DEVNULL,
        )
        interpreter = os.environ.get("CORE_TEST_PYTHON", "python3")
        server = self.spawn(
            [interpreter, str(S3_SERVER), "0", *S3_KEY, str(self.certificate), str(self.folder / "bucket.key")], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        port = server.stdout.readline()
        if not port:
            raise SystemExit("the S3 server did not start; CORE_TEST_MOTO must name the folder with moto, as in tests/run")
        server.stdin.write("bucket uploads\n")
        server.stdin.flush()
        server.stdout.readline()
        return int(port)

    def start_pooler(self, settings):
        """Starts PgBouncer with the settings of a page."""
        folder = self.folder / "pgbouncer"
        folder.mkdir(mode=0o777)
        (folder / "users.txt").write_text('"core" ""\n')
        own = {"listen_addr": "127.0.0.1", "listen_port": self.pooler_port, "auth_type": "trust",
               "auth_file": folder / "users.txt", "unix_socket_dir": "", "pidfile": folder / "pid"}
        lines = "".join(f"{name} = {value}\n" for name, value in own.items())
        (folder / "pgbouncer.ini").write_text(settings + lines)
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        self.spawn([program("pgbouncer"), "--quiet", str(folder / "pgbouncer.ini")], **unprivileged())
        wait_until(lambda: accepts_connections(self.pooler_port), "PgBouncer")

    def sql(self, statement):
        psql = [program("psql"), self.postgres.geturl(), "-qc", statement]
        subprocess.run(psql, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def create_database(self):
        """Creates the empty database that the pages call `core`."""
        self.drop_database()
        self.sql(f"CREATE DATABASE {self.database}")

    def drop_database(self):
        self.sql(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)")

    def localize(self, text):
        """Replaces the hosts and folders of a page by those of this run."""
        postgres = f"127.0.0.1:{self.postgres.port}"
        replaced = {
            "sslmode=verify-full": "sslmode=disable",
            "core:password@pgbouncer.example.org:6432": f"core@127.0.0.1:{self.pooler_port}",
            "core:password@db1.example.org,db2.example.org/core": f"core@127.0.0.1:{self.closed_port},{postgres}/{self.database}",
            "host=db1.example.org port=5432": f"host=127.0.0.1 port={self.postgres.port} dbname={self.database}",
            "core@db.example.org/core": f"core@{postgres}/{self.database}",
            "core@db/core": f"core@{postgres}/{self.database}",
            "rediss://:password@redis.example.org:6379": f"redis://:password@127.0.0.1:{self.redis_port}",
            "region=eu-central-1": f"region=eu-central-1&endpoint=https://127.0.0.1:{self.bucket_port}",
            "http://127.0.0.1:4318": f"http://127.0.0.1:{self.collector.server_address[1]}",
            "mail.example.org:587": f"127.0.0.1:{self.closed_port}",
            "AKIA...": S3_KEY[0],
        }
        for example, own in replaced.items():
            text = text.replace(example, own)
        own_port = lambda found: found[1] + str(self.services_port + int(found[2]))
        text = re.sub(r"(--base-port |127\.0\.0\.1:)900(\d)", own_port, text)
        return re.sub(r"(?<![\w/.-])/(var/lib|etc|backup)\b", lambda found: f"{self.folder}{found[0]}", text)
