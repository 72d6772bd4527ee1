// Typical uses of the pages, in a browser without JavaScript (or with it, for passkeys). axe-core inspects each page in light and
// dark mode.

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const { NODE_MODULES, IAM, GATEWAY, SERVICE_KEY, OUTBOX, CHROMIUM, SCREENSHOTS } = process.env;
const require = createRequire(path.join(NODE_MODULES, 'x.js'));
const { chromium } = require('playwright-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const PASSWORD = 'correct horse battery';
const NEW_PASSWORD = 'staple battery horse';

const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: process.getuid() === 0 ? ['--no-sandbox'] : [],
});
if (SCREENSHOTS) fs.mkdirSync(SCREENSHOTS, { recursive: true });

/** Opens a page in a new browser context. Violations of a page's content security policy are collected from the console. */
async function newPage(options) {
    const context = await browser.newContext({ baseURL: IAM, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    page.on('console', message => {
        if (/Content Security Policy/.test(message.text())) problems.push(message.text());
    });
    page.on('pageerror', error => problems.push(error.message));
    return page;
}

/** Opens a page in a browser without JavaScript. */
const visitor = () => newPage({ javaScriptEnabled: false });

/** Opens a page in a browser with JavaScript and a virtual authenticator that verifies its user. */
async function visitorWithPasskeys() {
    const page = await newPage();
    const client = await page.context().newCDPSession(page);
    await client.send('WebAuthn.enable');
    const { authenticatorId } = await client.send('WebAuthn.addVirtualAuthenticator', { options: {
        protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true,
        automaticPresenceSimulation: true,
    } });
    const verifies = isUserVerified => client.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified });
    return { page, verifies };
}

const problems = [];
const inspected = new Set();

/**
 * Inspects a page with axe-core in light and dark mode, and at the width of a phone. A copy of the page's HTML is inspected in
 * another context, which runs JavaScript but has no session.
 */
