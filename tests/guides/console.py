"""The `console` blocks of the guide about operations, word for word, each with the servers that it names.

A line that begins with `$ ` is a command; other lines are the expected output of the command before. A command that starts
core-server runs until the end of its block; it must become ready, and end with status 0 after SIGTERM.
"""

import os
import pathlib
import re
import subprocess
import tempfile

from hosts import S3_KEY, Hosts
from pages import GUIDES, blocks, is_expected
from servers import free_ports

TIMEOUT_SECONDS = 120

# Blocks that run elsewhere, by a text in them.
ELSEWHERE = {
    "cargo deb": "the optimized build takes too long here; it is in the release checklist",
    "podman build": "tests/packaging/run runs the steps of the Containerfile",
    "verify-archive": "the test archived_audit.rs moves the clock until a month is archived",
    "npm install workerd": "tests/run installs workerd",
    "move-platform": "the test cells.rs moves a platform of a server",
    "core-server cells": "the test cells.rs removes a cell",
}

# The subcommands of core-server. Without one of them it runs as a server.
SUBCOMMANDS = "check-config|doctor|backup|restore|copy|import-users|migrate"

# Commands before a block, by a text in it: what the page expects to exist.
BEFORE = {
    "core-server doctor\n": "export SMTP_URL=smtp://mail.example.org:587 MAIL_FROM=core@example.org; start core-server",
    "service-key": "mkdir -p /etc/core-server; printf '%s' \"$KEY\" > /etc/core-server/service-key",
    "s3-secret": "mkdir -p /etc/core-server; printf '%s' \"$BUCKET_SECRET\" > /etc/core-server/s3-secret",
    "redis.example.org": "export S3_ACCESS_KEY_ID=$BUCKET_KEY S3_SECRET_ACCESS_KEY=$BUCKET_SECRET",
    "s3://uploads": "export CORE_SETTINGS__S3__ROOT_CERTIFICATES=$BUCKET_CERTIFICATE",
    "core-server backup": "mkdir -p /backup; start core-server",
    "pooler": "DATABASE_URL=postgres://core@db/core core-server migrate --apply",
    "DATABASE_REPLICA_URL": "export DATABASE_URL='postgres://core@db.example.org/core?sslmode=verify-full'",
}

# Commands after a block, by a text in it: they fail if the block did not have its effect. A tenth of the traces is exported, so
# many requests are made, each to a service that admits a hundred in a minute.
AFTER = {
    "--services gateway": 'curl -sf -H "authorization: Bearer $KEY" http://127.0.0.1:$CORE_BASE_PORT/api/v1/platforms',
    "redis.example.org": "core-server doctor",
    "db1.example.org,db2.example.org/core?": "start core-server",
    "--trace-ratio": "for port in 0 2; do for _ in $(seq 99); do curl -sf http://127.0.0.1:$((CORE_BASE_PORT + port))/api/v1/platforms >/dev/null; done; done",
    "DATABASE_REPLICA_URL": "core-server check-config",
    "DATABASE_URL=postgres": "curl -sf http://127.0.0.1:$CORE_BASE_PORT/readyz",
}

# The hash that a page cuts short.
HASH = "$argon2id$v=19$m=19456,t=2,p=1$" + "c2FsdHNhbHRzYWx0c2FsdA" + "$" + "A" * 43

# Starts a server in the background, and waits for the line with which it reports that it is ready.
PRELUDE = r"""
started=()
stop() {
    local status=$? server
    for server in ${started[@]+"${started[@]}"}; do
        kill -TERM "$server" && wait "$server" || { echo "a server ended with status $?"; cat server.log; status=1; }
    done
    exit "$status"
}
trap stop EXIT
start() {
    local ready=$(mktemp -u)
    mkfifo "$ready"
    "$@" >"$ready" 2>>server.log &
    started+=($!)
    exec {output}<"$ready"
    read -r line <&"$output" && [[ $line == ready* ]] || { echo "not ready: $*"; cat server.log; exit 1; }
}
"""
MARKER = "@@@ the output of the next command @@@"


