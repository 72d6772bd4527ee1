"""Runs the steps of the Containerfile as a script, and the program as the image would.

No container is built: the base images are not on this machine, and an optimized build takes longer than all tests. So `cargo build`
is replaced by a copy of the program that is tested, and packages are not installed. Everything else is done as it is written.

usage: image.py CONTAINERFILE SERVER FOLDER
"""

import json
import os
import pathlib
import re
import select
import shlex
import signal
import subprocess
import sys

from servers import START_TIMEOUT, free_ports

# The libraries of the base image of the second stage.
BASE_LIBRARIES = {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libc.so.6", "libdl.so.2", "libgcc_s.so.1", "libm.so.6", "libpthread.so.0", "linux-vdso.so.1"}

# The port of the gateway in the image. The other services have the ports after it.
FIRST_PORT = 8080


def stages(text):
    """Returns the instructions of each stage, as pairs of a name and its text."""
    text = re.sub(r"^#.*\n", "", text, flags=re.M).replace("\\\n", " ")
    found = []
    for line in filter(str.strip, text.splitlines()):
        name, rest = line.split(maxsplit=1)
        if name == "FROM":
            found.append([])
        else:
            found[-1].append((name, rest))
    return found


def all_of(stage, name):
    return [rest for instruction, rest in stage if instruction == name]


def only(stage, name):
    [rest] = all_of(stage, name)
    return rest


def build(stage, server, folder):
    """Runs the steps of the first stage. Returns the folder that becomes the root of the image."""
    root, source, programs = (folder / name for name in ("image", "source", "bin"))
    for path in (source, programs):
        path.mkdir()
    cargo = programs / "cargo"
    cargo.write_text(
        '#!/bin/sh -e\n[ "$*" = "build --profile dist --locked -p core-server" ] || { echo "unexpected: cargo $*" >&2; exit 1; }\n'
        f"install -D {shlex.quote(str(server))} target/dist/core-server\n"
    )
    cargo.chmod(0o755)
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    for step in all_of(stage, "RUN"):
        step = re.sub(r"(?<=\s)/image\b", shlex.quote(str(root)), step)
        if os.geteuid() != 0:
            # Only root can give a folder to another user.
            step = re.sub(r"-[og] \d+", "", step)
        subprocess.run(["sh", "-ec", step], cwd=source, env=environment, check=True)
    return root


def check_libraries(program):
    listed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    names = {pathlib.Path(line.split()[0]).name for line in listed.splitlines()}
    assert names <= BASE_LIBRARIES, f"the base image lacks {names - BASE_LIBRARIES}"


def run(stage, root):
    """Starts the program with the user and the variables of the image, checks its health, and stops it."""
    environment = dict(word.split("=", 1) for line in all_of(stage, "ENV") for word in shlex.split(line))
    data = only(stage, "VOLUME")
    assert environment["CORE_DATA"] == data, environment
    port = free_ports(11)
    environment |= {
        "CORE_DATA": str(root) + data,
        "CORE_BIND": environment["CORE_BIND"].replace("0.0.0.0", "127.0.0.1"),
        "CORE_BASE_PORT": str(port),
        "AUTH_API_KEY": "open-sesame-open-sesame",
        "CORE_IAM_PUBLIC_URL": f"http://127.0.0.1:{port + 1}",
    }
    user, group = map(int, only(stage, "USER").split(":"))
    rights = {"user": user, "group": group, "extra_groups": []} if os.geteuid() == 0 else {}
    [program] = json.loads(only(stage, "ENTRYPOINT"))
    log = (root / "log").open("w+")
    server = subprocess.Popen([str(root) + program], env=environment, cwd="/", stdout=subprocess.PIPE, stderr=log, text=True, **rights)
    try:
        assert select.select([server.stdout], [], [], START_TIMEOUT)[0], "the program is not ready"
        ready = server.stdout.readline()
        assert ready.startswith("ready "), ready
        check_ports(json.loads(ready.removeprefix("ready ")), only(stage, "EXPOSE"), port)
        health = json.loads(only(stage, "HEALTHCHECK").split(" CMD ")[1])
        assert health[0] in " ".join(all_of(stage, "RUN")).split(), f"the image lacks {health[0]}"
        health = [word.replace(f":{FIRST_PORT}/", f":{port}/") for word in health]
        assert str(port) in health[-1], health
        subprocess.run(health, check=True, stdout=subprocess.DEVNULL)
        server.send_signal(signal.Signals[only(stage, "STOPSIGNAL")])
        assert server.wait(START_TIMEOUT) == 0, server.returncode
    except BaseException:
        log.seek(0)
        print(log.read(), file=sys.stderr)
        raise
    finally:
        server.kill()
        server.wait()


def check_ports(ready, exposed, first):
    """Checks that the image exposes the ports of all services, and no others. Metrics are for the network of the operator."""
    offsets = set()
    for ports in exposed.split():
        begin, _, end = ports.partition("-")
        offsets.update(range(int(begin) - FIRST_PORT, int(end or begin) - FIRST_PORT + 1))
    services = {name: url for name, url in ready["addresses"].items() if name != "metrics"}
    listening = {int(url.rsplit(":", 1)[1]) - first for url in services.values()}
    assert listening == offsets, (services, exposed)


containerfile, server, folder = map(pathlib.Path, sys.argv[1:])
build_stage, image_stage = stages(containerfile.read_text())
assert only(image_stage, "COPY") == "--from=build /image/ /"
root = build(build_stage, server.resolve(), folder)
check_libraries(str(root) + json.loads(only(image_stage, "ENTRYPOINT"))[0])
run(image_stage, root)
