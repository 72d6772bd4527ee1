// A working day with core-cli: real processes, a real server, and a headless browser that approves the sign-in.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const { NODE_MODULES, IAM, GATEWAY, SERVICE_KEY, CHROMIUM, CORE_CLI, SITE, WORK } = process.env;
const require = createRequire(path.join(NODE_MODULES, 'x.js'));
const { chromium } = require('playwright-core');

const PASSWORD = 'correct horse battery';
const folder = path.join(WORK, 'site');
fs.cpSync(SITE, folder, { recursive: true });

const environment = { PATH: process.env.PATH, HOME: WORK, XDG_CONFIG_HOME: path.join(WORK, 'config') };

/** Starts core-cli. Its output is collected in `stdout` and `stderr`; `ended` is a promise of the exit code. */
function start(args, input = '') {
    const child = spawn(CORE_CLI, args, { cwd: folder, env: environment });
    const run = { child, stdout: '', stderr: '' };
    child.stdout.on('data', data => { run.stdout += data; });
    child.stderr.on('data', data => { run.stderr += data; });
    child.stdin.end(input);
    run.ended = new Promise(resolve => child.on('close', resolve));
    return run;
}

/** Runs core-cli to its end, with an expected exit code. */
async function cli(args, { code = 0, input } = {}) {
    const run = start(args, input);
    const ended = await run.ended;
    assert.equal(ended, code, `core-cli ${args.join(' ')}\n${run.stdout}\n${run.stderr}`);
    return run;
}

const json = async args => JSON.parse((await cli([...args, '--output', 'json'])).stdout);

/** Waits until a function returns a value. The processes of the test run at their own pace. */
async function until(what, find) {
    const end = Date.now() + 30_000;
    while (Date.now() < end) {
        const found = await find();
        if (found) return found;
        await new Promise(resolve => setTimeout(resolve, 50));
    }
    assert.fail(`timeout: ${what}`);
}

/** Returns what a site host responds. Every name below localhost is this machine, which Node.js does not know. */
async function page(url, file = '') {
    const { host, port } = new URL(url);
    const http = await import('node:http');
    return new Promise((resolve, reject) => {
        const request = http.get({ host: '127.0.0.1', port, path: `/${file}`, headers: { host } }, response => {
            const parts = [];
            response.on('data', part => parts.push(part));
            response.on('end', () => resolve({ status: response.statusCode, body: Buffer.concat(parts) }));
        });
        request.on('error', reject);
    });
}

const isSame = (response, file) => response.status === 200 && response.body.equals(fs.readFileSync(path.join(folder, file)));

async function api(method, url, body, token = SERVICE_KEY) {
    const response = await fetch(url, {
        method,
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: body && JSON.stringify(body),
    });
    const text = await response.text();
    assert.ok(response.ok, `${method} ${url}: ${response.status} ${text}`);
    return text && JSON.parse(text);
}

const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: process.getuid() === 0 ? ['--no-sandbox'] : [],
});
const tab = await (await browser.newContext({ baseURL: IAM, javaScriptEnabled: false })).newPage();
tab.setDefaultTimeout(20_000);

