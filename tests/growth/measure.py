"""The same requests to the small and to the grown installation, in turn."""

import concurrent.futures
import statistics
import time
import uuid

from processes import KEY, cpu_between, cpu_times
from world import PASSWORD

# The greatest ratio of a cost in the grown installation to that in the small one.
LIMIT = 1.3


class Kind:
    """A kind of request: `send` sends one, `prepare` runs before each one and is not measured."""

    def __init__(self, name, send, prepare=None, rounds=12, block=10):
        self.name = name
        self.send = send
        self.prepare = prepare
        self.rounds = rounds
        self.block = block


class Side:
    """One of the two installations."""

    def __init__(self, name, server, world, lanes):
        self.name = name
        self.server = server
        self.large, self.small = world[0], world[1]
        self.lanes = lanes
        self.count = 0
        self.job = None
        # The paths of pages in the middle of lists.
        self.paths = {}

    def unique(self):
        self.count += 1
        return f"{self.count}-{uuid.uuid4().hex[:12]}"

    def middle(self, service, path, total):
        """Returns the cursor in the middle of a list, but not after more than 20,000 records."""
        cursor = ""
        for _ in range(min(200, total // 200)):
            cursor = self.server.get(service, f"{path}limit=100{cursor and '&cursor='}{cursor}")["pagination"]["nextCursor"]
        return cursor


def filled(path, tenant):
    """Returns a path with the ids of a platform and of its records."""
    return path.format(p=tenant.platform, o=tenant.organization, c=tenant.customer, u=tenant.user)


def get(service, path, token=None):
    """Returns a function that reads a path of the small platform."""
    def send(side):
        side.server.get(service, filled(path, side.small), token=token(side) if token else KEY)
    return send


def get_large(service, path):
    """Returns a function that reads a path of the large platform."""
    def send(side):
        side.server.get(service, filled(path, side.large))
    return send


def with_cursor(service, path, limit=20):
    """Returns a function that reads a page in the middle of a list; of a short list, the page after two records."""
    def send(side):
        if path not in side.paths:
            list_path = path.format(p=side.large.platform)
            total = side.server.get(service, f"{list_path}limit=1")["pagination"]["total"]
            after_two = side.server.get(service, f"{list_path}limit=2")["pagination"]["nextCursor"]
            cursor = side.middle(service, list_path, total) if total > 200 else after_two
            side.paths[path] = f"{list_path}limit={limit}&cursor={cursor}"
        side.server.get(service, side.paths[path])
    return send


def post_platform(side):
    slug = f"new-{side.unique()}"
    side.server.post("registry", "/api/v1/platforms", {"name": "New", "slug": slug})


def post_entity(side):
    body = {"name": "Tenant", "slug": f"new-{side.unique()}", "type": "tenant"}
    side.server.post("registry", f"/api/v1/platforms/{side.small.platform}/entities", body)


def put_config(side, tenant=None):
    body = {"configValue": {"theme": side.unique()}}
    side.server.call("gateway", "PUT", f"/api/v1/platforms/{(tenant or side.small).platform}/config/features", body)


def last_hour(side):
    begin = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))
    side.server.get("registry", f"/api/v1/audit?limit=20&from={begin}")


def sign_in(side):
    side.server.post("iam", "/api/auth/sign-in/email", {"email": side.small.email, "password": PASSWORD}, token=None)


def sign_up(side):
    account = {"email": f"new-{side.unique()}@example.org", "password": PASSWORD, "name": "New"}
    side.server.post("iam", "/api/auth/sign-up/email", account, token=None)


def own_token(side):
    return side.small.token


def validate_key(side):
    side.server.post("iam", "/api/core/apikey/validate", {"key": side.small.api_key})


def run_job(side):
    """Queues a job and waits for its end."""
    job = side.server.post("provisioning", "/api/v1/provision/platform/reconcile", {"platformId": side.lanes[0]})["jobId"]
    ended = side.server.get("provisioning", f"/api/v1/provision/jobs/{job}?wait=10")
    assert ended["status"] == "COMPLETED", ended


def get_job(side):
    if side.job is None:
        listed = side.server.get("provisioning", f"/api/v1/provision/jobs?platformId={side.small.platform}&limit=1")
        side.job = listed["data"][0]["jobId"]
    side.server.get("provisioning", f"/api/v1/provision/jobs/{side.job}")


