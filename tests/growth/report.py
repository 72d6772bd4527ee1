"""Prints what was measured."""

import re

from measure import LIMIT

# Statements that take less than this, in milliseconds, are compared by their blocks only.
SHORT = 0.2


def heading(text):
    print(f"\n## {text}\n", flush=True)


class Requests:
    """The table of requests: times and processor times in microseconds, and the blocks that Postgres touched."""

    HEAD = "| request | small: time | server | Postgres | blocks | grown: time | server | Postgres | blocks | time x | processor x |"

    def __init__(self):
        print(self.HEAD)
        print("|---" * 11 + "|", flush=True)

    @staticmethod
    def ratios(costs):
        small, grown = costs["small"].per_request(), costs["grown"].per_request()
        return grown[0] / small[0], (grown[1] + grown[2]) / (small[1] + small[2])

    def ratio(self, costs):
        """Returns the ratio that both the time and the processor time reach: one alone may be a disturbance, or a wait."""
        return min(self.ratios(costs))

    @staticmethod
    def reads_more(costs):
        """Returns whether requests touch much more blocks in the grown installation. That need not cost much time, but it may grow further."""
        small, grown = (costs[name].per_request()[3] for name in ("small", "grown"))
        return grown > 3 * small + 50

    def add(self, kind, costs):
        cells = [f"{value:.0f}" for name in ("small", "grown") for value in costs[name].per_request()]
        cells += [f"{ratio:.2f}" for ratio in self.ratios(costs)]
        print(f"| {kind.name} | {' | '.join(cells)} |{' <-' if self.ratio(costs) > LIMIT else ''}", flush=True)

    def end(self):
        print(flush=True)


def per_call(statement):
    calls = statement["calls"]
    return statement["ms"] / calls, (statement["hit"] + statement["read"]) / calls, statement["rows"] / calls


def statements(costs):
    """Prints the statements of requests that cost most more in the grown installation."""
    small, grown = costs["small"].statements, costs["grown"].statements
    number = len(costs["grown"].times)

    def growth_of(query):
        return grown[query]["ms"] / number - (small[query]["ms"] / len(costs["small"].times) if query in small else 0)
    for query in sorted(grown, key=growth_of, reverse=True)[:3]:
        before = per_call(small[query]) if query in small else (0, 0, 0)
        after = per_call(grown[query])
        calls = grown[query]["calls"] / number
        print(f"    {before[0]:.3f} -> {after[0]:.3f} ms, {before[1]:.0f} -> {after[1]:.0f} blocks, {after[2]:.0f} rows, "
              f"{calls:.1f} per request: {' '.join(query.split())[:500]}")


def unit_costs(rounds, name):
    """Returns the cost of each statement: milliseconds and blocks of a call and of a unit, and the number of calls.

    A unit is a row if a call has several, since the size of slices differs. Each cost is the lowest of the rounds: other programs only
    add to it.
    """
    costs = {}
    for found in rounds:
        for query, statement in found.get(name, {}).items():
            units = statement["rows"] if statement["rows"] >= 2 * statement["calls"] else statement["calls"]
            ms, blocks, rows = per_call(statement)
            cost = [ms, blocks, rows, statement["ms"] / units, (statement["hit"] + statement["read"]) / units, statement["calls"]]
            known = costs.get(query)
            costs[query] = [min(pair) for pair in zip(known, cost)] if known else cost
    return costs


def compare(rounds, number=20):
    """Compares statements that both installations ran. Returns those whose cost has grown."""
    small, grown = unit_costs(rounds, "small"), unit_costs(rounds, "grown")
    findings = []
    print("| statement | calls | rows | small: ms | blocks | grown: ms | blocks | rows | ms of a row, x |")
    print("|---" * 9 + "|")
    order = sorted((query for query in grown if "pg_stat" not in query and "growth." not in query), key=lambda query: -grown[query][0] * grown[query][5])
    shown = 0
    for query in order:
        if query not in small:
            continue
        before, after = small[query], grown[query]
        ratio = after[3] / before[3]
        grew = ratio > LIMIT and after[0] > SHORT and after[3] * after[2] - before[3] * after[2] > SHORT
        if grew:
            findings.append(query[:80])
        if shown < number or grew:
            shown += 1
            text = " ".join(query.split()).replace("|", "/")
            print(f"| {text if grew else text[:120]} | {after[5]:.0f} | {before[2]:.0f} | {before[0]:.3f} | {before[1]:.0f} | "
                  f"{after[0]:.3f} | {after[1]:.0f} | {after[2]:.0f} | {ratio:.2f} |{' <-' if grew else ''}")
    for query in order:
        if query not in small and grown[query][0] > 1:
            after = grown[query]
            print(f"only in the grown installation: {after[5]:.0f} calls, {after[0]:.2f} ms, {after[1]:.0f} blocks: {' '.join(query.split())[:400]}")
    print(flush=True)
    return findings


