"""Subscriptions, charges, credits and invoices at a fake of Stripe, and their check."""

import collections
import time

from clients import Refused, Steady, call
from reading import SETTLE_TIMEOUT, all_pages, read
from stripe import AHEAD

API = "/api/v1/billing"
GOOD_CARD = "pm_card_visa"
# Can be attached, but every charge is declined.
BAD_CARD = "pm_card_chargeCustomerFail"
DEBTORS = 4
# More than any plan includes.
FIRST_QUANTITY = 1_000_000
# The time after which the trial of a payer ends, long enough for its request during a failover.
TRIAL_SECONDS = 40


def instant(seconds):
    """Returns an instant of the clock of billing, some seconds after its present."""
    at = time.time() + AHEAD + seconds
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


class Payer:
    """The acknowledged state of a platform that pays."""

    def __init__(self, subscription, is_trial):
        self.platform = subscription["platformId"]
        self.customer = subscription["customerId"]
        self.subscription = subscription["id"]
        self.is_trial = is_trial
        self.is_declined = False
        # A trial that goes on.
        self.has_no_charge = False
        # An upgrade was refused, which is a violation. A charge that was made all the same is another one, but not a double one.
        self.has_refusal = False
        self.quantity = 1
        self.tier = "starter"
        self.status = "active"
        self.upgrades = 0
        self.credits = 0
        # The ids of acknowledged invoices.
        self.invoices = set()
        # The usage that a debtor has reported, and what of it is included.
        self.reported = 0
        self.included = 0
        self.update(subscription)

    def update(self, subscription):
        if subscription["latestInvoiceId"]:
            self.invoices.add(subscription["latestInvoiceId"])


class Subscriber(Steady):
    """Subscribes platforms, upgrades the subscriptions, which charges them, grants credits, and cancels some."""

    def work(self):
        slug = f"b-{self.random.getrandbits(64):016x}"
        created = self.write("/api/v1/platforms", {"name": slug, "slug": slug}, 201)
        if created is None:
            return
        self.history.add_platform(slug, created)
        kind = self.random.choice(["paid", "paid", "paid", "declined", "trial"])
        body = {
            "platformId": created["id"], "tier": "starter", "trialDays": 1 if kind == "trial" else 0,
            "paymentMethodId": BAD_CARD if kind == "declined" else GOOD_CARD, "billingEmail": "ada@example.org",
        }
        subscription = self.write(f"{API}/subscription", body, 201)
        if subscription is None:
            self.history.violation(f"no response to the subscription of {created['id']}")
            return
        payer = Payer(subscription, kind == "trial")
        self.history.payers.append(payer)
        getattr(self, kind)(payer, subscription)

    def expect(self, payer, subscription, status):
        payer.status = status
        payer.update(subscription)
        if (subscription["status"], subscription["quantity"], subscription["tier"]) != (status, payer.quantity, payer.tier):
            self.history.violation(f"{status}, {payer.quantity} of {payer.tier} expected: {subscription}")

    def trial(self, payer, subscription):
        """Ends the trial soon. A job then charges the first invoice."""
        self.expect(payer, subscription, "trialing")
        body = {"trialEndsAt": instant(TRIAL_SECONDS), "reason": "The trial ends soon."}
        path = f"{API}/operator/subscriptions/{payer.subscription}/override"
        # The instant is in the past if there was no response for long. The trial then goes on for a day.
        ended = self.write(path, body, (200, 400), method="PATCH")
        if ended is not None and "error" not in ended:
            payer.status = "active"
        else:
            payer.is_trial, payer.has_no_charge = False, True

    def declined(self, payer, subscription):
        """Replaces a card that was declined, which pays the first invoice."""
        self.expect(payer, subscription, "incomplete")
        payer.is_declined = True
        body = {"customerId": payer.customer}
        card = self.write(f"{API}/payment-methods/{GOOD_CARD}/attach", body, 200)
        if card is not None:
            self.write(f"{API}/payment-methods/{card['id']}/set-default", body, 200)
        payer.status = "active"

    def paid(self, payer, subscription):
        self.expect(payer, subscription, "active")
        for _ in range(self.random.randint(1, 4)):
            if self.stop.is_set():
                return
            self.random.choice([self.buy_more, self.buy_more, self.change_tier, self.grant])(payer)
        if self.random.random() < 0.2:
            body = {"platformId": payer.platform, "immediately": True}
            cancelled = self.write(f"{API}/subscription/cancel", body, 200)
            if cancelled is not None:
                self.expect(payer, cancelled, "canceled")

    def buy_more(self, payer):
        """Buys one unit more, which charges the rest of the period at once."""
        path = f"{API}/subscriptions/{payer.subscription}"
        self.upgrade(payer, path, {"quantity": payer.quantity + 1}, "PATCH", payer.quantity + 1, payer.tier)

    def change_tier(self, payer):
        if payer.tier == "starter":
            body = {"platformId": payer.platform, "tier": "growth"}
            self.upgrade(payer, f"{API}/subscription/change-tier", body, "POST", payer.quantity, "growth")

    def upgrade(self, payer, path, body, method, quantity, tier):
        try:
            subscription = self.write(path, body, 200, method=method)
        except Refused:
            payer.has_refusal = True
            raise
        if subscription is None:
            self.history.violation(f"no response to an upgrade of {payer.subscription}")
            return
        payer.quantity, payer.tier = quantity, tier
        payer.upgrades += 1
        self.expect(payer, subscription, "active")

    def grant(self, payer):
        amount = self.random.randint(1, 500)
        body = {"customerId": payer.customer, "amount": amount, "description": "Thank you"}
        if self.write(f"{API}/operator/credits", body, 201) is not None:
            payer.credits += amount