P = "/api/v1/platforms/{p}"
KINDS = [
    Kind("platforms, first page", get("registry", "/api/v1/platforms?limit=10")),
    Kind("platforms, first page after a new one", get("registry", "/api/v1/platforms?limit=10"), post_platform, 10, 4),
    Kind("platforms, page in the middle", with_cursor("registry", "/api/v1/platforms?", limit=10)),
    Kind("GET a platform", get("registry", P)),
    Kind("GET a platform, gateway, session", get("gateway", P, own_token)),
    Kind("tenants", get("registry", P + "/entities?limit=20")),
    Kind("tenants of the large platform", get_large("registry", P + "/entities?limit=3")),
    Kind("resources", get("registry", P + "/resources?limit=20")),
    Kind("deployments", get("registry", P + "/deployments?limit=2")),
    Kind("deployments of the large platform", get_large("registry", P + "/deployments?limit=2")),
    Kind("deployments in flight", get_large("registry", P + "/deployments?status=in_flight")),
    Kind("builds", get("registry", P + "/builds?limit=3")),
    Kind("builds of the large platform", get_large("registry", P + "/builds?limit=3")),
    Kind("lifecycle", get("registry", P + "/lifecycle?limit=20")),
    Kind("audit of a platform", get("registry", P + "/audit?limit=20")),
    Kind("audit of a platform, an action", get("registry", P + "/audit?limit=5&action=resource.created")),
    Kind("audit of a platform, a type", get("registry", P + "/audit?limit=5&entity=resource")),
    Kind("audit of a platform, an object", get("registry", P + "/audit?limit=5&entity={c}")),
    Kind("audit of the large platform", get_large("registry", P + "/audit?limit=20")),
    Kind("audit of the large platform, an action", get_large("registry", P + "/audit?limit=5&action=resource.created")),
    Kind("audit of the large platform, after a change", get_large("registry", P + "/audit?limit=5&action=resource.created"),
         lambda side: put_config(side, side.large), 10, 4),
    Kind("audit of the large platform, a page in the middle", with_cursor("registry", P + "/audit?")),
    Kind("audit of the installation", get("registry", "/api/v1/audit?limit=20")),
    Kind("audit of the installation, a type", get("registry", "/api/v1/audit?limit=20&eventType=resource")),
    Kind("audit of the installation, a type, after a change", get("registry", "/api/v1/audit?limit=20&eventType=resource"), put_config, 10, 4),
    Kind("audit of the installation, an actor", get("registry", "/api/v1/audit?limit=20&actorId={u}")),
    Kind("audit of the installation, an actor and a type", get("registry", "/api/v1/audit?limit=20&actorId={u}&eventType=session")),
    Kind("audit of the installation, an hour", last_hour),
    Kind("audit of the installation, a page in the middle", with_cursor("registry", "/api/v1/audit?")),
    Kind("jobs", get("provisioning", "/api/v1/provision/jobs?limit=10")),
    Kind("jobs that are completed", get("provisioning", "/api/v1/provision/jobs?limit=10&status=COMPLETED")),
    Kind("jobs of a platform", get("provisioning", "/api/v1/provision/jobs?limit=5&platformId={p}")),
    Kind("jobs of the large platform", get_large("provisioning", "/api/v1/provision/jobs?limit=5&platformId={p}")),
    Kind("GET a job", get_job),
    Kind("dead letters", get("provisioning", "/api/v1/provision/dlq?limit=20&status=RESOLVED")),
    Kind("invoices", get("billing", "/invoices?platformId={p}")),
    Kind("usage of the period", get("billing", "/usage/current?platformId={p}")),
    Kind("customer", get("billing", "/customers/{c}")),
    Kind("overview of billing", get("billing", "/operator/overview")),
    Kind("invitations", get("iam", "/api/core/organizations/{o}/invitations?limit=5")),
    Kind("members", get("gateway", "/api/v1/iam/api/auth/organization/list-members?organizationId={o}", own_token)),
    Kind("get-session", get("iam", "/api/auth/get-session", own_token)),
    Kind("validate an API key", validate_key),
    Kind("sign-in", sign_in, rounds=8, block=4),
    Kind("sign-up", sign_up, rounds=8, block=4),
    Kind("own sessions", get("iam", "/api/sessions", own_token)),
    Kind("POST a platform", post_platform, rounds=10, block=8),
    Kind("POST a tenant", post_entity, rounds=10, block=8),
    Kind("PUT a configuration", put_config, rounds=10, block=8),
    Kind("a job, from its request to its end", run_job, rounds=8, block=4),
]