const steps = {
    async 'a person signs in from a terminal with the browser'() {
        await tab.goto('/sign-up');
        await tab.getByLabel('Your name', { exact: true }).fill('Clio');
        await tab.getByLabel('E-mail address', { exact: true }).fill('clio@example.org');
        await tab.getByLabel('Password', { exact: true }).fill(PASSWORD);
        await tab.getByRole('button', { name: 'Create account', exact: true }).click();
        await tab.waitForURL(/\/account/);
        const data = { name: 'Analytical Sites', slug: 'sites' };
        const made = await tab.request.post('/api/core/org-setup', { data, headers: { origin: IAM } });
        assert.equal(made.status(), 201, await made.text());
        const login = start(['login', '--no-browser', '--api-url', GATEWAY]);
        const address = await until('the address', () => /https?:\/\/\S+\/device\S*/.exec(login.stdout + login.stderr)?.[0]);
        const code = await until('the code', () => /[A-Z]{4}-[A-Z]{4}/.exec(login.stdout + login.stderr)?.[0]);
        await tab.goto(address);
        await tab.getByLabel('Code', { exact: true }).fill(code);
        await tab.getByRole('button', { name: 'Continue', exact: true }).click();
        await tab.getByRole('button', { name: 'Approve', exact: true }).click();
        assert.equal(await login.ended, 0, login.stderr);
        assert.match((await cli(['whoami'])).stdout, /clio@example\.org/);
        const tokens = path.join(environment.XDG_CONFIG_HOME, 'core-cli', 'tokens');
        for (const name of fs.readdirSync(tokens)) {
            assert.equal(fs.statSync(path.join(tokens, name)).mode & 0o077, 0, `${name} is private`);
        }
    },

    async 'a site is deployed and served byte for byte'() {
        assert.match((await cli(['platforms'])).stdout, /sites/);
        await cli(['link', 'sites']);
        assert.match(fs.readFileSync(path.join(folder, 'core.toml'), 'utf8'), /platform/);
        const deployed = await json(['deploy', '.', '--message', 'first']);
        assert.equal(deployed.status, 'active');
        for (const file of ['index.html', 'css/site.css', 'images/lanes.png']) {
            const served = await page(deployed.url, file === 'index.html' ? '' : file);
            assert.ok(isSame(served, file), `${file} is served unchanged`);
        }
        assert.equal((await page(deployed.url, 'core.toml')).status, 404);
    },

    async 'only a changed file is sent, and a rollback needs no upload'() {
        const before = fs.readFileSync(path.join(folder, 'index.html'));
        fs.appendFileSync(path.join(folder, 'index.html'), '<!-- second -->\n');
        const run = await cli(['deploy', '--message', 'second']);
        assert.match(run.stderr + run.stdout, /\b1 file\b.* sent/);
        const live = await json(['deployments']);
        assert.ok(isSame(await page(live[0].url), 'index.html'));
        assert.deepEqual(live.map(deployment => deployment.message), ['second', 'first']);
        // Each deployment keeps an address of its own.
        assert.deepEqual((await page(live[1].permalink)).body, before);
        const begun = Date.now();
        await cli(['rollback', '--yes']);
        assert.ok(Date.now() - begun < 5_000, 'a rollback takes less than 5 s');
        assert.deepEqual((await page(live[0].url)).body, before);
    },

    async 'a pinned deployment is not replaced'() {
        await cli(['pin']);
        const refused = await cli(['deploy'], { code: 5 });
        assert.match(refused.stderr, /core-cli unpin/);
        await cli(['unpin']);
        await cli(['deploy', '--yes']);
        const live = (await json(['deployments'])).find(deployment => deployment.isLive);
        assert.ok(isSame(await page(live.url), 'index.html'));
    },

    async 'each branch has a preview, which can be promoted'() {
        fs.appendFileSync(path.join(folder, 'index.html'), '<!-- preview -->\n');
        const preview = await json(['deploy', '--branch', 'redesign']);
        const other = await json(['deploy', '--branch', 'other/branch']);
        assert.ok(isSame(await page(preview.url), 'index.html'));
        assert.ok(isSame(await page(other.url), 'index.html'));
        const live = (await json(['deployments', '--branch', 'production'])).find(deployment => deployment.isLive);
        assert.ok(!isSame(await page(live.url), 'index.html'));
        await cli(['promote', preview.deploymentId, '--yes']);
        assert.ok(isSame(await page(live.url), 'index.html'));
    },

    async 'a worker sees a secret, and the log shows its requests'() {
        const script = 'export default { fetch(request, env) { console.log("asked", request.url.length); '
            + 'return new Response(env.GREETING ?? "no greeting"); } };';
        const stackDefinition = {
            resources: [{ name: 'hello', type: 'worker', mainModule: 'main.js', modules: { 'main.js': script } }],
        };
        await api('POST', `${GATEWAY}/api/v1/stacks`, { name: 'hello', displayName: 'Hello', description: 'A worker' });
        await api('POST', `${GATEWAY}/api/v1/stacks/hello/versions`, { version: '1.0.0', coreSdkVersion: '1.0.0', stackDefinition });
        assert.match((await cli(['stacks', 'activate', 'hello', '--dry-run'])).stdout, /hello/);
        await cli(['stacks', 'activate', 'hello', '--yes']);
        const platform = (await json(['platforms']))[0].id;
        const resources = await api('GET', `${GATEWAY}/api/v1/platforms/${platform}/resources`);
        const worker = resources.data.find(resource => resource.cfName.includes('hello'));
        assert.equal((await page(worker.cfUrl)).body.toString(), 'no greeting');
        const secret = 'bonjour-à-tous';
        const set = await cli(['secrets', 'set', 'GREETING', '--resource', worker.id], { input: secret });
        assert.ok(!(set.stdout + set.stderr).includes(secret));
        assert.match((await cli(['secrets', 'list', '--resource', worker.id])).stdout, /GREETING +set/);
        await until('the worker restarts', async () => (await page(worker.cfUrl)).body.toString() === secret);
        const log = await until('the request is logged', async () => {
            const { stdout } = await cli(['logs', '--resource', worker.cfName]);
            return stdout.includes('GET') && stdout.includes('asked') && stdout;
        });
        assert.ok(!log.includes(secret));
        await cli(['secrets', 'delete', 'GREETING', '--resource', worker.id, '--yes']);
        await until('the secret is gone', async () => (await page(worker.cfUrl)).body.toString() === 'no greeting');
    },

    async 'two processes share one refresh, and a stolen refresh token ends the session'() {
        const tokens = path.join(environment.XDG_CONFIG_HOME, 'core-cli', 'tokens');
        const file = path.join(tokens, fs.readdirSync(tokens).find(name => name.endsWith('.json')));
        const refreshToken = () => /"refresh_?token":\s*"([^"]+)"/i.exec(fs.readFileSync(file, 'utf8'))[1];
        const expire = () => {
            const text = fs.readFileSync(file, 'utf8').replace(/("expires_?at":\s*)\d+/i, '$10');
            fs.writeFileSync(file, text, { mode: 0o600 });
        };
        const stolen = refreshToken();
        expire();
        await Promise.all([cli(['whoami']), cli(['whoami'])]);
        const second = refreshToken();
        assert.notEqual(second, stolen);
        // That one refresh is sent and not two is tested in examples/cli/tests, against a server that counts. The next refresh
        // uses the new token, so that the stolen one has no time of grace any more.
        expire();
        await cli(['whoami']);
        assert.notEqual(refreshToken(), second);
        const reused = await fetch(`${IAM}/oauth/token`, {
            method: 'POST',
            body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: stolen, client_id: 'core-cli' }),
        });
        assert.equal(reused.status, 400);
        const after = await cli(['whoami'], { code: 4 });
        assert.match(after.stderr, /core-cli login/);
    },
};

let failed = 0;
for (const [name, step] of Object.entries(steps)) {
    try {
        await step();
        console.log(`ok   core-cli: ${name}`);
    } catch (error) {
        failed += 1;
        console.error(`FAIL core-cli: ${name}\n${error.stack}\n`);
        break;
    }
}
await browser.close();
process.exit(failed ? 1 : 0);
