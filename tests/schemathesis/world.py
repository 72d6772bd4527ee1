"""Prints the configuration of Schemathesis for one service and one credential, with the ids of records of every kind.

Creates an organization with its platform, and a record of each kind, at a running server. The ids lead the requests to
existing records. Without them nearly all of them would end with 404. Each run has records of its own, so that the
deletions of one run do not disturb another.

Usage: world.py ADDRESSES SERVICE_KEY CREDENTIAL SERVICE. CREDENTIAL is `key`, `session` or `none`.
"""

import json
import sys
import urllib.error
import urllib.request

ADDRESSES = json.loads(sys.argv[1])
SERVICE_KEY, CREDENTIAL, SERVICE = sys.argv[2:5]
NAME = f"{CREDENTIAL}-{SERVICE}"

# These operations end the platform, so they get platforms of which each is used for nothing else.
ENDING = [
    "deletePlatform", "hardDeletePlatform", "suspendPlatform", "cancelPlatform", "setPlatformStatus",
    "setProvisioningPlatformStatus", "deprovisionPlatform",
]
# These operations end the session of the run, or its organization. They are checked with the service key.
ENDING_SESSION = [
    "signOut", "signOutByForm", "revokeAuthSessions", "revokeAuthSession", "revokeSession", "endAccessByForm",
    "deleteOwnOrganization", "leaveOrganization", "removeMember", "updateMemberRole", "setActiveOrganization",
]


