"""The `sh` blocks of all guides, in one shell against one server."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from pages import GUIDES, REPOSITORY, blocks, guides, is_expected

KEY = "open-sesame-open-sesame"
# The guides say which settings they need.
SETTINGS = ["settings.webhooks.allow_http=true", "settings.webhooks.allow_private_addresses=true"]
TIMEOUT_SECONDS = 180


def commands():
    """Yields the place, the commands and the expected output (language and text) of each `sh` block."""
    for name in guides():
        all_blocks = list(blocks((GUIDES / f"{name}.md").read_text()))
        number = 0
        for at, (language, text) in enumerate(all_blocks):
            if language != "sh":
                continue
            number += 1
            following = all_blocks[at + 1] if at + 1 < len(all_blocks) else ("", "")
            expected = following if following[0] in ("json", "text") else ("", "")
            yield f"{name}.md, block {number}", text, expected


def start_server(program, folder):
    arguments = [program, "--base-port", "0", "--data", str(folder / "core-data")]
    for setting in SETTINGS:
        arguments += ["--set", setting]
    environment = dict(os.environ, AUTH_API_KEY=KEY, RUST_LOG="warn")
    log = open(folder / "server.log", "w")
    server = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
    for line in server.stdout:
        if line.startswith("ready "):
            return server, json.loads(line.removeprefix("ready "))["addresses"]
    sys.exit("the server ended before it was ready:\n" + (folder / "server.log").read_text())


def shell_environment(program, folder):
    """Returns the environment of the commands, in which core-cli has no settings and tokens of the person who runs this."""
    programs = os.path.dirname(program)
    if not os.access(os.path.join(programs, "core-cli"), os.X_OK):
        sys.exit(f"{programs} has no core-cli; build it: cargo build -p core-cli")
    own = {name: value for name, value in os.environ.items() if not name.startswith("CORE_")}
    return own | {"PATH": programs + os.pathsep + os.environ["PATH"], "XDG_CONFIG_HOME": str(folder / "config")}


def run(blocks_to_run, addresses, program, folder):
    """Returns the output of each block. One shell runs all of them, because they share variables and functions."""
    marker = "@@@ the output of the next block @@@"
    script = f"echo '{marker}'\n".join(commands for _, commands, _ in blocks_to_run)
    for port, name in ((8081, "iam"), (8080, "gateway"), (8089, "metrics")):
        script = script.replace(f"http://127.0.0.1:{port}", addresses[name])
    (folder / "examples").symlink_to(REPOSITORY / "examples")
    (folder / "commands").write_text(script)
    done = subprocess.run(
        ["bash", "-uo", "pipefail", "commands"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=shell_environment(program, folder),
        text=True,
        errors="replace",
        timeout=TIMEOUT_SECONDS,
    )
    outputs = done.stdout.split(marker)
    if len(outputs) != len(blocks_to_run):
        sys.exit(f"the commands ended in {blocks_to_run[len(outputs) - 1][0]}:\n{outputs[-1]}")
    return outputs


def run_shell_blocks(program):
    """Runs the blocks. Returns the number of blocks, and a text for each one with another output."""
    blocks_to_run = list(commands())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        server, addresses = start_server(program, folder)
        try:
            outputs = run(blocks_to_run, addresses, program, folder)
        finally:
            server.send_signal(signal.SIGTERM)
            status = server.wait()
    failed = []
    for (place, text, (language, expected)), output in zip(blocks_to_run, outputs):
        if language and not is_expected(language, expected, output):
            failed.append(f"{place}: other output than on the page\n{text}\n-- expected\n{expected}\n-- output\n{output}\n")
    if status != 0:
        failed.append(f"the server exited with status {status} after SIGTERM")
    return len(blocks_to_run), failed
