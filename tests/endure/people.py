"""Users, their sessions and organizations, and the check of them after the faults have ended."""

import concurrent.futures
import time

from clients import Client, Refused
from reading import read, settled

# The time after which a sign-out or a suspension holds at every node.
EFFECT_DELAY = 5
PASSWORD = "correct horse battery"
# The number of requests at a time of the check.
PARALLEL = 16


class Organization:
    """An acknowledged organization of a tenant."""

    def __init__(self, slug, email, created, token):
        self.slug = slug
        self.email = email
        self.id = created["orgId"]
        self.platform = created["platformId"]
        # The session of its owner, which does not end.
        self.token = token
        # The acknowledged status of its platform, or `None` while a change of it has no response.
        self.status = "active"


class Person(Client):
    """Signs up, uses the session at each node, signs out, and checks that no node accepts the session any more."""

    def work(self):
        email = f"p{self.random.getrandbits(64):016x}@example.org"
        body = {"name": "Ada", "email": email, "password": PASSWORD}
        # The first attempt may have created the user before its response was lost.
        answer = self.send("POST", "/api/auth/sign-up/email", body=body, iam=True)
        if answer is None:
            return
        if answer[0] == 200:
            self.history.add_user(email)
        answer = self.send("POST", "/api/auth/sign-in/email", body={"email": email, "password": PASSWORD}, iam=True)
        if answer is None:
            return
        status, found = answer
        if status != 200:
            raise Refused(f"sign-in after an acknowledged sign-up: {status} {found}")
        self.history.add_user(email)
        token = found["token"]
        self.check(token, "/api/v1/platforms", 200)
        answer = self.send("POST", "/api/auth/sign-out", token, {}, {"origin": f"http://127.0.0.1:{self.cluster.port + 1}"}, iam=True)
        if answer is None:
            return
        # The first attempt may have ended the session before its response was lost.
        if answer[0] not in (200, 401):
            raise Refused(f"sign-out: {answer}")
        self.history.add_ended_session(token)
        if self.stop.wait(EFFECT_DELAY):
            return
        self.check(token, "/api/v1/platforms", 401)
        self.history.count("sessions")


class Tenant(Client):
    """Signs up with a platform of its own, and checks that no node lets it in any more after the platform is suspended, and
    that each node does after it is restored. Half of the platforms are suspended at the end."""

    def work(self):
        slug = f"t-{self.random.getrandbits(64):016x}"
        email = f"{slug}@example.org"
        body = {"name": "Ada", "email": email, "password": PASSWORD}
        answer = self.exchange("POST", "/api/auth/sign-up/email", body=body, iam=True)
        # Without the cookie of the first attempt, this user cannot set up an organization.
        if answer is None or answer.status != 200:
            return
        self.history.add_user(email)
        token, cookie = answer.found["token"], answer.cookie
        headers = {"cookie": cookie, "origin": f"http://127.0.0.1:{self.cluster.port + 1}"}
        answer = self.send("POST", "/api/core/org-setup", None, {"name": slug, "slug": slug}, headers, iam=True)
        # The first attempt may have set it up before its response was lost.
        if answer is None or answer[0] == 409:
            return
        if answer[0] != 201:
            raise Refused(f"set-up of an organization: {answer}")
        organization = Organization(slug, email, answer[1], token)
        self.history.add_organization(organization)
        path = f"/api/v1/platforms/{organization.platform}"
        self.check(token, path, 200)
        if not self.change(organization, "suspend", "suspended", 451):
            return
        self.history.count("suspensions")
        if not self.change(organization, "restore", "active", 200):
            return
        self.history.count("restorations")
        if self.random.random() < 0.5 and self.change(organization, "suspend", "suspended", 451):
            self.history.count("suspensions")

    def change(self, organization, command, status, expected):
        """Changes the status of the platform. Returns whether that was acknowledged, and each node follows it."""
        path = f"/api/v1/platforms/{organization.platform}"
        organization.status = None
        answer = self.send("POST", f"{path}/{command}", self.cluster.key, {})
        if answer is None:
            return False
        # The first attempt may have changed the status before its response was lost.
        if answer[0] not in (200, 409):
            raise Refused(f"{command}: {answer}")
        organization.status = status
        if self.stop.wait(EFFECT_DELAY):
            return False
        self.check(organization.token, path, expected)
        return True


def check_user(cluster, history, email):
    """An acknowledged user can sign in."""
    body = {"email": email, "password": PASSWORD}
    status, found = settled(cluster.port + 1, "POST", "/api/auth/sign-in/email", body=body)
    if status != 200:
        history.add_lost(f"acknowledged user {email}: {status} {found}")


def check_ended_session(cluster, history, token):
    """No node accepts a session whose end was acknowledged."""
    for node in cluster.nodes:
        status, found = settled(node.port, "GET", "/api/v1/platforms", token)
        if status != 401:
            history.add_lost(f"the acknowledged end of a session, {node.name}: {status} {found}")


def check_organization(cluster, history, organization):
    """An acknowledged organization exists, its platform has the acknowledged status, and each node follows it."""
    status, found = settled(cluster.port + 1, "GET", f"/api/core/organizations/{organization.slug}", cluster.key)
    if status != 200 or found["id"] != organization.id:
        history.add_lost(f"acknowledged organization {organization.slug}: {status} {found}")
    if organization.status is None:
        check_user(cluster, history, organization.email)
        return
    path = f"/api/v1/platforms/{organization.platform}"
    status, found = read(cluster, path)
    if status != 200 or found["status"] != organization.status:
        history.add_lost(f"{organization.status} was acknowledged for {organization.platform}: {status} {found}")
    expected = 451 if organization.status == "suspended" else 200
    for node in cluster.nodes:
        status, found = settled(node.port, "GET", path, organization.token)
        if status != expected:
            history.add_lost(f"{organization.platform} at {node.name}, {expected} expected: {status} {found}")


def check_people(cluster, history):
    """No acknowledged user, organization, end of a session, suspension or restoration is lost."""
    # The last changes hold at every node after this time.
    time.sleep(EFFECT_DELAY)
    # A sign-in takes long. The sessions of owners prove that these users exist.
    owners = {one.email for one in history.organizations}
    checks = [
        *((check_user, email) for email in history.users - owners),
        *((check_ended_session, token) for token in history.ended_sessions),
        *((check_organization, one) for one in history.organizations),
    ]
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        for done in [pool.submit(one, cluster, history, subject) for one, subject in checks]:
            done.result()
    statuses = [one.status for one in history.organizations]
    history.counts["users"] = len(history.users)
    history.counts["ended sessions"] = len(history.ended_sessions)
    history.notes.append(f"organizations: {len(statuses)}, {statuses.count('suspended')} of them suspended")
