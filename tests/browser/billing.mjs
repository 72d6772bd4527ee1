// The pages of billing in a browser: the portal, the page on which an invoice is paid, and the invoice as a document. Everything is
// done with the keyboard alone. axe-core inspects each page in light and dark mode. The flows build on each other: one platform
// subscribes, pays, and changes its plan.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { inflateSync } from 'node:zlib';

const { NODE_MODULES, IAM, GATEWAY, BILLING, SERVICE_KEY, CHROMIUM, SCREENSHOTS } = process.env;
const require = createRequire(path.join(NODE_MODULES, 'x.js'));
const { chromium } = require('playwright-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const PASSWORD = 'correct horse battery';
const EMAIL = 'billie@example.org';
const RETURN_URL = 'https://app.example.org/billing';

const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: process.getuid() === 0 ? ['--no-sandbox'] : [],
});
if (SCREENSHOTS) fs.mkdirSync(SCREENSHOTS, { recursive: true });

const problems = [];
const inspected = new Set();

/**
 * Opens a page in a new browser context without JavaScript. Errors of the console and requests to another origin are problems. The
 * browser also reports the status of a refused page, and that there is no icon, which it requests by itself. These are none.
 */
async function newPage(options) {
    const context = await browser.newContext({ baseURL: BILLING, javaScriptEnabled: false, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    const { origin } = new URL(options?.baseURL ?? BILLING);
    const documents = new Set();
    page.on('request', request => {
        const url = new URL(request.url());
        if (request.isNavigationRequest()) documents.add(url.href);
        if (url.origin !== origin) problems.push(`${origin} loads ${url.href}`);
    });
    page.on('console', message => {
        const isStatus = message.text().startsWith('Failed to load resource: the server responded with a status of 4');
        const { url } = message.location();
        if (isStatus && (documents.has(url) || url === `${origin}/favicon.ico`)) return;
        const isProblem = message.type() === 'error' || /Content Security Policy/.test(message.text());
        if (isProblem) problems.push(`${url}: ${message.text()}`);
    });
    page.on('pageerror', error => problems.push(error.message));
    return page;
}

/**
 * Inspects a page with axe-core in light and dark mode, and at the width of a phone. A copy of the page's HTML is inspected in
 * another context, which runs JavaScript but has no session.
 */
async function inspect(page, name) {
    if (inspected.has(name)) return;
    inspected.add(name);
    let html = await page.content();
    const link = html.match(/<link rel="stylesheet" href="([^"]*)"[^>]*>/);
    if (link) {
        const css = await (await page.request.get(new URL(link[1], page.url()).href)).text();
        html = html.replace(link[0], () => `<style>${css}</style>`);
    }
    for (const colorScheme of ['light', 'dark']) {
        const context = await browser.newContext({ colorScheme, viewport: { width: 900, height: 800 } });
        const copy = await context.newPage();
        await copy.setContent(html);
        await copy.evaluate(axe);
        const found = await copy.evaluate(() => globalThis.axe.run(document, {
            runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
            rules: { 'label-content-name-mismatch': { enabled: true } },
        }));
        assert.ok(found.passes.length > 10, `${name}: axe inspected nothing`);
        for (const { id, help, nodes } of found.violations) {
            problems.push(`${name} (${colorScheme}): ${id}: ${help}: ${nodes.map(node => node.html).join(' ')}`);
        }
        if (SCREENSHOTS) await copy.screenshot({ path: path.join(SCREENSHOTS, `${name}-${colorScheme}.png`), fullPage: true });
        // The page must not be wider than a small phone.
        await copy.setViewportSize({ width: 320, height: 640 });
        const width = await copy.evaluate(() => document.documentElement.scrollWidth);
        if (width > 320) problems.push(`${name} (${colorScheme}): ${width} px wide on a phone of 320`);
        const texts = await touching(copy);
        if (texts.length > 0) problems.push(`${name} (${colorScheme}): on a phone these texts touch: ${texts.join(', ')}`);
        if (SCREENSHOTS) await copy.screenshot({ path: path.join(SCREENSHOTS, `${name}-${colorScheme}-phone.png`), fullPage: true });
        await context.close();
    }
}

/** Returns the texts of neighboring cells without a space between them. */
const touching = page => page.locator('td + td, th + td, th + th').evaluateAll(cells => {
    const text = cell => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return range.getBoundingClientRect();
    };
    const pairs = cells.map(cell => [cell.previousElementSibling, cell]);
    return pairs.filter(([left, right]) => text(left).right + 4 > text(right).left)
        .map(pair => pair.map(cell => cell.innerText).join(' | '));
});

