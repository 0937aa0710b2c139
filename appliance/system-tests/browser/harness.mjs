// A real browser for the page's tests, with its own profile folder. It reports every fault of the page.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {createServer, connect} from 'node:net';
import {createRequire} from 'node:module';
import {chromium} from 'playwright-core';

export const LIMIT_MS = 180000; // far longer than any step, so that a loaded machine fails no test

const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'];

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The test's parameters: the broker's address and the users. */
export const given = JSON.parse(process.env.HAWSER_BROWSER_TEST || '{}');

/**
 * Opens a browser, runs a test with a page and closes the browser; fails on faults of the page that the test did not
 * expect.
 */
export async function withPage(options, test) {
    const {http = given.http, expected = [], ...context} = options;
    const browser = await chromium.launch({executablePath: given.chromium, args: FLAGS, timeout: LIMIT_MS});
    const faults = [];
    try {
        const page = await (await browser.newContext({viewport: {width: 1280, height: 800}, ...context})).newPage();
        page.setDefaultTimeout(LIMIT_MS);
        page.on('pageerror', error => faults.push('error: ' + error.stack));
        page.on('console', message => {
            if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) {
                faults.push('console: ' + message.text());
            }
        });
        page.on('request', request => {
            if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== new URL(http).origin) {
                faults.push('a request to another host: ' + request.url());
            }
        });
        page.on('response', response => {
            if (response.status() >= 400 && !expected.includes(response.status())
                    && !(response.status() === 401 && response.url().endsWith('/me'))) {
                faults.push('answered ' + response.status() + ': ' + response.url());
            }
        });
        await page.goto(http + '/');
        await test(page);
    } finally {
        await browser.close();
    }
    assert.deepEqual(faults, []);
}

/** Logs in with the admin token, or as the given user. */
export async function logIn(page, user = null) {
    if (user) {
        await page.getByLabel('Name', {exact: true}).fill(user.name);
    }
    await page.getByLabel('Password or admin token').fill(user ? user.password : given.adminToken);
    await page.getByRole('button', {name: 'Sign in'}).click();
    await page.getByRole('heading', {name: 'Overview'}).waitFor();
    await page.locator('#live[data-state="live"]').waitFor();
}

/** Opens a view by its address. */
export async function goTo(page, hash, heading) {
    await page.evaluate(to => {
        location.hash = to;
    }, hash);
    await page.getByRole('heading', {level: 1, name: heading}).waitFor();
}

/** Polls until the condition holds; fails with the last observation. */
export async function until(what, condition) {
    const end = Date.now() + LIMIT_MS;
    let seen;
    do {
        seen = await condition();
        if (seen === true) {
            return;
        }
        await new Promise(resolve => setTimeout(resolve, 100));
    } while (Date.now() < end);
    assert.fail(what + ' did not happen; last observation: ' + seen);
}

/** Fails on axe's findings of impact serious or worse. */
export async function checkAccessibility(page, where) {
    await page.evaluate(axeSource); // through the debugger, so that the page's content policy stays unchanged
    const found = await page.evaluate(() => window.axe.run(document, {resultTypes: ['violations']}));
    const bad = found.violations.filter(one => ['serious', 'critical'].includes(one.impact)).map(one => one.id + ': '
        + one.help + ' ' + one.nodes.map(node => node.html + ' ' + node.failureSummary).slice(0, 3).join(' | '));
    assert.deepEqual(bad, [], where);
}

/** A connection to the broker that a test can cut. */
export class Wire {
    #sockets = new Set();

    async open() {
        const target = new URL(given.http);
        this.server = createServer(near => {
            const far = connect(Number(target.port), target.hostname);
            for (const [one, other] of [[near, far], [far, near]]) {
                this.#sockets.add(one);
                one.on('error', () => other.destroy());
                one.on('close', () => {
                    this.#sockets.delete(one);
                    other.destroy();
                });
                one.pipe(other);
            }
        });
        await new Promise(resolve => this.server.listen(this.port || 0, '127.0.0.1', resolve));
        this.port = this.server.address().port;
        return 'http://127.0.0.1:' + this.port;
    }

    async cut() {
        const closed = new Promise(resolve => this.server.close(resolve));
        this.#sockets.forEach(socket => socket.destroy());
        await closed;
    }
}
