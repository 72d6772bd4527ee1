"""Deployments of sites through the endpoints of the CLI service, and their check."""

import collections
import http.client
import io
import json
import tarfile
import time

from clients import Refused, Steady, fresh_address
from reading import all_pages

BRANCHES = ["production", "preview"]
# The number of deployments after which a deployer goes on with another platform.
DEPLOYMENTS = 30
ENDED = ("active", "failure", "canceled")
# The time in which a deployment ends.
END_TIMEOUT = 180


class Deployment:
    """An acknowledged deployment."""

    def __init__(self, platform, branch, marker, key):
        self.platform = platform
        self.branch = branch
        # The content of the site.
        self.marker = marker
        self.key = key


def archive(marker):
    """Returns a site with two pages as an archive, the same for the same marker."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, text in (("index.html", marker), ("about.html", f"About {marker}")):
            file = tarfile.TarInfo(name)
            file.size = len(text)
            tar.addfile(file, io.BytesIO(text.encode()))
    return packed.getvalue()


class Deployer(Steady):
    """Deploys sites of a platform to two branches at a time, and waits until both deployments have ended."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.platform = None
        self.count = 0

    def work(self):
        if self.platform is None or self.count >= DEPLOYMENTS:
            slug = f"d-{self.random.getrandbits(64):016x}"
            created = self.write("/api/v1/platforms", {"name": slug, "slug": slug}, 201)
            if created is None:
                return
            self.history.add_platform(slug, created)
            self.platform, self.count = created["id"], 0
        begun = [self.deploy(branch) for branch in BRANCHES]
        for deployment in begun:
            if deployment is not None:
                self.wait(deployment)

    def deploy(self, branch):
        """Uploads a site until that is acknowledged. Returns the id of the deployment."""
        marker = f"{self.random.getrandbits(64):016x}"
        headers = {**self.new_key(), "content-type": "application/x-tar", "x-core-deploy-branch": branch}
        path = f"/api/v1/cli/platforms/{self.platform}/deploy"
        found = self.write(path, archive(marker), (200, 202), headers=headers)
        if found is None:
            return None
        self.count += 1
        deployment = Deployment(self.platform, branch, marker, headers["idempotency-key"])
        self.history.deployments[found["deploymentId"]] = deployment
        return found["deploymentId"]

    def wait(self, deployment):
        """Waits until a deployment has ended."""
        path = f"/api/v1/cli/platforms/{self.platform}/deployments/{deployment}?wait=5"
        end = time.monotonic() + END_TIMEOUT
        while time.monotonic() < end:
            answer = self.send("GET", path, self.cluster.key)
            if answer is None:
                return
            status, found = answer
            if status != 200:
                raise Refused(f"acknowledged deployment {deployment}: {answer}")
            if found["status"] in ENDED:
                self.history.count(f"deployments {found['status']}")
                return
        self.history.violation(f"deployment {deployment} has not ended: {found}")


def visit(node, url):
    """Returns the status and the page that a node serves at an address of a site."""
    host = url.split("/")[2]
    connection = http.client.HTTPConnection("127.0.0.1", node.port + 10, timeout=15, source_address=(fresh_address(), 0))
    try:
        connection.request("GET", "/", headers={"host": host})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def check_served(cluster, history, url, marker, what):
    """Each node serves this content at an address."""
    for node in cluster.nodes:
        found = visit(node, url)
        if found != (200, marker):
            history.violation(f"{node.name} serves {found} at {url} instead of {marker}, {what}")


def stored_keys(cluster, project):
    """Returns how often each deployment is stored by the local provider, by its key."""
    files = cluster.data.glob(f"infrastructure/pages/{project}/deployments/*/deployment.json")
    return collections.Counter(json.loads(file.read_text())["deploymentKey"] for file in files)


def check_platform(cluster, history, platform, expected):
    """The list has each acknowledged deployment once and no other, and the nodes serve the newest of each branch."""
    listed = all_pages(cluster, f"/api/v1/cli/platforms/{platform}/deployments")
    by_id = collections.Counter(one["deploymentId"] for one in listed)
    for deployment in expected:
        if by_id[deployment] != 1:
            history.add_lost(f"acknowledged deployment {deployment} is listed {by_id[deployment]} times")
    for one in listed:
        if one["deploymentId"] not in expected:
            history.add_doubled(f"nobody asked for the deployment {one}")
        if one["status"] != "active":
            history.violation(f"deployment {one['deploymentId']}: {one['status']} {one['errorMessage']}")
    at_provider = collections.Counter(one["cfDeploymentId"] for one in listed)
    for deployment, count in at_provider.items():
        if count > 1:
            history.add_doubled(f"{count} deployments are {deployment} at the provider")
    if not listed:
        return
    stored = stored_keys(cluster, listed[0]["projectName"])
    for key, count in stored.items():
        if count > 1 or key not in expected:
            history.add_doubled(f"the provider has the deployment {key} of platform {platform} {count} times")
    for branch in BRANCHES:
        own = [one for one in listed if one["branch"] == branch and one["deploymentId"] in expected]
        live = [one for one in own if one["isLive"]]
        # The list has the newest first.
        if own and [one["deploymentId"] for one in live] != [own[0]["deploymentId"]]:
            history.violation(f"platform {platform}, {branch}: {len(live)} live deployments, newest {own[0]}")
            continue
        for one in live:
            if one["deploymentId"] not in stored:
                history.add_lost(f"the provider does not have the live deployment {one}")
            marker = expected[one["deploymentId"]].marker
            check_served(cluster, history, one["url"], marker, "the live site")
            check_served(cluster, history, one["permalink"], marker, "the deployment alone")


def check_deployments(cluster, history, events):
    """Each acknowledged deployment has ended, once, with one effect at the provider. `events` are those of the feed."""
    platforms = collections.defaultdict(dict)
    for deployment, record in history.deployments.items():
        platforms[record.platform][deployment] = record
    for platform, expected in platforms.items():
        check_platform(cluster, history, platform, expected)
    kinds = collections.Counter((data["type"], data["entityId"]) for data in events)
    for deployment in history.deployments:
        for kind in ("deployment.created", "deployment.activated"):
            if kinds[kind, deployment] != 1:
                add = history.add_doubled if kinds[kind, deployment] else history.violation
                add(f"{kinds[kind, deployment]} events {kind} of {deployment}")
    history.counts["deployments"] = len(history.deployments)
