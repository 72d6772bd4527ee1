"""A small installation with records of every kind, made through the API."""

import io
import json
import tarfile
import time

PASSWORD = "correct horse battery"
ORIGIN = "http://iam.localhost"


def sign_up(server, name):
    """Creates an account. Returns its id, its session token and its cookie."""
    account = {"email": f"{name}@example.org", "password": PASSWORD, "name": name}
    status, headers, text = server.exchange("iam", "POST", "/api/auth/sign-up/email", account, token=None)
    if status != 200:
        raise RuntimeError(f"sign-up: {status} {text}")
    answer = json.loads(text)
    cookies = [cookie.split(";")[0] for cookie in headers.get_all("set-cookie") or []]
    return answer["user"]["id"], answer["token"], "; ".join(cookies)


def site(text):
    """Returns an archive of a site of some pages."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name in ("index.html", "about.html", "style.css"):
            content = f"<p>{name} {text}</p>".encode() * 20
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def wait_for(server, job):
    """Waits until a job has ended, and returns it."""
    for _ in range(30):
        ended = server.get("provisioning", f"/api/v1/provision/jobs/{job}?wait=10")
        if ended["status"] in ("COMPLETED", "FAILED"):
            return ended
        time.sleep(0.1)
    raise RuntimeError(f"job {job} does not end")


class Tenant:
    """The ids of a platform and of its records."""


def make_platform(server, number):
    """Creates an account, its organization and its platform, with records of every kind."""
    name = f"engines-{number}"
    made = Tenant()
    made.email = f"{name}@example.org"
    made.user, made.token, cookie = sign_up(server, name)
    page = {"cookie": cookie, "origin": ORIGIN}
    setup = server.post("iam", "/api/core/org-setup", {"name": "Analytical Engines", "slug": name}, token=None, headers=page)
    made.organization, platform = setup["orgId"], setup["platformId"]
    made.platform = platform
    at = f"/api/v1/platforms/{platform}"
    jobs = server.get("provisioning", f"/api/v1/provision/jobs?platformId={platform}")["data"]
    for job in jobs:
        wait_for(server, job["jobId"])
    made.tenants = []
    for tenant in range(3):
        body = {"name": f"Tenant {tenant}", "slug": f"tenant-{tenant}", "type": "tenant"}
        made.tenants.append(server.post("registry", f"{at}/entities", body)["id"])
    for theme in ("blue", "green", "red"):
        server.call("gateway", "PUT", f"{at}/config/features", {"configValue": {"theme": theme}}, token=made.token)
    # Jobs of several kinds, and deployments with their builds.
    body = {"platformId": platform, "stackId": "shop", "stackVersion": "1.0.0"}
    wait_for(server, server.post("provisioning", "/api/v1/provision/stack/activate", body)["jobId"])
    feature = {"featureId": "search", "version": "1.0.0", "environment": "prod"}
    wait_for(server, server.post("registry", f"{at}/entities/{made.tenants[0]}/features/activate", feature)["provisionJobId"])
    wait_for(server, server.post("provisioning", "/api/v1/provision/platform/reconcile", {"platformId": platform})["jobId"])
    for version in range(2):
        path = f"/api/v1/platforms/{platform}/deploy"
        headers = {"content-type": "application/gzip"}
        deployed = server.call("cli", "POST", path, data=site(version), headers=headers)
        while server.get("cli", f"/api/v1/platforms/{platform}/deployments/{deployed['deploymentId']}?wait=10")["status"] not in ("active", "failure"):
            time.sleep(0.1)
    # Money.
    customer = server.post("billing", "/customers", {"email": made.email, "platformId": platform})["id"]
    server.post("billing", "/payment-methods/pm_card_visa/attach", {"customerId": customer})
    server.post("billing", "/subscription", {"platformId": platform, "tier": "growth"})
    server.post("billing", "/operator/credits", {"customerId": customer, "amount": 500, "description": "Welcome"})
    made.customer = customer
    # The trial ends, and the first invoice is paid.
    subscription = server.get("billing", f"/subscription?platformId={platform}")["id"]
    ends = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3))
    server.call("billing", "PATCH", f"/operator/subscriptions/{subscription}/override", {"trialEndsAt": ends, "reason": "growth"})
    # A member, an invitation, a key and a webhook.
    server.post("iam", f"/api/core/organizations/{made.organization}/invitations", {"email": f"guest-{number}@example.org", "role": "member"})
    key = server.post("iam", "/api/auth/api-key/create", {"organizationId": made.organization}, token=made.token)
    made.api_key = key["key"]
    webhook = {"url": "https://hooks.example.org/x", "eventTypes": ["platform"]}
    webhook = server.post("registry", f"{at}/webhooks", webhook)["id"]
    server.post("registry", f"{at}/webhooks/{webhook}/test", {})
    events = [{"id": f"run-{number}-{n}", "source": "runner", "platformId": platform, "tenantId": made.tenants[0], "metric": "cpu_ms",
               "quantity": 1200, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))} for n in range(5)]
    server.post("billing", "/internal/usage/events", {"events": events})
    for _ in range(3):
        server.get("gateway", f"{at}/audit?limit=20", token=made.token)
        server.post("iam", "/api/auth/sign-in/email", {"email": made.email, "password": PASSWORD}, token=None)
    return made


def make(server, platforms=3, lanes=16):
    """Creates the installation. Returns its platforms with records, and the ids of others without, for jobs that run concurrently."""
    template = {"name": "shop", "displayName": "Shop", "description": "A web shop"}
    server.post("stacks", "/api/v1/stacks", template)
    definition = {"resources": [{"name": "db", "type": "d1"}, {"name": "api", "type": "worker", "bindings": [{"name": "DB", "resource": "db"}]}]}
    server.post("stacks", "/api/v1/stacks/shop/versions", {"version": "1.0.0", "coreSdkVersion": "1.0.0", "stackDefinition": definition})
    made = [make_platform(server, number) for number in range(platforms)]
    bare = [server.post("registry", "/api/v1/platforms", {"name": "Lane", "slug": f"lane-{number}"})["id"] for number in range(lanes)]
    for one in made:
        while not server.get("billing", f"/invoices?platformId={one.platform}")["data"]:
            time.sleep(0.5)
    return made, bare