def sessions():
    """Yields each block as a list of commands with their expected output, and the settings of PgBouncer that follow it."""
    page = list(blocks((GUIDES / "operations.md").read_text()))
    for (language, text), (following, settings) in zip(page, [*page[1:], ("", "")]):
        if language != "console":
            continue
        commands = []
        for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
            lines = part.splitlines()
            count = 1
            while lines[count - 1].endswith("\\"):
                count += 1
            commands.append(("\n".join(lines[:count]), "\n".join(lines[count:])))
        yield text, commands, settings if following == "ini" else None


def with_start(command):
    """Returns the command that starts a server in the background; other commands as they are."""
    if not re.search(r"(?:^|[ \n])core-server(?= |$)", command) or re.search(rf"\b(?:{SUBCOMMANDS})\b", command):
        return command
    if command.startswith("core-server"):
        return f"start {command}"
    return f"start env {command}"


def matching(table, text):
    return [command for part, command in table.items() if part in text]


def run_session(number, text, commands, settings, hosts, environment):
    """Runs a block. Returns the differences from the page as texts."""
    hosts.create_database()
    if settings is not None:
        hosts.start_pooler(hosts.localize(settings))
    if "users.jsonl" in text:
        (hosts.folder / "users.jsonl").write_text(commands[0][1].replace("$argon2id$v=19$m=19456,t=2,p=1$...", HASH) + "\n")
    script = [PRELUDE, *map(hosts.localize, matching(BEFORE, text))]
    for command, _ in commands:
        script += [f"echo '{MARKER}'", with_start(hosts.localize(command))]
    script += [f"echo '{MARKER}'"]
    script += [f"{hosts.localize(check)} || {{ echo 'failed: {check[:40]}'; exit 1; }}" for check in matching(AFTER, text)]
    done = subprocess.run(
        ["bash", "-uo", "pipefail", "-c", "\n".join(script)],
        cwd=hosts.folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=TIMEOUT_SECONDS,
    )
    place = f"operations.md, console block {number}"
    if done.returncode != 0:
        return [f"{place}: status {done.returncode}\n{text}\n-- output\n{done.stdout}\n"]
    outputs = done.stdout.split(f"{MARKER}\n")[1:]
    return [
        f"{place}: other output than on the page\n{command}\n-- expected\n{expected}\n-- output\n{output}\n"
        for (command, expected), output in zip(commands, outputs)
        if expected and not is_expected("lines", hosts.localize(expected), output)
    ]


def run_console_blocks(program):
    """Runs the blocks. Returns the number of blocks, and a text for each one with another output."""
    failed, count = [], 0
    with tempfile.TemporaryDirectory() as name, Hosts(pathlib.Path(name)) as hosts:
        hosts.folder.chmod(0o755)
        own = {name: value for name, value in os.environ.items() if not name.startswith(("CORE_", "OTEL_"))}
        environment = own | {
            "PATH": os.path.dirname(program) + os.pathsep + os.environ["PATH"],
            "CORE_DATA": f"{hosts.folder}/var/lib/core-server",
            "RUST_LOG": "warn",
            "KEY": "open-sesame-open-sesame",
            "BUCKET_CERTIFICATE": str(hosts.certificate),
            "BUCKET_KEY": S3_KEY[0],
            "BUCKET_SECRET": S3_KEY[1],
        }
        for number, (text, commands, settings) in enumerate(sessions(), 1):
            if matching(ELSEWHERE, text):
                continue
            count += 1
            # Ports of their own, also for the block that names other ones.
            environment["CORE_BASE_PORT"] = str(free_ports(11))
            failed += run_session(number, text, commands, settings, hosts, environment)
        if hosts.collector.received == 0:
            failed.append("operations.md: the collector of traces received nothing")
    return count, failed
