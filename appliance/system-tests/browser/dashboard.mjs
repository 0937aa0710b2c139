// The tests of the page, by name. DashboardIT starts the processes that each needs and runs: node dashboard.mjs NAME.
import assert from 'node:assert/strict';
import {mkdirSync} from 'node:fs';
import {Wire, checkAccessibility, given, goTo, logIn, until, withPage} from './harness.mjs';

const VIEWS = [['#/', 'Overview'], ['#/gpus', 'GPUs'], ['#/vgpus', 'vGPUs'], ['#/sessions', 'Sessions'],
    ['#/regions', 'Regions'], ['#/events', 'Events'], ['#/vgpus/default', 'default']];

const number = text => {
    const [, digits, unit] = /([\d.,]+)\s*([kMG]?)/u.exec(text) || [null, '0', ''];
    return Number(digits.replaceAll(',', '')) * {'': 1, k: 1e3, M: 1e6, G: 1e9}[unit];
};

const tile = (page, label) => page.locator('.tile', {hasText: label}).locator('.value');

const dialog = page => page.getByRole('dialog');

async function detailViews(page) {
    // The page's first picture may be a second old, and so older than the session.
    const sessions = page.locator('#sections a[data-path="sessions"] .count');
    await until('the session on the page', async () => await sessions.textContent() === '1' || sessions.textContent());
    const session = await page.evaluate(async () => (await (await fetch('/api/v1/sessions')).json())[0]);
    const gpu = await page.evaluate(async () => (await (await fetch('/api/v1/gpus')).json())[0]);
    return [...VIEWS, ['#/sessions/' + session.id, new RegExp('Session ' + session.id)],
        ['#/gpus/' + gpu.uuid, 'GPU ' + gpu.index + ' · ' + gpu.name]];
}

/** Opens a view by two keys. The keys must follow each other within 1.5 s, so a slow machine tries again. */
async function goByKeys(page, keys, heading) {
    const there = page.getByRole('heading', {level: 1, name: heading});
    await until(heading + ' by keys', async () => {
        for (const key of keys) {
            await page.keyboard.press(key);
        }
        return there.waitFor({timeout: 5000}).then(() => true, () => 'another view');
    });
}

