"""Checks the signatures of webhooks with Stripe's client for Python. Argument: the file with the received webhooks."""

import json
import sys

import stripe

with open(sys.argv[1], encoding="utf-8") as file:
    webhooks = json.load(file)
assert webhooks
for webhook in webhooks:
    event = stripe.Webhook.construct_event(webhook["body"], webhook["signature"], webhook["secret"])
    assert event.type == webhook["type"]
    try:
        stripe.Webhook.construct_event(webhook["body"] + " ", webhook["signature"], webhook["secret"])
    except stripe.SignatureVerificationError:
        continue
    raise AssertionError("the changed body was accepted")
print(f"== Stripe's client for Python accepts {len(webhooks)} webhooks")