def sweep(rounds):
    """Compares what the removal of an old record costs: the statements that find, lock and delete the records of a table."""
    costs = {}
    for found in rounds:
        for name in ("small", "grown"):
            tables = {}
            for query, statement in found.get(name, {}).items():
                match = re.search(r'^(DELETE|SELECT) .*?FROM "(\w+)" WHERE', query, re.S)
                if match and (match[1] == "DELETE" or "SKIP LOCKED" in query):
                    sums = tables.setdefault(match[2], [0, 0, 0])
                    sums[0] += statement["rows"] if match[1] == "DELETE" else 0
                    sums[1] += statement["ms"] * 1000
                    sums[2] += statement["hit"] + statement["read"]
            for table, (rows, us, blocks) in tables.items():
                if rows >= 100:
                    known = costs.setdefault(table, {}).get(name)
                    costs[table][name] = [min(pair) for pair in zip(known, (rows, us / rows, blocks / rows))] if known else [rows, us / rows, blocks / rows]
    findings = []
    print("| old records | number | small: us of one | blocks | grown: us of one | blocks | x |")
    print("|---" * 7 + "|")
    for table, cost in sorted(costs.items()):
        if len(cost) == 2:
            (rows, before, few), (_, after, many) = cost["small"], cost["grown"]
            # The number of blocks does not depend on other programs.
            grew = min(after / before, many / few) > LIMIT
            if grew:
                findings.append(f"sweep of {table}")
            print(f"| {table} | {rows:.0f} | {before:.1f} | {few:.1f} | {after:.1f} | {many:.1f} | {after / before:.2f} |{' <-' if grew else ''}")
    print(flush=True)
    return findings


# Records with the tables that one of them has rows in. The rows of the first table are counted.
RECORDS = [
    ("audit entry, with its seal and a tenth of a checkpoint", ["audit_entries", "audit_seals", "audit_checkpoints"]),
    ("platform, with its organization, configuration, resources and customer",
     ["platforms", "organizations", "platform_configs", "config_versions", "resources", "workspace_stacks", "feature_activations", "lifecycle_records",
      "billing_customers", "billing_subscriptions", "ledger_methods", "billing_credit_grants", "api_keys", "webhooks", "invitations", "job_lanes", "audit_heads"]),
    ("user, with the password and a membership", ["users", "accounts", "members"]),
    ("session", ["sessions"]),
    ("tenant", ["entities"]),
    ("job, with its events", ["jobs", "job_events"]),
    ("deployment", ["deployments"]),
    ("build", ["builds"]),
    ("dead letter", ["dlq_entries"]),
    ("message to a webhook", ["webhook_deliveries"]),
    ("invoice, with its journal and payment", ["billing_invoices", "billing_journal_entries", "billing_payment_attempts"]),
    ("month of usage, with its sums and three tenants", ["usage_periods", "usage_totals", "usage_tenants"]),
    ("sum of a metric for a day", ["usage_rollups"]),
    ("usage event", ["usage_events"]),
]


def sizes(postgres, database):
    heading("Bytes on the disk of the grown installation")
    print("| record | number | bytes | of these, indexes |\n|---|---|---|---|")
    for name, tables in RECORDS:
        number = int(postgres.value(database, f"SELECT count(*) FROM {tables[0]}"))
        total, indexes = (
            int(postgres.value(database, f"SELECT sum({function}(name::regclass)) FROM unnest(ARRAY{tables}) AS name"))
            for function in ("pg_total_relation_size", "pg_indexes_size"))
        print(f"| {name} | {number} | {total / number:.0f} | {indexes / number:.0f} |")
    print(f"\ndatabase: {int(postgres.value(database, 'SELECT pg_database_size(current_database())')) / (1 << 30):.2f} GB", flush=True)


def memory(servers):
    heading("Memory of a node")
    for server in servers:
        now, most = server.memory()
        print(f"{server.database}: {now / (1 << 20):.0f} MiB, at most {most / (1 << 20):.0f} MiB")