const tests = {
    /** Without a login the page shows nothing. A wrong login shows the server's message; a login survives a reload. */
    async login() {
        await withPage({expected: [401]}, async page => {
            await page.getByRole('heading', {name: 'Sign in to this broker'}).waitFor();
            assert.equal(await page.locator('table').count(), 0);
            await page.getByLabel('Password or admin token').fill('wrong');
            await page.getByRole('button', {name: 'Sign in'}).click();
            await page.getByRole('alert').filter({hasText: /./}).waitFor();
            assert.ok((await page.getByRole('alert').textContent()).length > 5);
            await logIn(page);
            assert.equal(await page.locator('.user .role').textContent(), 'admin');
            assert.equal(await page.evaluate(() => document.cookie), '', 'no script can read the login');
            await page.reload();
            await page.getByRole('heading', {name: 'Overview'}).waitFor();
            await page.getByRole('button', {name: 'Sign out'}).click();
            await page.getByRole('heading', {name: 'Sign in to this broker'}).waitFor();
            assert.equal(await page.evaluate(async () => (await fetch('/api/v1/sessions')).status), 401);
        });
    },

    /** The numbers of a running program appear and change without a reload. */
    async live() {
        await withPage({}, async page => {
            await logIn(page);
            await until('the rate of calls above 0', async () => number(await tile(page, 'Calls').textContent()) > 0
                || tile(page, 'Calls').textContent());
            const first = await tile(page, 'Calls').textContent();
            await until('a changed rate of calls', async () => await tile(page, 'Calls').textContent() !== first || first);
            const row = page.getByRole('row', {name: new RegExp('· hold')}).first();
            await row.waitFor();
            assert.match(await row.textContent(), /MiB/);
            await page.getByText(/Session \d+ started: hold/).first().waitFor();
            await row.getByRole('link', {name: /· hold/}).click();
            await page.getByRole('heading', {level: 1, name: /Session \d+ · hold/}).waitFor();
            const line = page.locator('figure', {hasText: 'round trips'}).locator('path.line').first();
            await until('a plot of several points', async () => (await line.getAttribute('d')).split('L').length > 3);
            const before = await line.getAttribute('d');
            await until('a growing plot', async () => await line.getAttribute('d') !== before);
            await goTo(page, '#/vgpus/default', 'default');
            await until('the history of sessions', async () => (await page.locator('figure', {hasText: 'Sessions'}).locator('path.line')
                .getAttribute('d'))?.length > 10);
        });
    },

    /** A vGPU is created, rejected with the broker's reason, changed, opened by a token, and deleted. */
    async vgpus() {
        await withPage({expected: [409]}, async page => {
            await logIn(page);
            await page.getByRole('button', {name: 'New vGPU'}).click();
            await dialog(page).getByLabel('Name', {exact: true}).fill('from-page');
            await dialog(page).getByLabel('Memory of each GPU', {exact: true}).fill('900000');
            await dialog(page).getByRole('button', {name: 'Create vGPU'}).click();
            await dialog(page).getByRole('alert').filter({hasText: /\d/}).waitFor();
            const refusal = await dialog(page).getByRole('alert').textContent();
            assert.equal(refusal, await page.evaluate(async () => (await (await fetch('/api/v1/vgpus', {method: 'POST',
                headers: {'Content-Type': 'application/json', 'X-Hawser-Request': '1'}, body: JSON.stringify({
                    name: 'from-page', memoryBytes: 900000 * 1024 ** 3})})).json()).detail), 'the broker’s own words');
            await dialog(page).getByLabel('Memory of each GPU', {exact: true}).fill('64');
            await dialog(page).getByLabel('Memory of each GPU: unit').selectOption('MiB');
            await dialog(page).getByLabel('Compute share').fill('30');
            await dialog(page).getByRole('button', {name: 'Create vGPU'}).click();
            await page.getByRole('heading', {level: 1, name: 'from-page'}).waitFor();
            await page.getByText('0 B / 64.0 MiB').or(page.getByText('0 / 64.0 MiB')).first().waitFor();

            // The broker compares each second: a vGPU made and changed within one second appears only as made.
            await page.getByText('vGPU from-page was made', {exact: true}).first().waitFor();
            await page.getByRole('button', {name: 'Change'}).click();
            await dialog(page).getByLabel('Compute share').fill('70');
            await dialog(page).getByLabel('its memory may move to the host').check();
            await dialog(page).getByRole('button', {name: 'Apply'}).click();
            await page.locator('dd', {hasText: 'share 70'}).waitFor();
            await page.locator('dd', {hasText: 'on the host, moved 0 times'}).waitFor();
            await page.getByText('vGPU from-page was changed', {exact: true}).first().waitFor();

            await page.getByRole('button', {name: 'New token'}).click();
            await dialog(page).getByLabel('Note').fill('for the test');
            await dialog(page).getByRole('button', {name: 'Create token'}).click();
            const secret = await dialog(page).locator('.secret').textContent();
            assert.match(secret, /^[^.\s]+\..{20,}$/);
            await dialog(page).getByRole('button', {name: 'Done'}).click();
            await page.getByRole('cell', {name: 'for the test'}).waitFor();
            assert.ok(!(await page.content()).includes(secret), 'the page shows the secret only once');
            await page.getByRole('button', {name: /^Revoke token/}).click();
            await dialog(page).getByRole('button', {name: 'Revoke token'}).click();
            await page.getByText('No token opens this vGPU.').waitFor();

            await page.getByRole('button', {name: 'Delete'}).click();
            await dialog(page).getByRole('button', {name: 'Cancel'}).click();
            await page.getByRole('heading', {level: 1, name: 'from-page'}).waitFor();
            await page.getByRole('button', {name: 'Delete'}).click();
            await dialog(page).getByRole('button', {name: 'Delete vGPU'}).click();
            await page.getByRole('heading', {level: 1, name: 'vGPUs'}).waitFor();
            await until('the end of its row', async () => await page.getByRole('row', {name: /from-page/}).count() === 0);

            await goTo(page, '#/audit', 'Audit log');
            await page.getByLabel('Filter: Audit log').fill('from-page');
            await page.getByRole('row', {name: /createVgpu.*refused/}).first().waitFor();
            await page.getByRole('row', {name: /createVgpu.*done/}).waitFor();
            await page.getByRole('row', {name: /deleteVgpu.*done/}).waitFor();
        });
    },

    /** A session ends only after a confirmation. */
    async end() {
        await withPage({}, async page => {
            await logIn(page);
            await goTo(page, '#/sessions', 'Sessions');
            const button = page.getByRole('button', {name: /^End session \d+$/}).first();
            const name = await button.getAttribute('aria-label');
            await button.click();
            await dialog(page).getByRole('button', {name: 'Cancel'}).click();
            await button.click();
            await page.keyboard.press('Escape');
            assert.equal(await dialog(page).count(), 0);
            assert.equal(await page.evaluate(async () => (await (await fetch('/api/v1/sessions')).json()).length), 1);
            await button.click();
            await dialog(page).getByRole('button', {name: 'End session'}).click();
            await until('the end of its row', async () => await page.getByRole('button', {name}).count() === 0);
            await goTo(page, '#/events', 'Events');
            await page.getByText(new RegExp('Session ' + name.match(/\d+/)[0] + ' ended: ')).waitFor();
        });
    },

    /** A rejected guest appears at once, with the reason that it received. */
    async refusals() {
        await withPage({}, async page => {
            await logIn(page);
            await goTo(page, '#/events', 'Events');
            await page.getByLabel('Kind of events').selectOption('refused');
            await page.getByText('the token is not known to this broker').first().waitFor();
        });
    },

    /** The whole page works by keyboard, and the focus is visible. */
    async keyboard() {
        await withPage({}, async page => {
            const focused = () => page.evaluate(() => document.activeElement.textContent.trim()
                || document.activeElement.getAttribute('aria-label') || document.activeElement.id);
            await page.getByRole('heading', {name: 'Sign in to this broker'}).waitFor();
            await page.keyboard.press('Tab');
            await page.keyboard.type(given.adminToken);
            await page.keyboard.press('Enter');
            await page.getByRole('heading', {name: 'Overview'}).waitFor();
            await page.reload();
            await page.getByRole('heading', {name: 'Overview'}).waitFor();
            await page.keyboard.press('Tab');
            assert.equal(await focused(), 'Skip to content');
            await page.keyboard.press('Tab');
            await page.keyboard.press('Tab');
            assert.equal(await focused(), 'Overview');
            const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outline);
            assert.match(outline, /solid/, 'the focus is visible: ' + outline);
            await goByKeys(page, 'gv', 'vGPUs');
            assert.equal(await page.evaluate(() => document.activeElement.id), 'main', 'the view has the focus');
            await page.keyboard.press('/');
            await page.keyboard.type('defa');
            assert.equal(await page.getByRole('link', {name: 'default'}).count(), 1);
            await page.keyboard.press('Tab');
            await page.keyboard.press('Enter');
            await dialog(page).getByLabel('Name', {exact: true}).waitFor();
            for (let i = 0; i < 30; i++) {
                await page.keyboard.press('Tab');
                assert.ok(await page.evaluate(() => document.activeElement === document.body
                    || document.activeElement.closest('dialog') !== null), 'the dialog keeps the focus');
            }
            await page.keyboard.press('Escape');
            assert.equal(await dialog(page).count(), 0);
            assert.equal(await focused(), 'New vGPU', 'the focus returns to its place');
            await page.keyboard.press('?');
            await dialog(page).getByText('Single keys are shortcuts').waitFor();
            await page.keyboard.press('Escape');
            await goByKeys(page, 'gs', 'Sessions');
        });
    },

    /** No view is wider than a small phone. */
    async phone() {
        await withPage({viewport: {width: 320, height: 640}, hasTouch: true, isMobile: true}, async page => {
            await logIn(page);
            for (const [hash, heading] of await detailViews(page)) {
                await goTo(page, hash, heading);
                const width = await page.evaluate(() => document.documentElement.scrollWidth);
                assert.ok(width <= 320, hash + ' is wide: ' + width);
            }
            await goTo(page, '#/vgpus', 'vGPUs');
            await page.getByRole('button', {name: 'New vGPU'}).tap();
            const box = await dialog(page).boundingBox();
            assert.ok(box.x >= 0 && box.x + box.width <= 320, JSON.stringify(box));
        });
    },

    /** The page follows the system's dark scheme and its own switch, whose state it stores. */
    async dark() {
        const brightness = page => page.evaluate(() => getComputedStyle(document.body).backgroundColor
            .match(/[\d.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0));
        await withPage({colorScheme: 'dark'}, async page => {
            await logIn(page);
            assert.ok(await brightness(page) < 150, 'dark like the system');
            await page.getByRole('button', {name: 'Colours: auto'}).click();
            assert.ok(await brightness(page) > 600, 'light by the switch');
            await page.reload();
            await page.getByRole('button', {name: 'Colours: light'}).click();
            assert.ok(await brightness(page) < 150, 'dark by the switch');
            await page.emulateMedia({colorScheme: 'light'});
            assert.ok(await brightness(page) < 150, 'the switch is stored');
        });
    },

    /** axe finds no serious fault in any view, in both schemes, nor in the dialogs. */
    async accessibility() {
        for (const colorScheme of ['light', 'dark']) {
            await withPage({colorScheme}, async page => {
                await page.getByRole('heading', {name: 'Sign in to this broker'}).waitFor();
                await checkAccessibility(page, 'login, ' + colorScheme);
                await logIn(page);
                for (const [hash, heading] of [...await detailViews(page), ['#/audit', 'Audit log']]) {
                    await goTo(page, hash, heading);
                    await page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => resolve())));
                    await checkAccessibility(page, hash + ', ' + colorScheme);
                }
                await page.keyboard.press('n');
                await dialog(page).waitFor();
                await checkAccessibility(page, 'new vGPU, ' + colorScheme);
                await page.keyboard.press('Escape');
                await page.keyboard.press('?');
                await checkAccessibility(page, 'keyboard, ' + colorScheme);
            });
        }
    },

    /** The page offers a viewer no forbidden action. */
    async viewer() {
        await withPage({}, async page => {
            await logIn(page, given.viewer);
            assert.equal(await page.locator('.user .role').textContent(), 'viewer');
            for (const [hash, heading] of await detailViews(page)) {
                await goTo(page, hash, heading);
                for (const name of [/^New/, /^End/, /^Change$/, /^Delete$/, /^Revoke/, /^Stop/]) {
                    assert.equal(await page.getByRole('button', {name}).count(), 0, hash + ' offers ' + name);
                }
            }
            assert.equal(await page.getByRole('link', {name: 'Audit'}).count(), 0);
            await page.keyboard.press('n');
            assert.equal(await dialog(page).count(), 0);
        });
    },

    /** The page shows a broken connection and reconnects by itself. */
    async reconnect() {
        const wire = new Wire();
        await withPage({http: await wire.open()}, async page => {
            await logIn(page);
            await wire.cut();
            await page.locator('#live[data-state="trying"]').waitFor();
            assert.match(await page.locator('#banner').textContent(), /Trying again by itself/);
            await wire.open();
            await page.locator('#live[data-state="live"]').waitFor();
            await until('the end of the banner', async () => await page.locator('#banner').isHidden());
            await until('live numbers', async () => number(await tile(page, 'Calls').textContent()) > 0
                || tile(page, 'Calls').textContent());
        });
        await wire.cut();
    },

    /** Takes the pictures of how-to/monitoring.md. */
    async pictures() {
        mkdirSync(given.pictures, {recursive: true});
        const take = async (page, name) => {
            await page.mouse.move(0, 0);
            await page.screenshot({path: given.pictures + '/' + name + '.png'});
        };
        for (const colorScheme of ['light', 'dark']) {
            await withPage({colorScheme, viewport: {width: 1320, height: 860}}, async page => {
                await logIn(page);
                await new Promise(resolve => setTimeout(resolve, given.pictureSeconds * 1000));
                await take(page, 'page-' + colorScheme);
                await goTo(page, '#/vgpus/' + given.pictureVgpu, given.pictureVgpu);
                await new Promise(resolve => setTimeout(resolve, 3000));
                await take(page, 'page-vgpu-' + colorScheme);
            });
        }
        await withPage({viewport: {width: 390, height: 780}, isMobile: true, hasTouch: true, deviceScaleFactor: 1.5},
            async page => {
                await logIn(page);
                await new Promise(resolve => setTimeout(resolve, 5000));
                await take(page, 'page-phone');
            });
    }
};

const name = process.argv[2];
if (!Object.hasOwn(tests, name)) {
    console.error('usage: dashboard.mjs NAME; NAME is one of ' + Object.keys(tests).join(', '));
    process.exit(2);
}
await tests[name]();
console.log('PASS ' + name);