def call(service, method, path, body=None, headers=None, token=SERVICE_KEY, data=None):
    """Sends a request and returns the parsed response. Fails unless the request succeeds."""
    sent = dict(headers or {})
    if token:
        sent["authorization"] = f"Bearer {token}"
    if body is not None:
        data = json.dumps(body).encode()
        sent["content-type"] = "application/json"
    request = urllib.request.Request(ADDRESSES[service] + path, data, sent, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            text = response.read()
            answer = json.loads(text) if text else {}
            return answer, response.headers
    except urllib.error.HTTPError as refusal:
        sys.exit(f"{method} {path}: {refusal.code} {refusal.read().decode()}")


def post(service, path, body, **options):
    return call(service, "POST", path, body, **options)[0]


def sign_up(name):
    """Creates an account. Returns its id, its session token and its session cookie."""
    account = {"email": f"{name}@example.org", "password": "correct horse battery", "name": name}
    answer, headers = call("iam", "POST", "/api/auth/sign-up/email", account, token=None)
    cookies = headers.get_all("set-cookie") or []
    cookie = next(cookie for cookie in cookies if cookie.startswith("better-auth.session_token="))
    return answer["user"]["id"], answer["token"], cookie.split(";")[0]


def platform_records(platform):
    """Creates the records of a platform."""
    at = f"/api/v1/platforms/{platform}"
    entity = post("registry", f"{at}/entities", {"name": "Parent", "slug": "parent", "type": "tenant"})["id"]
    child = {"name": "Child", "slug": "child", "type": "subtenant", "parentId": entity}
    child = post("registry", f"{at}/entities", child)["id"]
    resource = {"stackId": "st1", "resourceType": "worker", "serviceName": "api", "environment": "prod", "cfName": f"api-{platform}"}
    resource = post("registry", f"{at}/entities/{child}/resources", resource)["id"]
    call("registry", "PUT", f"{at}/config/features", {"configValue": {"theme": "first"}})
    call("registry", "PUT", f"{at}/config/features", {"configValue": {"theme": "second"}})
    post("registry", f"{at}/resources/{resource}/secrets/API_KEY", {"status": "set"})
    stack = post("registry", f"{at}/stacks", {"tenantId": entity, "name": "web"})["id"]
    dns = {"hostname": f"a{platform}.example.org", "targetType": "worker", "resourceId": resource, "environment": "prod"}
    dns = post("registry", f"{at}/stacks/{stack}/dns", dns)["id"]
    domain = {"dnsRecordId": dns, "hostname": f"b{platform}.example.org", "targetDns": "origin.example.org"}
    domain = post("registry", f"{at}/domains", domain)["id"]
    deployment = {"idempotencyKey": "first", "userId": "ci", "projectName": "site", "branch": "preview"}
    deployment = post("registry", f"{at}/deployments", deployment)["id"]
    call("registry", "PATCH", f"{at}/deployments/{deployment}", {"status": "active"})
    feature = {"featureId": "search", "version": "1.0.0", "environment": "prod"}
    post("registry", f"{at}/entities/{entity}/features/activate", feature)
    builds = call("registry", "GET", f"{at}/builds")[0]["data"]
    webhook = {"url": "https://hooks.example.org/x", "eventTypes": ["platform"]}
    webhook = post("registry", f"{at}/webhooks", webhook)["id"]
    post("registry", f"{at}/webhooks/{webhook}/test", {})
    deliveries = call("registry", "GET", f"{at}/webhooks/{webhook}/deliveries")[0]["data"]
    job = {"platformId": platform, "planTier": "starter", "billingEmail": "billing@example.org"}
    job = post("provisioning", "/api/v1/provision/platform", job)["jobId"]
    return {
        "platformId": [platform],
        "entityId": [entity, child],
        "resourceId": [resource],
        "secretName": ["API_KEY"],
        "configKey": ["features"],
        "stackId": [stack],
        "dnsId": [dns],
        "domainId": [domain],
        "deploymentId": [deployment],
        "featureId": ["search"],
        "buildId": [build["id"] for build in builds],
        "webhookId": [webhook],
        "deliveryId": [delivery["id"] for delivery in deliveries],
        "jobId": [job],
    }


def account_records(user, organization, session):
    """Creates the records of an organization and of its owner."""
    invitation = {"email": f"guest-{NAME}@example.org", "role": "member"}
    invitation = post("iam", f"/api/core/organizations/{organization}/invitations", invitation)["id"]
    post("iam", "/api/core/roles", {"orgId": organization, "role": "auditor", "permissions": ["job:read"]})
    grant = {"userId": user, "orgId": organization, "permission": "job:read", "granted": True, "grantedBy": user}
    grant = post("iam", "/api/core/grants", grant)["id"]
    key = post("iam", "/api/auth/api-key/create", {"organizationId": organization}, token=session)
    sessions = call("iam", "GET", "/api/sessions", token=session)[0]
    events = call("iam", "GET", "/api/audit/events", token=session)[0]["data"]
    return {
        "orgId": [organization],
        "invitationId": [invitation],
        "role": ["auditor"],
        "grantId": [grant],
        "keyId": [key["id"]],
        "sessionId": [one["id"] for one in sessions["data"]],
        "eventId": [event["id"] for event in events],
    }


def billing_records(platform):
    """Creates a customer of the platform with a card and a subscription."""
    customer = post("billing", "/customers", {"email": "billing@example.org", "platformId": platform})["id"]
    method = post("billing", "/payment-methods/pm_card_visa/attach", {"customerId": customer})["id"]
    subscription = post("billing", "/subscription", {"platformId": platform, "tier": "starter"})
    return {
        "customerId": [customer],
        "paymentMethodId": [method],
        "subscriptionId": [subscription["id"]],
        "invoiceId": [subscription["latestInvoiceId"]],
    }


def stack_records():
    """Creates a stack template with a version."""
    template = {"name": NAME, "displayName": "Web", "description": "A web shop"}
    post("stacks", "/api/v1/stacks", template)
    version = {"version": "1.0.0", "coreSdkVersion": "1.0.0", "stackDefinition": {"resources": [{"name": "db", "type": "d1"}]}}
    post("stacks", f"/api/v1/stacks/{NAME}/versions", version)
    return {"templateName": [NAME], "version": ["1.0.0"]}


def records():
    """Creates all records. Returns the session token, and the ids by the names of parameters."""
    user, session, cookie = sign_up(NAME)
    page = {"origin": ADDRESSES["iam"], "cookie": cookie}
    organization = {"name": "Owners", "slug": NAME}
    setup = post("iam", "/api/core/org-setup", organization, headers=page, token=None)
    platform = setup["platformId"]
    ids = platform_records(platform) | account_records(user, setup["orgId"], session) | {"userId": [user]}
    ids |= billing_records(platform)
    ids |= stack_records()
    spare = [post("registry", "/api/v1/platforms", {"name": "Spare", "slug": f"{NAME}-{n}"})["id"] for n in range(8)]
    return session, {name: [one for one in known if one] for name, known in ids.items()}, spare


def quoted(value):
    """Returns a value in the notation of TOML, which for texts and lists is that of JSON."""
    return json.dumps(value)


def main():
    session, ids, spare = records()
    ids["id"] = {"billing": ids["subscriptionId"] + ids["customerId"] + ids["paymentMethodId"]}.get(SERVICE, ids["sessionId"])
    ids["name"] = ids["templateName"]
    if SERVICE == "registry":
        # The versions of the registry are those of configuration values.
        ids["version"] = ["1"]
    lines = ["seed = 1", "request-timeout = 20", "max-stream-events = 1", "suppress-health-check = ['all']"]
    # The credential is that of the run. A missing or wrong one beside it would change nothing.
    lines += ["[generation]", "database = 'none'", "with-security-parameters = false", "[warnings]", "enabled = false"]
    token = {"key": SERVICE_KEY, "session": session, "none": None}[CREDENTIAL]
    if token:
        lines += ["[headers]", f"Authorization = {quoted('Bearer ' + token)}"]
    for name, known in (ids | {"spare": spare}).items():
        if known:
            lines += [f"[dictionaries.{name}]", f"values = {quoted(known)}"]
    bound = [name for name in ids if ids[name]]
    lines.append("[parameters]")
    # In a body, `name` and the like can mean anything.
    unique = [name for name in bound if name.endswith("Id")]
    for place, names in (("path", bound), ("query", unique), ("body", unique)):
        lines += [f'"{place}.{name}" = {{ dictionary = "{name}", probability = 0.8 }}' for name in names]
    lines += ["[[operations]]", f"include-operation-id = {quoted(ENDING)}"]
    lines.append('parameters = { "path.platformId" = { dictionary = "spare" }, "body.platformId" = { dictionary = "spare" } }')
    if CREDENTIAL == "session":
        lines += ["[[operations]]", f"include-operation-id = {quoted(ENDING_SESSION)}", "enabled = false"]
        # The gateway has no internal routes.
        lines += ["[[operations]]", "include-path-regex = '^/internal/'", "enabled = false"]
    print("\n".join(lines))


main()