class Debtor(Steady):
    """Reports usage of a subscription that has ended, and invoices it."""

    def work(self):
        payer = self.random.choice(self.cluster.debtors)
        for _ in range(self.random.randint(1, 3)):
            self.report(payer, self.random.randint(100, 2000))
        self.invoice(payer)

    def report(self, payer, quantity):
        """Reports usage until that is acknowledged. An event counts once, however often it is sent."""
        event = {
            "id": f"{self.random.getrandbits(64):016x}", "source": "endure", "platformId": payer.platform, "metric": "builds",
            "quantity": quantity, "time": payer.time,
        }
        found = self.write("/internal/usage/events", {"events": [event]}, 200, port=5)
        if found is None:
            self.history.violation(f"no response to a report of {payer.platform}")
            return
        payer.reported += quantity
        if found["rejected"]:
            self.history.violation(f"usage of {payer.platform}: {found}")

    def invoice(self, payer):
        invoice = self.write(f"{API}/operator/invoices/generate", {"customerId": payer.customer}, 201)
        if invoice is None:
            self.history.violation(f"no response to an invoice of {payer.customer}")
            return None
        payer.invoices.add(invoice["id"])
        self.history.count("generated invoices")
        return invoice


def prepare(cluster, history, client):
    """Creates the debtors before the load begins: their subscriptions have ended, and their usage is closed."""
    cluster.debtors = []
    for number in range(DEBTORS):
        created = client.write("/api/v1/platforms", {"name": f"owes-{number}", "slug": f"owes-{number}"}, 201)
        body = {
            "platformId": created["id"], "tier": "starter", "trialDays": 0, "paymentMethodId": GOOD_CARD,
            "billingEmail": "ada@example.org",
        }
        payer = Payer(client.write(f"{API}/subscription", body, 201), False)
        history.payers.append(payer)
        cluster.debtors.append(payer)
    time.sleep(2)
    for payer in cluster.debtors:
        body = {"platformId": payer.platform, "immediately": True}
        ended = client.write(f"{API}/subscription/cancel", body, 200)
        payer.status, payer.time = "canceled", ended["currentPeriodStart"]
    move_clock(cluster)
    for payer in cluster.debtors:
        client.report(payer, FIRST_QUANTITY)
        payer.included = FIRST_QUANTITY - client.invoice(payer)["subtotal"]


def move_clock(cluster):
    """Moves the clock of billing by `AHEAD`, and waits until all is done that is due then."""
    body = {"now": instant(0)}
    while True:
        status, found = call(cluster.port + 5, "POST", "/internal/billing/tick", cluster.key, body)
        assert status in (200, 202), found
        if not found["running"]:
            return
        body = {}


def wait_for_charges(cluster, history):
    """Waits until all webhooks are delivered, all trials have ended, and the outcome of each charge is known."""
    end = time.monotonic() + SETTLE_TIMEOUT
    while True:
        _, overview = read(cluster, f"{API}/operator/overview")
        waiting = {
            "webhooks": cluster.stripe.relay.waiting.qsize(),
            "unknown charges": overview["attemptsUnknown"],
            "open invoices": overview["openInvoices"]["count"],
            "trials": sum(is_trial(cluster, payer) for payer in history.payers if payer.is_trial),
        }
        if not any(waiting.values()):
            break
        if time.monotonic() > end:
            history.violation(f"billing does not settle: {waiting}")
            break
        time.sleep(1)
    if overview["reconcileDifferences"]:
        history.violation(f"invoices differ from those at Stripe: {overview}")
    if cluster.stripe.relay.lost:
        history.violation(f"{len(cluster.stripe.relay.lost)} webhooks were never accepted")


def read_subscription(cluster, payer):
    status, found = read(cluster, f"{API}/subscriptions/{payer.subscription}")
    assert status == 200, (payer.subscription, found)
    return found