async function call(method, url, { data, headers } = {}) {
    const response = await fetch(url, {
        method, body: data && JSON.stringify(data), headers: { 'content-type': 'application/json', ...headers },
    });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${url}: ${response.status} ${text}`);
    return { headers: response.headers, json: JSON.parse(text) };
}

/** Calls an endpoint of billing through the gateway, as the owner of the platform or with the service key. */
async function billing(method, where, data, token = owner.token) {
    const headers = { authorization: `Bearer ${token}` };
    return (await call(method, `${GATEWAY}/api/v1/billing${where}`, { data, headers })).json;
}

/** Returns the newest invoice of the platform with its lines. */
async function newestInvoice() {
    const { data } = await billing('GET', `/invoices?platformId=${owner.platformId}&limit=1`);
    return billing('GET', `/invoices/${data[0].id}`);
}

const subscription = () => billing('GET', `/subscription?platformId=${owner.platformId}`);

/** Signs up the owner of a platform whose first invoice is open because the platform has no card. */
async function createOwner() {
    const user = await call('POST', `${IAM}/api/auth/sign-up/email`, { data: { name: 'Billie', email: EMAIL, password: PASSWORD } });
    const cookie = user.headers.getSetCookie().map(line => line.split(';')[0]).join('; ');
    const platform = await call('POST', `${IAM}/api/core/org-setup`, {
        data: { name: 'Account Books', slug: 'account-books' }, headers: { cookie, origin: IAM },
    });
    const { platformId } = platform.json;
    const data = { platformId, tier: 'starter', trialDays: 0, billingEmail: EMAIL };
    const { customerId } = await billing('POST', '/subscription', data, SERVICE_KEY);
    await billing('PATCH', `/customers/${customerId}`, { name: 'Account Books & Daughters' }, SERVICE_KEY);
    return { token: user.json.token, platformId, customerId };
}

/** Opens the portal. The page stays open between the flows. */
async function openPortal() {
    const { url } = await billing('POST', '/portal', { returnUrl: RETURN_URL });
    assert.ok(url.startsWith(`${BILLING}/portal/`), url);
    const page = await newPage();
    await page.goto(url);
    at(page, '/portal');
    return { page, url };
}

const heading = page => page.locator('h1').innerText();
const at = (page, where) => assert.equal(page.url().slice(BILLING.length), where);
const money = (minor, currency) => `${(minor / 100).toFixed(2)} ${currency.toUpperCase()}`;

/** Returns the description of a term of a page. */
const described = (page, term) => page.locator('dt', { hasText: new RegExp(`^${term}$`) }).locator('+ dd').innerText();

/** Runs an action that leads to another page, and waits until that page is loaded. */
async function leads(page, act) {
    const loaded = page.waitForEvent('load');
    await act();
    await loaded;
}

/** Presses Tab until the element with this role and name has the focus. */
async function tabTo(page, role, name) {
    for (let presses = 0; presses < 40; presses += 1) {
        await page.keyboard.press('Tab');
        const target = page.getByRole(role, { name, exact: true });
        if (await target.evaluate(element => element === document.activeElement)) return target;
    }
    throw new Error(`the keyboard does not reach ${name}`);
}

/** Presses a button with the keyboard. */
async function press(page, name, key = 'Enter') {
    await tabTo(page, 'button', name);
    await leads(page, () => page.keyboard.press(key));
}

/** Selects an option with the arrow keys. */
async function choose(page, name, option) {
    const select = await tabTo(page, 'combobox', name);
    const selected = () => select.evaluate(element => element.selectedOptions[0].text);
    const count = await select.locator('option').count();
    for (let presses = 0; presses < count && await selected() !== option; presses += 1) await page.keyboard.press('ArrowDown');
    assert.equal(await selected(), option);
}

const CONTROLS = 'a[href], button, select, input:not([type=hidden]), textarea, summary, [tabindex]';

/**
 * Presses Tab from the beginning of a page to its end. Each control must get the focus once, in the order in which the controls are
 * shown, and must look different with it.
 */
async function walk(page, name) {
    const boxes = await page.locator(CONTROLS).evaluateAll(elements => elements.map(element => {
        const { left, top, right, bottom } = element.getBoundingClientRect();
        const text = element.getAttribute('aria-label') ?? element.innerText;
        return { text, left: left + scrollX, top: top + scrollY, right: right + scrollX, bottom: bottom + scrollY };
    }));
    assert.ok(boxes.length > 0, `${name}: no controls`);
    const picture = box => {
        const [x, y] = [Math.max(0, box.left - 8), Math.max(0, box.top - 8)];
        const clip = { x, y, width: box.right + 8 - x, height: box.bottom + 8 - y };
        return page.screenshot({ clip, fullPage: true, caret: 'initial' });
    };
    const focused = () => page.evaluate(controls => [...document.querySelectorAll(controls)].indexOf(document.activeElement), CONTROLS);
    const before = [];
    for (const box of boxes) before.push(await picture(box));
    assert.equal(await focused(), -1, `${name}: a control has the focus at first`);
    for (const [index, box] of boxes.entries()) {
        await page.keyboard.press('Tab');
        assert.equal(await focused(), index, `${name}: Tab must reach ${box.text}`);
        const outline = await page.evaluate(() => {
            const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
            return outlineStyle === 'none' ? 0 : parseFloat(outlineWidth);
        });
        assert.ok(outline >= 2, `${name}: the focus of ${box.text} has an outline of ${outline} px`);
        assert.ok(!before[index].equals(await picture(box)), `${name}: the focus of ${box.text} is not visible`);
        const last = boxes[index - 1];
        const isInside = last && box.top >= last.top && box.bottom <= last.bottom && box.left >= last.left && box.right <= last.right;
        const isBelow = last && box.top >= last.bottom - 1;
        const isRight = last && box.left >= last.right - 1 && box.top < last.bottom && box.bottom > last.top;
        assert.ok(!last || isInside || isBelow || isRight, `${name}: ${box.text} comes before ${last?.text}`);
    }
    await page.keyboard.press('Tab');
    assert.equal(await focused(), -1, `${name}: a control after ${boxes.at(-1).text}`);
}

/** Returns styles that no browser applies by default. */
const look = page => page.evaluate(() => {
    const styles = (selector, names) => {
        const computed = getComputedStyle(document.querySelector(selector));
        return Object.fromEntries(names.map(name => [name, computed[name]]));
    };
    return {
        body: styles('body', ['fontFamily', 'margin', 'backgroundColor', 'color']),
        main: styles('main', ['maxWidth', 'padding', 'borderRadius']),
        h1: styles('h1', ['fontSize', 'margin']),
    };
});

const PAPERS = [
    { format: 'A4', millimeters: [210, 297], points: [595, 842] },
    { format: 'Letter', millimeters: [215.9, 279.4], points: [612, 792] },
];
const PRINT_MARGIN = 18;

/** Returns the size in points and the number of text operators of each page of a PDF file by Chromium. */
function pdfPages(pdf) {
    const text = pdf.toString('latin1');
    assert.ok(text.startsWith('%PDF-'), text.slice(0, 20));
    const objects = new Map([...text.matchAll(/(?<=[\r\n])(\d+) 0 obj\s([^]*?)endobj/g)].map(([, id, body]) => [id, body]));
    const pages = [...objects.values()].filter(body => /\/Type\s*\/Page\b/.test(body));
    return pages.map(body => {
        const size = body.match(/\/MediaBox\s*\[\s*0\s+0\s+([\d.]+)\s+([\d.]+)\s*\]/).slice(1).map(Number);
        const content = objects.get(body.match(/\/Contents\s+(\d+) 0 R/)[1]);
        const stream = content.match(/stream\r?\n([^]*?)\r?\nendstream/)[1];
        const drawing = inflateSync(Buffer.from(stream, 'latin1')).toString('latin1');
        return { size, texts: drawing.match(/\bT[jJ]\b/g)?.length ?? 0 };
    });
}

/** Prints a page with an invoice, to PDF and as the same layout on the screen. */
async function prints(page, name, invoice) {
    for (const { format, millimeters, points } of PAPERS) {
        const file = SCREENSHOTS && path.join(SCREENSHOTS, `${name}-${format}.pdf`);
        const pages = pdfPages(await page.pdf({ format, path: file }));
        assert.equal(pages.length, 1, `${name}: the pages of ${format}`);
        const isPaper = pages[0].size.every((size, side) => Math.abs(size - points[side]) < 2);
        assert.ok(isPaper, `${name}: ${format} has ${pages[0].size} points`);
        assert.ok(pages[0].texts > invoice.lines.length, `${name}: ${pages[0].texts} texts on ${format}`);
        const [width, height] = millimeters.map(size => Math.floor((size - 2 * PRINT_MARGIN) / 25.4 * 96));
        await page.setViewportSize({ width, height });
        await page.emulateMedia({ media: 'print' });
        const cut = await page.locator('body *').evaluateAll(elements => elements.filter(element => {
            const { left, right } = element.getBoundingClientRect();
            return left < 0 || right > innerWidth + 0.5 || element.scrollWidth > Math.ceil(right - left);
        }).map(element => element.outerHTML));
        assert.deepEqual(cut, [], `${name}: does not fit on ${format}`);
        assert.ok(await page.evaluate(() => document.documentElement.scrollHeight) <= height, `${name}: higher than ${format}`);
        const texts = await touching(page);
        if (texts.length > 0) problems.push(`${name}: on ${format} these texts touch: ${texts.join(', ')}`);
        await page.getByRole('heading', { name: `Invoice ${invoice.number}`, exact: true }).waitFor();
        for (const line of invoice.lines) {
            const row = page.getByRole('row').filter({ hasText: line.description }).filter({ hasText: money(line.amount, line.currency) });
            assert.ok(await row.isVisible(), `${name}: ${line.description}`);
        }
        const due = page.getByRole('row', { name: `Amount due ${money(invoice.amountDue, invoice.currency)}`, exact: true });
        assert.ok(await due.isVisible(), `${name}: the amount due`);
        for (const control of await page.locator('a, button, select, input, label, nav').all()) {
            assert.ok(!await control.isVisible(), `${name}: prints ${await control.evaluate(element => element.outerHTML)}`);
        }
        if (SCREENSHOTS) {
            await page.screenshot({ path: path.join(SCREENSHOTS, `${name}-${format}.png`), caret: 'initial', fullPage: true });
        }
        await page.emulateMedia({ media: null });
    }
}

let owner;
let portal;

const flows = {
    async 'an open invoice is declined and then paid on its page, with the keyboard alone'() {
        owner = await createOwner();
        const invoice = await newestInvoice();
        assert.equal(invoice.status, 'open');
        assert.ok(invoice.hostedInvoiceUrl.startsWith(`${BILLING}/pay/`), invoice.hostedInvoiceUrl);
        const page = await newPage();
        await page.goto(invoice.hostedInvoiceUrl);
        assert.equal(await heading(page), `Invoice ${invoice.number}`);
        assert.match(await page.getByRole('complementary').innerText(), /no real money/);
        await inspect(page, 'billing-pay');
        await walk(page, 'billing-pay');
        await choose(page, 'Pay with a test card', '4000 0000 0000 0341: is declined later');
        await press(page, 'Pay');
        assert.equal(await page.getByRole('alert').innerText(), 'The card was declined.');
        await inspect(page, 'billing-pay-declined');
        await walk(page, 'billing-pay-declined');
        await press(page, 'Pay with the saved card', 'Space');
        assert.equal(await page.getByRole('alert').innerText(), 'The card was declined.');
        assert.equal((await newestInvoice()).status, 'open');
        await choose(page, 'Pay with a test card', '4242 4242 4242 4242: succeeds');
        await press(page, 'Pay', 'Space');
        assert.equal(page.url(), invoice.hostedInvoiceUrl);
        assert.equal(await page.getByRole('status').innerText(), 'Nothing has to be paid.');
        assert.equal(await page.getByRole('button').count(), 0);
        await inspect(page, 'billing-paid');
        await walk(page, 'billing-paid');
        assert.equal((await newestInvoice()).status, 'paid');
        await page.context().close();
    },

    async 'a link opens the portal once, and a used or forged one shows an error page'() {
        portal = await openPortal();
        assert.equal(await heading(portal.page), 'Billing');
        await inspect(portal.page, 'billing-portal');
        await walk(portal.page, 'billing-portal');
        assert.equal(await portal.page.getByRole('link', { name: 'Back', exact: true }).getAttribute('href'), RETURN_URL);
        const other = await newPage();
        const refuses = async (url, status, title, name) => {
            assert.equal((await other.goto(url)).status(), status);
            assert.equal(await heading(other), title);
            await inspect(other, name);
        };
        await refuses(portal.url, 404, 'This link does not work', 'billing-portal-link-used');
        await refuses('/portal', 401, 'This session has ended', 'billing-portal-ended');
        await refuses('/pay/forged', 404, 'This link does not work', 'billing-pay-forged');
        await other.context().close();
    },

    async 'a change of the plan is previewed and confirmed in the portal, with the keyboard alone'() {
        const { page } = portal;
        const credit = { customerId: owner.customerId, amount: 500, description: 'Welcome' };
        await billing('POST', '/operator/credits', credit, SERVICE_KEY);
        await choose(page, 'Plan', 'Growth');
        await press(page, 'Show the cost');
        at(page, '/portal?tier=growth&interval=month');
        assert.equal(await described(page, 'New plan'), 'Growth per month');
        const cost = await described(page, 'To pay now');
        await inspect(page, 'billing-portal-preview');
        await walk(page, 'billing-portal-preview');
        assert.equal((await subscription()).tier, 'starter');
        await press(page, 'Change the plan');
        at(page, '/portal?notice=plan-changed');
        assert.match(await page.getByRole('status').innerText(), /^The plan was changed/);
        await inspect(page, 'billing-portal-changed');
        assert.match(await described(page, 'Plan'), /^Growth, 99\.00 USD per month$/);
        const invoice = await newestInvoice();
        assert.deepEqual([invoice.creditsApplied, money(invoice.amountDue, invoice.currency)], [500, cost]);
    },

    async 'a change to a yearly plan is charged as it was previewed'() {
        const { page } = portal;
        await choose(page, 'Plan', 'Scale');
        await choose(page, 'Period', 'per year');
        await press(page, 'Show the cost', 'Space');
        at(page, '/portal?tier=scale&interval=year');
        const selected = name => page.getByLabel(name, { exact: true }).evaluate(element => element.selectedOptions[0].text);
        const cost = await described(page, 'To pay now');
        const shown = [await selected('Plan'), await selected('Period')];
        await press(page, 'Change the plan', 'Space');
        at(page, '/portal?notice=plan-changed');
        const { tier, interval } = await subscription();
        const { amountDue, currency } = await newestInvoice();
        assert.deepEqual({ tier, interval, cost: money(amountDue, currency) }, { tier: 'scale', interval: 'year', cost });
        assert.deepEqual(shown, ['Scale', 'per year'], 'the form must keep the plan of the preview');
    },

    async 'a cancellation is set and taken back in the portal, with the keyboard alone'() {
        const { page } = portal;
        await page.goto('/portal');
        await press(page, await page.getByRole('button', { name: /^Cancel/ }).innerText());
        at(page, '/portal?notice=cancelled');
        const { cancelAtPeriodEnd, cancelAt } = await subscription();
        assert.deepEqual([cancelAtPeriodEnd, await described(page, 'Ends')], [true, cancelAt.slice(0, 10)]);
        await inspect(page, 'billing-portal-cancelled');
        await walk(page, 'billing-portal-cancelled');
        await press(page, 'Keep the current plan', 'Space');
        at(page, '/portal?notice=kept');
        assert.equal((await subscription()).cancelAtPeriodEnd, false);
        assert.equal(await page.getByText('Ends', { exact: true }).count(), 0);
    },

    async 'cards are added, refused, chosen and removed in the portal, with the keyboard alone'() {
        const { page } = portal;
        const methods = async () => (await billing('GET', `/payment-methods?platformId=${owner.platformId}`)).data;
        const last4 = async () => (await methods()).map(({ card }) => card.last4).sort();
        assert.deepEqual(await last4(), ['0341', '4242']);
        await choose(page, 'Add a test card', '4000 0000 0000 0002: is declined at once');
        await press(page, 'Add');
        assert.equal(await page.getByRole('alert').innerText(), 'The card was declined.');
        await inspect(page, 'billing-portal-declined');
        await choose(page, 'Add a test card', '4000 0027 6000 3184: must be confirmed');
        await press(page, 'Add', 'Space');
        at(page, '/portal?notice=card-added');
        assert.deepEqual(await last4(), ['0341', '3184', '4242']);
        await inspect(page, 'billing-portal-cards');
        await walk(page, 'billing-portal-cards');
        const row = digits => page.getByRole('row').filter({ hasText: digits });
        const button = (digits, text) => row(digits).getByRole('button').filter({ hasText: text });
        const name = locator => locator.evaluate(element => element.getAttribute('aria-label') ?? element.innerText);
        await press(page, await name(button('3184', 'Make default')));
        at(page, '/portal?notice=card-chosen');
        assert.match(await row('3184').innerText(), /\(default\)/);
        await press(page, await name(button('0341', 'Remove')), 'Space');
        at(page, '/portal?notice=card-removed');
        assert.deepEqual(await last4(), ['3184', '4242']);
    },

    async 'an invoice of the portal leads to its page'() {
        const { page } = portal;
        const { number } = await newestInvoice();
        await tabTo(page, 'link', number);
        await leads(page, () => page.keyboard.press('Enter'));
        assert.equal(await heading(page), `Invoice ${number}`);
        await page.context().close();
    },

    async 'an invoice is printed on one page, with number, lines and amount due, without controls'() {
        const { data } = await billing('GET', `/invoices?platformId=${owner.platformId}`);
        const change = await billing('GET', `/invoices/${data.at(-2).id}`);
        assert.deepEqual(change.lines.map(({ type }) => type), ['proration_credit', 'proration_charge']);
        const page = await newPage({ extraHTTPHeaders: { authorization: `Bearer ${SERVICE_KEY}` } });
        await page.goto(`/invoices/${change.id}`);
        assert.match(await page.locator('main').innerText(), /Account Books & Daughters\s+billie@example\.org/);
        assert.match(await page.locator('main').innerText(), /Platform GmbH\s+Am Markt 1\s+10115 Berlin\s+Germany/);
        await inspect(page, 'billing-invoice');
        await walk(page, 'billing-invoice');
        await prints(page, 'billing-invoice', change);
        await page.context().close();
    },

    async 'an open invoice is printed from its page without the form'() {
        const { customerId } = owner;
        const { id } = await billing('POST', '/subscription/cancel', { platformId: owner.platformId, immediately: true });
        for (const { id: method } of (await billing('GET', `/payment-methods?platformId=${owner.platformId}`)).data) {
            assert.equal((await billing('POST', `/payment-methods/${method}/detach`)).customerId, null);
        }
        const again = await billing('POST', '/subscription', { tier: 'growth', platformId: owner.platformId });
        assert.notEqual(again.id, id);
        assert.deepEqual([again.customerId, again.status], [customerId, 'incomplete']);
        const invoice = await newestInvoice();
        const page = await newPage();
        await page.goto(invoice.hostedInvoiceUrl);
        assert.ok(await page.getByRole('button', { name: 'Pay', exact: true }).isVisible());
        await prints(page, 'billing-pay', invoice);
        await page.context().close();
    },

    async 'a charge is confirmed on the page of its invoice, with the keyboard alone'() {
        const page = await newPage();
        await page.goto((await newestInvoice()).hostedInvoiceUrl);
        await choose(page, 'Pay with a test card', '4000 0027 6000 3184: must be confirmed');
        await press(page, 'Pay');
        await inspect(page, 'billing-pay-confirm');
        await walk(page, 'billing-pay-confirm');
        await press(page, 'Confirm the charge');
        assert.equal(await page.getByRole('status').innerText(), 'Nothing has to be paid.');
        assert.equal((await newestInvoice()).status, 'paid');
        await page.context().close();
    },

    async 'an invoice opened through the gateway has the same style'() {
        const { id } = await newestInvoice();
        const direct = await newPage({ extraHTTPHeaders: { authorization: `Bearer ${SERVICE_KEY}` } });
        const through = await newPage({ baseURL: GATEWAY, extraHTTPHeaders: { authorization: `Bearer ${owner.token}` } });
        await direct.goto(`/invoices/${id}`);
        await through.goto(`/api/v1/billing/invoices/${id}`);
        assert.equal(await heading(through), await heading(direct));
        const expected = await look(direct);
        assert.notEqual(expected.main.maxWidth, 'none', 'the page of billing itself must have a style');
        assert.deepEqual(await look(through), expected);
        await direct.context().close();
        await through.context().close();
    },

    async 'a card is added once on the page of a setup intent, with the keyboard alone'() {
        const { clientSecret } = await billing('POST', '/setup-intent', { platformId: owner.platformId });
        const page = await newPage();
        await page.goto(`/pay/${clientSecret}`);
        assert.equal(await heading(page), 'Add a card');
        await inspect(page, 'billing-card');
        await walk(page, 'billing-card');
        await choose(page, 'Test card', '4000 0000 0000 0002: is declined at once');
        await press(page, 'Add the card');
        assert.equal(await page.getByRole('alert').innerText(), 'The card was declined.');
        await choose(page, 'Test card', '4242 4242 4242 4242: succeeds');
        await press(page, 'Add the card', 'Space');
        assert.match(await page.locator('main').innerText(), /The card was added/);
        await inspect(page, 'billing-card-added');
        const { data } = await billing('GET', `/payment-methods?platformId=${owner.platformId}`);
        assert.deepEqual(data.map(({ card }) => card.last4).sort(), ['3184', '4242']);
        await page.context().close();
    },

    async 'no page runs a script, also in a browser that would'() {
        const page = await newPage({ javaScriptEnabled: true });
        const scripts = [];
        const client = await page.context().newCDPSession(page);
        client.on('Debugger.scriptParsed', ({ url }) => scripts.push(url));
        await client.send('Debugger.enable');
        page.on('request', request => {
            if (!['document', 'stylesheet'].includes(request.resourceType())) problems.push(`a page loads ${request.url()}`);
        });
        const { url } = await billing('POST', '/portal', { returnUrl: RETURN_URL });
        const paid = await newestInvoice();
        const open = async where => {
            const response = await page.goto(where);
            const policy = response.headers()['content-security-policy'];
            assert.match(policy, /script-src 'none'/, where);
            assert.equal((await response.text()).match(/<script|\son\w+=|javascript:/i), null, where);
        };
        await open(url);
        await open('/portal?tier=starter&interval=month');
        await page.context().setExtraHTTPHeaders({ authorization: `Bearer ${SERVICE_KEY}` });
        await open(`/invoices/${paid.id}`);
        await page.context().setExtraHTTPHeaders({});
        await open('/pay/forged');
        assert.deepEqual(scripts.filter(script => script.startsWith('http')), []);
        // The debugger reports a script of a page that has one.
        const control = `${BILLING}/control`;
        await page.route(control, route => route.fulfill({ contentType: 'text/html', body: '<script>document.title = "x"</script>' }));
        await page.goto(control);
        assert.deepEqual(scripts.filter(script => script.startsWith('http')), [control]);
        await page.context().close();
    },
};

let failed = 0;
for (const [name, flow] of Object.entries(flows)) {
    try {
        await flow();
        console.log(`ok   billing: ${name}`);
    } catch (error) {
        failed += 1;
        console.log(`FAIL billing: ${name}\n${error.stack}`);
    }
}
await browser.close();
for (const problem of problems) console.log(`FAIL billing: ${problem}`);
console.log(`${Object.keys(flows).length - failed} flows, ${inspected.size} pages inspected, ${problems.length} problems`);
process.exit(failed || problems.length ? 1 : 0);