async function inspect(page, name) {
    if (inspected.has(name)) return;
    inspected.add(name);
    const html = await page.content();
    const href = html.match(/href="([^"]*iam\.css[^"]*)"/)[1];
    const css = await (await page.request.get(href)).text();
    for (const colorScheme of ['light', 'dark']) {
        const context = await browser.newContext({ colorScheme, viewport: { width: 900, height: 800 } });
        const copy = await context.newPage();
        const style = `<style>${css}</style>`;
        await copy.setContent(html.replace(/<link rel="stylesheet"[^>]*>/, () => style));
        await copy.evaluate(axe);
        const found = await copy.evaluate(() => globalThis.axe.run(document, {
            runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
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
        if (SCREENSHOTS) await copy.screenshot({ path: path.join(SCREENSHOTS, `${name}-${colorScheme}-phone.png`), fullPage: true });
        await context.close();
    }
}

/** Waits for a mail to an address. Returns the link in the newest one. */
async function mailedLink(to) {
    for (const end = Date.now() + 20_000; Date.now() < end;) {
        const files = fs.existsSync(OUTBOX) ? fs.readdirSync(OUTBOX).filter(name => name.endsWith('.eml')) : [];
        const mails = files.map(name => path.join(OUTBOX, name))
            .sort((a, b) => fs.statSync(a).mtimeMs - fs.statSync(b).mtimeMs)
            .map(file => fs.readFileSync(file, 'utf8'))
            .filter(text => text.includes(to));
        if (mails.length > 0) {
            let text = mails.at(-1);
            if (/quoted-printable/i.test(text)) {
                text = text.replace(/=\r?\n/g, '').replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
            }
            return text.match(/https?:\/\/\S+/)[0];
        }
        await new Promise(done => setTimeout(done, 50));
    }
    throw new Error(`no mail to ${to}`);
}

const heading = page => page.locator('h1').innerText();
const at = (page, where) => assert.equal(page.url().slice(IAM.length), where);
const press = (page, name) => leads(page, () => page.getByRole('button', { name, exact: true }).click());
const follow = (page, name) => leads(page, () => page.getByRole('link', { name, exact: true }).click());

/** Runs an action that leads to another page, and waits until that page is loaded. */
async function leads(page, act) {
    const loaded = page.waitForEvent('load');
    await act();
    await loaded;
}

async function fill(page, fields) {
    for (const [label, value] of Object.entries(fields)) await page.getByLabel(label, { exact: true }).fill(value);
}

/** Presses Tab until the element with this role and name has the focus. */
async function tabTo(page, role, name) {
    for (let presses = 0; presses < 20; presses += 1) {
        await page.keyboard.press('Tab');
        const target = page.getByRole(role, { name, exact: true });
        if (await target.evaluate(element => element === document.activeElement)) return;
    }
    throw new Error(`the keyboard does not reach ${name}`);
}

/** Returns the code of an authenticator app, `ahead` steps from now (RFC 6238: SHA-1, 6 digits, steps of 30 seconds). */
function totp(uri, ahead) {
    const bits = [...new URL(uri).searchParams.get('secret')]
        .map(letter => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0')).join('');
    const secret = Buffer.from(bits.match(/.{8}/g).map(byte => parseInt(byte, 2)));
    const step = Buffer.alloc(8);
    step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + ahead));
    const hash = createHmac('sha1', secret).update(step).digest();
    const code = (hash.readUInt32BE(hash.at(-1) & 0x0f) & 0x7fff_ffff) % 1_000_000;
    return String(code).padStart(6, '0');
}

async function signUp(name, email) {
    const page = await visitor();
    await page.goto('/sign-up');
    await inspect(page, 'sign-up');
    await fill(page, { 'Your name': name, 'E-mail address': email, 'Password': PASSWORD });
    await press(page, 'Create account');
    at(page, '/account');
    return page;
}

/** Confirms the address of a signed-in user who has not been sent a mail yet. */
async function confirmAddress(page, email) {
    await page.goto('/account');
    await press(page, 'Send a link that confirms it');
    at(page, '/account?notice=link-sent');
    await page.goto(await mailedLink(email));
    await inspect(page, 'verify-email-signed-in');
    await press(page, 'Confirm the address');
    at(page, '/account');
}

const flows = {
    async 'a user signs up, sees the session and signs out'() {
        const page = await signUp('Ada', 'ada@example.org');
        await inspect(page, 'account');
        assert.match(await page.locator('main').innerText(), /Chrome on Linux\s+This session/);
        await press(page, 'Sign out');
        at(page, '/sign-in?notice=signed-out');
        await inspect(page, 'signed-out');
        await page.goto('/account');
        at(page, '/sign-in');
    },

    async 'a user creates an API key for a program and deletes it'() {
        const page = await signUp('Edsger', 'edsger@example.org');
        await follow(page, 'Keys of your programs');
        at(page, '/account/api-keys');
        await inspect(page, 'api-keys-none');
        const data = { name: 'Paths', slug: 'paths' };
        const made = await page.request.post('/api/core/org-setup', { data, headers: { origin: IAM } });
        assert.equal(made.status(), 201, await made.text());
        await page.reload();
        await fill(page, { Name: 'Nightly build' });
        await page.getByLabel('It works', { exact: true }).selectOption('For 30 days');
        await inspect(page, 'api-keys-new');
        await press(page, 'Make the key');
        await inspect(page, 'api-key-made');
        const key = await page.locator('code.secret').innerText();
        const headers = { authorization: `Bearer ${SERVICE_KEY}`, cookie: '' };
        const works = async () => (await (await page.request.post('/api/core/apikey/validate', { data: { key }, headers })).json()).valid;
        assert.equal(await works(), true);
        await follow(page, 'To your keys');
        await inspect(page, 'api-keys');
        await press(page, 'Delete key: Nightly build');
        at(page, '/account/api-keys?notice=deleted');
        assert.equal(await works(), false);
    },

    async 'a wrong password is reported next to its field, and signing in works with the keyboard alone'() {
        const page = await visitor();
        await page.goto('/sign-in?next=%2Fdevice');
        await inspect(page, 'sign-in');
        await tabTo(page, 'textbox', 'E-mail address');
        await page.keyboard.type('ada@example.org');
        await tabTo(page, 'textbox', 'Password');
        await page.keyboard.type('wrong horse battery');
        await leads(page, () => page.keyboard.press('Enter'));
        await inspect(page, 'sign-in-refused');
        const password = page.getByLabel('Password', { exact: true });
        assert.equal(await password.getAttribute('aria-invalid'), 'true');
        const about = await password.getAttribute('aria-describedby');
        assert.match(await page.locator(`#${about}`).innerText(), /wrong/);
        assert.ok(await password.evaluate(element => element === document.activeElement), 'the field must have the focus');
        await page.keyboard.type(PASSWORD);
        await tabTo(page, 'checkbox', 'Keep me signed in on this device');
        await page.keyboard.press('Space');
        await tabTo(page, 'button', 'Sign in');
        await leads(page, () => page.keyboard.press('Enter'));
        at(page, '/device');
        await page.context().close();
    },

    async 'a mailed link signs in once'() {
        const page = await visitor();
        await page.goto('/sign-in');
        await follow(page, 'Sign in with a link by mail');
        await inspect(page, 'magic-link');
        await fill(page, { 'E-mail address': 'linus@example.org' });
        await press(page, 'Send the link');
        at(page, '/magic-link/sent');
        await inspect(page, 'magic-link-sent');
        const link = await mailedLink('linus@example.org');
        await page.goto(link);
        assert.match(await page.locator('main').innerText(), /Sign in as linus@example.org/);
        await inspect(page, 'magic-link-followed');
        await press(page, 'Sign in');
        at(page, '/account');
        assert.match(await page.locator('main').innerText(), /linus@example.org/);
        const other = await visitor();
        await other.goto(link);
        assert.match(await other.getByRole('alert').innerText(), /not valid any more/);
        await inspect(other, 'magic-link-refused');
    },

    async 'a forgotten password can be reset'() {
        const page = await visitor();
        await page.goto('/sign-in');
        await follow(page, 'Forgot your password?');
        await inspect(page, 'reset-password');
        await fill(page, { 'E-mail address': 'ada@example.org' });
        await press(page, 'Send the link');
        at(page, '/reset-password/sent');
        await inspect(page, 'reset-password-sent');
        await page.goto(await mailedLink('ada@example.org'));
        assert.equal(await heading(page), 'Set a new password');
        await inspect(page, 'reset-password-new');
        await fill(page, { 'New password': NEW_PASSWORD });
        await press(page, 'Set the password');
        at(page, '/sign-in?notice=password-changed&next=%2Faccount%2Fsecurity');
        await fill(page, { 'E-mail address': 'ada@example.org', 'Password': NEW_PASSWORD });
        await press(page, 'Sign in');
        at(page, '/account/security');
        await inspect(page, 'account-security');
        await press(page, 'End everything but this session');
        at(page, '/account/security?notice=ended');
        assert.equal(await page.getByText('This session', { exact: true }).count(), 1);
        await inspect(page, 'account-security-ended');
    },

    async 'an invited person signs up and accepts the invitation'() {
        const inviter = await signUp('Grace', 'grace@example.org');
        const call = async (name, data) => {
            const headers = { origin: IAM };
            const answer = await inviter.request.post(`/api/auth/organization/${name}`, { data, headers });
            assert.equal(answer.status(), 200, await answer.text());
            return answer.json();
        };
        const { id } = await call('create', { name: 'Weavers', slug: 'weavers' });
        await call('invite-member', { email: 'wanda@example.org', role: 'member', organizationId: id });
        const page = await visitor();
        await page.goto(await mailedLink('wanda@example.org'));
        assert.equal(await heading(page), 'Sign in');
        await follow(page, 'Create an account');
        await fill(page, { 'Your name': 'Wanda', 'E-mail address': 'wanda@example.org', 'Password': PASSWORD });
        await press(page, 'Create account');
        assert.equal(await heading(page), 'Invitation');
        const text = await page.locator('main').innerText();
        assert.match(text, /Grace \(grace@example.org\) invites you to join Weavers/);
        await inspect(page, 'invitation');
        const link = page.url();
        await press(page, 'Accept');
        at(page, '/account?notice=joined');
        await inspect(page, 'joined');
        await page.goto(link);
        await inspect(page, 'invitation-closed');
        assert.match(await page.getByRole('alert').innerText(), /not open/);
    },

    async 'a device is approved by its code, and its session is ended on the account page'() {
        const page = await signUp('Dora', 'dora@example.org');
        const device = async () => {
            const answer = await fetch(`${IAM}/oauth/device/code`, {
                method: 'POST', body: new URLSearchParams({ client_id: 'core-cli' }),
            });
            assert.equal(answer.status, 200);
            return answer.json();
        };
        const poll = async codes => {
            const answer = await fetch(`${IAM}/oauth/device/token`, {
                method: 'POST',
                body: new URLSearchParams({
                    grant_type: 'urn:ietf:params:oauth:grant-type:device_code', client_id: 'core-cli', device_code: codes.device_code,
                }),
            });
            return answer.json();
        };
        const codes = await device();
        await page.goto(codes.verification_uri);
        await inspect(page, 'device');
        await fill(page, { 'Code': 'bcdf ghjk' });
        await press(page, 'Continue');
        await inspect(page, 'device-refused');
        await fill(page, { 'Code': codes.user_code.toLowerCase() });
        await press(page, 'Continue');
        assert.match(await page.locator('main').innerText(), /core-cli wants to sign in as you/);
        await inspect(page, 'device-decide');
        await press(page, 'Approve');
        at(page, '/device/approved');
        await inspect(page, 'device-approved');
        assert.ok((await poll(codes)).access_token, 'the device must get its token');
        const second = await device();
        await page.goto(second.verification_uri_complete);
        await press(page, 'Deny');
        at(page, '/device/denied');
        await inspect(page, 'device-denied');
        assert.equal((await poll(second)).error, 'access_denied');
        await page.goto('/account');
        await inspect(page, 'account-devices');
        const ends = page.getByRole('button', { name: /^End session: Device: core-cli/ });
        await leads(page, () => ends.click());
        at(page, '/account?notice=session-ended');
        assert.equal(await ends.count(), 0);
    },

    async 'a passkey is added, signs in only with user verification, and is removed'() {
        const { page, verifies } = await visitorWithPasskeys();
        await page.goto('/sign-up');
        await fill(page, { 'Your name': 'Pat', 'E-mail address': 'pat@example.org', 'Password': PASSWORD });
        await press(page, 'Create account');
        at(page, '/account');
        await confirmAddress(page, 'pat@example.org');
        await inspect(page, 'account-without-passkeys');
        await fill(page, { 'Name of the new passkey': 'My laptop' });
        await press(page, 'Add a passkey');
        at(page, '/account?notice=passkey-added');
        await inspect(page, 'account-passkeys');
        assert.equal(await page.getByRole('heading', { name: 'My laptop' }).count(), 1);
        await page.getByRole('button', { name: 'Add a passkey', exact: true }).click();
        await page.getByText('This device has a passkey for your account already.').waitFor();
        await press(page, 'Sign out');
        await verifies(false);
        await page.getByRole('button', { name: 'Sign in with a passkey', exact: true }).click();
        await page.getByText('No passkey was used.').waitFor();
        await inspect(page, 'sign-in-passkey-refused');
        await verifies(true);
        await press(page, 'Sign in with a passkey');
        at(page, '/account');
        assert.match(await page.locator('main').innerText(), /pat@example.org/);
        assert.match(await page.locator('main').innerText(), /last used/);
        await page.locator('summary').click();
        await fill(page, { 'New name': 'Laptop at home' });
        await press(page, 'Rename');
        at(page, '/account?notice=passkey-renamed');
        await page.goto('/account/confirm');
        await inspect(page, 'confirm');
        await press(page, 'Confirm with a passkey');
        at(page, '/account');
        assert.match(await page.locator('main').innerText(), /This session/);
        assert.equal(await page.locator('section[aria-labelledby="sessions"] h3').count(), 1, 'the session must have been renewed');
        await press(page, 'Remove passkey: Laptop at home');
        at(page, '/account?notice=passkey-removed');
        assert.match(await page.locator('main').innerText(), /You have no passkeys/);
        await press(page, 'Sign out');
        await page.getByRole('button', { name: 'Sign in with a passkey', exact: true }).click();
        await page.getByText('This passkey is not known here any more.').waitFor();
        // Without JavaScript only the passkey button is missing.
        const plain = await visitor();
        await plain.goto('/sign-in');
        assert.equal(await plain.getByRole('button', { name: 'Sign in with a passkey' }).count(), 0);
        await plain.context().close();
        await page.context().close();
    },

    async 'a sign-in with a second factor requires a code'() {
        const page = await signUp('Tony', 'tony@example.org');
        const call = async (name, data) => {
            const answer = await page.request.post(`/api/auth/two-factor/${name}`, { data, headers: { origin: IAM } });
            assert.equal(answer.status(), 200, await answer.text());
            return answer.json();
        };
        await confirmAddress(page, 'tony@example.org');
        const { totpURI } = await call('enable', { password: PASSWORD });
        await call('verify-totp', { code: totp(totpURI, 0) });
        const signIn = async () => {
            await page.goto('/account');
            await press(page, 'Sign out');
            await fill(page, { 'E-mail address': 'tony@example.org', 'Password': PASSWORD });
            await press(page, 'Sign in');
        };
        await signIn();
        assert.equal(await heading(page), 'Second factor');
        await inspect(page, 'two-factor');
        await fill(page, { Code: 'not-a-code' });
        await press(page, 'Sign in');
        const code = page.getByLabel('Code', { exact: true });
        assert.equal(await code.getAttribute('aria-invalid'), 'true');
        await inspect(page, 'two-factor-refused');
        await page.goto('/account');
        at(page, '/two-factor');
        // A code is valid once, and a code that is one step ahead is accepted.
        await fill(page, { Code: totp(totpURI, 1) });
        await page.getByLabel('Do not ask for a code on this device for 30 days', { exact: true }).check();
        await press(page, 'Sign in');
        at(page, '/account');
        await signIn();
        at(page, '/account');
        await page.context().close();
    },

    async 'a user who must confirm the address first is told about the mail'() {
        const page = await visitor();
        await page.goto('/sign-up/sent');
        assert.equal(await heading(page), 'Look into your mail');
        await inspect(page, 'sign-up-sent');
    },

    async 'the owner of an address takes over an account that someone else created with it'() {
        const stranger = await signUp('Mallory', 'vera@example.org');
        await press(stranger, 'Send a link that confirms it');
        const page = await visitor();
        await page.goto(await mailedLink('vera@example.org'));
        assert.equal(await heading(page), 'Confirm your address');
        await inspect(page, 'verify-email');
        await fill(page, { 'New password': 'short' });
        await press(page, 'Take the account over');
        await inspect(page, 'verify-email-refused');
        await fill(page, { 'New password': NEW_PASSWORD });
        await press(page, 'Take the account over');
        at(page, '/sign-in?notice=password-changed');
        await stranger.goto('/account');
        at(stranger, '/sign-in');
    },

    async 'a session is ended from another one, and errors are shown as HTML pages'() {
        const page = await visitor();
        await page.goto('/sign-in');
        await fill(page, { 'E-mail address': 'dora@example.org', 'Password': PASSWORD });
        await press(page, 'Sign in');
        at(page, '/account');
        await press(page, 'End all other sessions');
        at(page, '/account?notice=others-ended');
        assert.equal(await page.getByRole('heading', { level: 3 }).count(), 1);
        await page.goto('/nothing/here');
        assert.equal(await heading(page), 'Not found');
        await inspect(page, 'not-found');
        const forged = await page.goto('/sign-in?next=//evil.example');
        assert.equal(forged.status(), 403);
    },

    async 'the API reference shows the operations of every service, and loads nothing from other hosts'() {
        const page = await newPage({ baseURL: GATEWAY, viewport: { width: 1280, height: 800 } });
        page.on('console', message => {
            if (message.type() === 'error') problems.push(`API reference: ${message.text()}`);
        });
        page.on('request', request => {
            const url = request.url();
            if (![`${GATEWAY}/`, `${IAM}/`, 'data:'].some(start => url.startsWith(start))) problems.push(`API reference: loads ${url}`);
        });
        const shows = async ({ document, server, prefix }) => {
            const spec = await (await page.request.get(document)).json();
            // Of a large document, Swagger UI renders the next operations when the reader scrolls to them.
            const first = page.locator('.opblock').first();
            const shown = await first.locator('.opblock-summary-path').getAttribute('data-path');
            const path = spec.paths[shown] ? shown : shown.slice(prefix.length);
            const method = (await first.locator('.opblock-summary-method').innerText()).toLowerCase();
            assert.equal(await first.locator('.opblock-summary-description').innerText(), spec.paths[path][method].summary);
            assert.match(await page.locator('#reference h1, #reference h2').first().innerText(), new RegExp(`^${spec.info.title}`));
            assert.equal(await page.locator('.servers option').innerText(), server);
            assert.ok(shown.startsWith(prefix), shown);
            assert.equal(await page.locator('button', { hasText: /Authorize|Try it out|Execute/ }).count(), 0);
        };
        await page.goto('/docs');
        const services = await page.locator('nav a').allInnerTexts();
        assert.deepEqual(services, ['iam', 'registry', 'provisioning', 'cli', 'billing', 'stacks']);
        for (const [index, service] of services.entries()) {
            if (index > 0) await follow(page, service);
            const [prefix] = (await page.locator('#reference').getAttribute('data-prefixes')).split(' ');
            await shows({ document: `/docs/openapi/${service}.json`, server: GATEWAY, prefix });
            if (SCREENSHOTS) await page.screenshot({ path: path.join(SCREENSHOTS, `docs-${service}.png`) });
        }
        const operation = page.locator('.opblock-summary-control').first();
        await operation.click();
        await page.getByText('Responses', { exact: true }).first().waitFor();
        await page.goto(`${IAM}/docs`);
        assert.equal(await page.locator('nav a').count(), 0);
        await shows({ document: `${IAM}/openapi.json`, server: IAM, prefix: '/' });
        await page.context().close();
    },
};

let failed = 0;
for (const [name, flow] of Object.entries(flows)) {
    try {
        await flow();
        console.log(`ok   ${name}`);
    } catch (error) {
        failed += 1;
        console.log(`FAIL ${name}\n${error.stack}`);
    }
}
await browser.close();
for (const problem of problems) console.log(`FAIL ${problem}`);
console.log(`${Object.keys(flows).length - failed} flows, ${inspected.size} pages inspected, ${problems.length} problems`);
process.exit(failed || problems.length ? 1 : 0);
