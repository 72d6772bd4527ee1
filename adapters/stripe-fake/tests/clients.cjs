// Drives the fake with Stripe's client for Node. Arguments: the address of the fake, and the file for received webhooks.
"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const http = require("node:http");
const Stripe = require("stripe");

const [address, file] = process.argv.slice(2);
const url = new URL(address);
const options = { host: url.hostname, port: Number(url.port), protocol: "http", maxNetworkRetries: 0, telemetry: false };
const stripe = new Stripe("sk_test_fake", options);
const webhooks = [];

/** Receives webhooks and checks their signatures. */
function receiver(secret) {
    return http.createServer((request, response) => {
        const pieces = [];
        request.on("data", (piece) => pieces.push(piece));
        request.on("end", () => {
            const body = Buffer.concat(pieces).toString();
            const signature = request.headers["stripe-signature"];
            const event = stripe.webhooks.constructEvent(body, signature, secret);
            webhooks.push({ body, signature, secret, type: event.type });
            response.end();
        });
    });
}

async function refusal(promise) {
    try {
        await promise;
    } catch (error) {
        return error;
    }
    throw new Error("the request was not refused");
}

async function until(condition) {
    for (let left = 200; !condition(); left -= 1) {
        assert.ok(left > 0, "the webhooks did not arrive");
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
}

async function customers() {
    const details = { email: "ada@example.com", name: "Ada", metadata: { customerId: "c1" } };
    const customer = await stripe.customers.create(details, { idempotencyKey: "cus:c1" });
    const again = await stripe.customers.create(details, { idempotencyKey: "cus:c1" });
    assert.equal(again.id, customer.id);
    const other = await refusal(stripe.customers.create({ name: "Bob" }, { idempotencyKey: "cus:c1" }));
    assert.equal(other.type, "StripeIdempotencyError");
    assert.equal((await stripe.customers.update(customer.id, { name: "Ada L." })).name, "Ada L.");
    assert.equal((await stripe.customers.retrieve(customer.id)).metadata.customerId, "c1");
    assert.equal((await stripe.customers.list({ email: "ada@example.com" })).data.length, 1);
    const unknown = await refusal(stripe.customers.retrieve("cus_none"));
    assert.equal(unknown.code, "resource_missing");
    const parameter = await refusal(stripe.customers.create({ colour: "red" }));
    assert.equal(parameter.code, "parameter_unknown");
    return customer;
}

async function methods(customer) {
    const intent = await stripe.setupIntents.create({ customer: customer.id, usage: "off_session" });
    const entered = await stripe.paymentMethods.create({ type: "card", card: { number: "4242424242424242", exp_month: 12, exp_year: 2034, cvc: "123" } });
    const confirmed = await stripe.setupIntents.confirm(intent.id, { payment_method: entered.id });
    assert.equal(confirmed.status, "succeeded");
    assert.equal((await stripe.setupIntents.retrieve(intent.id)).payment_method, entered.id);
    const method = await stripe.paymentMethods.attach("pm_card_visa", { customer: customer.id });
    await stripe.customers.update(customer.id, { invoice_settings: { default_payment_method: method.id } });
    const declined = await refusal(stripe.paymentMethods.attach("pm_card_chargeDeclined", { customer: customer.id }));
    assert.equal(declined.type, "StripeCardError");
    const list = await stripe.paymentMethods.list({ customer: customer.id, type: "card" });
    assert.deepEqual(list.data.map((own) => own.id), [method.id, entered.id]);
    assert.equal((await stripe.paymentMethods.detach(entered.id)).customer, null);
    assert.equal((await stripe.paymentMethods.retrieve(method.id)).card.last4, "4242");
    return method;
}

async function openInvoice(customer, amount) {
    const invoice = await stripe.invoices.create({
        customer: customer.id,
        currency: "usd",
        auto_advance: false,
        collection_method: "charge_automatically",
        pending_invoice_items_behavior: "exclude",
        metadata: { invoiceId: "i1" },
    });
    const lines = Array.from({ length: 12 }, (_, line) => ({ amount: amount / 12, description: `Line ${line}`, metadata: { lineId: `l${line}` } }));
    const added = await stripe.invoices.addLines(invoice.id, { lines });
    assert.equal(added.amount_due, amount);
    const open = await stripe.invoices.finalizeInvoice(invoice.id, { auto_advance: false });
    assert.equal(open.status, "open");
    return open;
}

async function invoices(customer, method) {
    const invoice = await openInvoice(customer, 1200);
    let lines = 0;
    for await (const line of stripe.invoices.listLineItems(invoice.id, { limit: 5 })) lines += line.amount / 100;
    assert.equal(lines, 12);
    const paid = await stripe.invoices.pay(invoice.id, { payment_method: method.id, off_session: true, expand: ["payments.data.payment.payment_intent"] });
    assert.equal(paid.status, "paid");
    assert.equal(paid.payments.data[0].payment.payment_intent.status, "succeeded");
    const found = await stripe.invoices.list({ customer: customer.id, created: { gte: invoice.created } });
    assert.equal(found.data[0].id, invoice.id);
    assert.equal((await stripe.invoices.voidInvoice((await openInvoice(customer, 1200)).id)).status, "void");
    const late = await openInvoice(customer, 1200);
    assert.equal((await stripe.invoices.markUncollectible(late.id)).status, "uncollectible");
    assert.equal((await stripe.invoices.pay(late.id, { paid_out_of_band: true })).status, "paid");
    const draft = await stripe.invoices.create({ customer: customer.id, currency: "usd", auto_advance: false });
    assert.equal((await stripe.invoices.del(draft.id)).deleted, true);
}

async function declines(customer) {
    const method = await stripe.paymentMethods.attach("pm_card_authenticationRequired", { customer: customer.id });
    const invoice = await openInvoice(customer, 1200);
    const refused = await refusal(stripe.invoices.pay(invoice.id, { payment_method: method.id }));
    assert.equal(refused.code, "authentication_required");
    const expanded = await stripe.invoices.retrieve(invoice.id, { expand: ["confirmation_secret"] });
    assert.equal(expanded.confirmation_secret.client_secret, refused.payment_intent.client_secret);
    const intent = await stripe.paymentIntents.confirm(refused.payment_intent.id, { payment_method: method.id });
    assert.equal((await stripe.paymentIntents.retrieve(intent.id)).status, "succeeded");
    assert.equal((await stripe.invoices.retrieve(invoice.id)).status, "paid");
    const wrong = new Stripe("sk_test_wrong", options);
    assert.equal((await refusal(wrong.customers.list())).type, "StripeAuthenticationError");
}

async function main() {
    const server = receiver("whsec_fake");
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    const endpoint = await stripe.webhookEndpoints.create({ url: `http://127.0.0.1:${server.address().port}/`, enabled_events: ["*"] });
    assert.equal(endpoint.secret, "whsec_fake");
    const customer = await customers();
    const method = await methods(customer);
    await invoices(customer, method);
    await declines(customer);
    const session = await stripe.billingPortal.sessions.create({ customer: customer.id, return_url: "https://example.com/" });
    assert.ok(session.url.startsWith("https://"));
    const events = [];
    for await (const event of stripe.events.list({ limit: 10 })) events.push(event.id);
    assert.equal((await stripe.events.retrieve(events[0])).id, events[0]);
    await until(() => webhooks.length === events.length);
    const forged = await refusal(Promise.resolve().then(() => stripe.webhooks.constructEvent(webhooks[0].body, webhooks[0].signature, "whsec_other")));
    assert.equal(forged.type, "StripeSignatureVerificationError");
    fs.writeFileSync(file, JSON.stringify(webhooks));
    console.log(`== Stripe's client for Node accepts the fake and ${webhooks.length} webhooks`);
    server.close();
    server.closeAllConnections();
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