def is_trial(cluster, payer):
    return read_subscription(cluster, payer)["status"] == "trialing"


def check_payer(cluster, history, payer):
    """The subscription is as acknowledged, and has one paid invoice for each acknowledged charge. Returns all invoices."""
    found = read_subscription(cluster, payer)
    if (found["status"], found["quantity"], found["tier"]) != (payer.status, payer.quantity, payer.tier):
        history.violation(f"{payer.status}, {payer.quantity} of {payer.tier} was acknowledged: {found}")
    invoices = all_pages(cluster, f"{API}/invoices?platformId={payer.platform}")
    lost = payer.invoices - {invoice["id"] for invoice in invoices}
    if lost:
        history.add_lost(f"acknowledged invoices of {payer.platform} are lost: {lost}")
    positions = sorted(int(invoice["number"].rsplit("-", 1)[1]) for invoice in invoices)
    if positions != list(range(1, len(invoices) + 1)):
        history.violation(f"numbers of the invoices of {payer.platform}: {positions}")
    # An invoice is void if its charge was certainly not made. The request was then made again.
    final = [invoice for invoice in invoices if invoice["status"] != "void"]
    for invoice in final:
        if invoice["status"] != "paid" or invoice["amountRemaining"] != 0:
            history.violation(f"an invoice is not paid: {invoice}")
    reasons = collections.Counter(invoice["billingReason"] for invoice in final)
    generated = reasons.pop("manual", 0)
    first = "subscription_cycle" if payer.is_trial else "subscription_create"
    expected = {first: 0 if payer.has_no_charge else 1, "subscription_update": payer.upgrades}
    if reasons != collections.Counter(expected):
        is_doubled = reasons > collections.Counter(expected)
        add = history.violation if payer.has_refusal else history.add_doubled if is_doubled else history.add_lost
        add(f"{payer.platform} has the invoices {dict(reasons)} instead of {expected}")
    billed = sum(invoice["subtotal"] for invoice in final if invoice["billingReason"] == "manual")
    if billed != payer.reported - payer.included:
        add = history.add_doubled if billed > payer.reported - payer.included else history.add_lost
        add(f"{payer.reported} reported, {payer.included} included, {billed} billed by {generated} invoices")
    _, customer = read(cluster, f"{API}/customers/{payer.customer}")
    left = payer.credits - sum(invoice["creditsApplied"] for invoice in final)
    if customer["creditBalance"] != left:
        add = history.add_doubled if customer["creditBalance"] > left else history.add_lost
        add(f"{payer.credits} was granted, {left} must be left: {customer}")
    return invoices


def check_charge(history, invoice, at_stripe, is_declined):
    """An invoice is at most once at Stripe, and paid there if and only if it is paid here."""
    if len(at_stripe) > 1:
        history.add_doubled(f"the invoice {invoice['id']} is {len(at_stripe)} times at Stripe: {at_stripe}")
    paid = [own["amount_paid"] for own in at_stripe if own["status"] == "paid"]
    due = [invoice["amountPaid"]] if invoice["status"] == "paid" and invoice["amountPaid"] else []
    if paid != due:
        add = history.add_doubled if sum(paid) > sum(due) else history.add_lost
        add(f"{paid} was paid at Stripe for {invoice}")
    for own in at_stripe:
        if own["status"] == "paid" and own["attempt_count"] != 1 and not is_declined:
            history.add_doubled(f"{own['attempt_count']} charges of the invoice {invoice['id']}")
    return sum(paid)


def check_billing(cluster, history):
    """No acknowledged change, credit or invoice is lost, nothing is charged twice, and the journal balances."""
    wait_for_charges(cluster, history)
    at_stripe = collections.defaultdict(list)
    for invoice in cluster.stripe.invoices():
        at_stripe[invoice["metadata"].get("invoiceId")].append(invoice)
    statuses, amount, numbers = collections.Counter(), 0, collections.Counter()
    for payer in history.payers:
        for invoice in check_payer(cluster, history, payer):
            statuses[invoice["status"]] += 1
            numbers[invoice["number"]] += 1
            amount += check_charge(history, invoice, at_stripe.pop(invoice["id"], []), payer.is_declined)
    for number, count in numbers.items():
        if count > 1:
            history.add_doubled(f"{count} invoices have the number {number}")
    for unknown in (own for invoices in at_stripe.values() for own in invoices):
        history.violation(f"no response acknowledged the invoice {unknown['number']}, {unknown['status']} at Stripe: {unknown['amount_paid']}")
    status, output = cluster.run("verify-journal")
    if status != 0:
        history.violation(f"verify-journal: {output}")
    history.counts["payers"] = len(history.payers)
    history.notes += [
        f"invoices: {dict(statuses)}, {amount} paid at Stripe, {cluster.stripe.relay.delivered} webhooks",
        *output.strip().splitlines(),
    ]