class Cost:
    """What requests of a kind cost in one installation."""

    def __init__(self):
        self.times = []
        self.server = self.postgres = 0.0
        self.statements = {}

    def per_request(self):
        """Returns the median time and the processor times in microseconds, and the blocks of a request."""
        number = len(self.times)
        blocks = sum(one["hit"] + one["read"] for one in self.statements.values())
        return [statistics.median(self.times) * 1e6, self.server / number * 1e6, self.postgres / number * 1e6, blocks / number]


def measure(postgres, sides, kind, rounds=None):
    """Measures a kind in both installations, in turn. Returns the costs by the name of the installation."""
    costs = {side.name: Cost() for side in sides}
    for side in sides:
        for _ in range(3):
            if kind.prepare:
                kind.prepare(side)
            kind.send(side)
    pids = {side.name: postgres.sessions(side.name) for side in sides}
    postgres.statements()
    for _ in range(rounds or kind.rounds):
        for side in sides:
            if not kind.prepare:
                send(side, kind, kind.block, costs[side.name], pids[side.name])
                continue
            for _ in range(kind.block):
                kind.prepare(side)
                # Meanwhile the change is sealed.
                time.sleep(0.05)
                send(side, kind, 1, costs[side.name], pids[side.name])
    found = postgres.statements()
    for side in sides:
        costs[side.name].statements = found.get(side.name, {})
    return costs


def send(side, kind, number, cost, pids):
    """Sends requests, and adds their times and the processor times of the processes."""
    meter = Meter(side, pids)
    for _ in range(number):
        began = time.perf_counter()
        kind.send(side)
        cost.times.append(time.perf_counter() - began)
    server, database = meter.read()
    cost.server += server
    cost.postgres += database


class Meter:
    """Measures the processor time of a node and of its connections to the database."""

    def __init__(self, side, sessions):
        self.pids = [[side.server.process.pid], sessions]
        self.before = [cpu_times(pids) for pids in self.pids]

    def read(self):
        """Returns both times since the creation, in seconds."""
        return [cpu_between(before, cpu_times(pids)) for before, pids in zip(self.before, self.pids)]


def in_parallel(threads, works):
    """Runs functions in threads."""
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work) for work in works]:
            done.result()


def drain(postgres, side, jobs):
    """Queues jobs in all lanes while they are held, and then measures how many end per second."""
    server = side.server
    hold = server.post("provisioning", "/api/v1/provision/holds", {"scope": "all", "reason": "growth"})["id"]
    queued = []

    def queue(lane):
        for _ in range(jobs // len(side.lanes)):
            queued.append(server.post("provisioning", "/api/v1/provision/platform/reconcile", {"platformId": lane})["jobId"])
    in_parallel(4, [lambda lane=lane: queue(lane) for lane in side.lanes])
    meter = Meter(side, postgres.sessions(side.name))
    began = time.monotonic()
    server.call("provisioning", "DELETE", f"/api/v1/provision/holds/{hold}")
    ids = ", ".join(f"'{job}'" for job in queued)
    while True:
        query = f"SELECT count(*) FILTER (WHERE status <> 'COMPLETED') AS open, max(finished_at) AS last FROM jobs WHERE id IN ({ids})"
        left, last = postgres.run(side.name, query)[0].values()
        if left == "0":
            break
        assert time.monotonic() < began + 120, f"{left} jobs do not end"
        time.sleep(0.1)
    times = meter.read()
    first = int(postgres.value(side.name, f"SELECT min(started_at) FROM jobs WHERE id IN ({ids})"))
    number = len(queued)
    return number / max(0.001, (int(last) - first) / 1000), [time / number * 1e6 for time in times]


def sign_in_of_many(side):
    """Signs in users of the grown installation in turn: attempts with one address at the same time would be delayed."""
    side.count += 1
    side.server.post("iam", "/api/auth/sign-in/email", {"email": f"u{1 + side.count % 500}@example.net", "password": PASSWORD}, token=None)


# The requests that are measured under load.
LOADS = [kind for kind in KINDS if kind.name in (
    "GET a platform, gateway, session", "tenants", "audit of a platform", "get-session", "POST a platform", "POST a tenant")]
LOADS.append(Kind("sign-in", sign_in_of_many))


def load(postgres, side, kind, seconds, threads=8):
    """Sends requests of several clients. Returns the number per second, and the processor times of one in microseconds."""
    end = time.monotonic() + seconds
    sent = []

    def client():
        while time.monotonic() < end:
            kind.send(side)
            sent.append(1)
    in_parallel(threads, [lambda: kind.send(side)] * threads)
    meter = Meter(side, postgres.sessions(side.name))
    in_parallel(threads, [client] * threads)
    return len(sent) / seconds, [time / len(sent) * 1e6 for time in meter.read()]
