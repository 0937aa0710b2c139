// Assembles the page: the login, the current view, and the state of the connection.
import {createVgpu} from './actions.js';
import {login, logout, me} from './api.js';
import {ask, dialogOpen, field} from './dialogs.js';
import {announce, byId, h, setText, toast} from './dom.js';
import {count, time} from './format.js';
import {model} from './model.js';
import {become, may, who} from './rights.js';
import {gpu, gpus} from './views/gpus.js';
import {audit, brokers, events, missing, regions} from './views/others.js';
import {overview} from './views/overview.js';
import {session, sessions} from './views/sessions.js';
import {vgpu, vgpus} from './views/vgpus.js';

const SECTIONS = [
    {path: '', label: 'Overview', key: 'o', make: overview},
    {path: 'gpus', label: 'GPUs', key: 'g', make: gpus, one: gpu, what: 'The GPU', size: () => model.gpus.size},
    {path: 'vgpus', label: 'vGPUs', key: 'v', make: vgpus, one: vgpu, what: 'The vGPU', size: () => model.vgpus.size},
    {path: 'sessions', label: 'Sessions', key: 's', make: sessions, one: session, what: 'The session',
        size: () => model.sessions.size},
    {path: 'regions', label: 'Regions', key: 'r', make: regions, size: () => model.regions.size},
    {path: 'brokers', label: 'Brokers', key: 'b', make: brokers},
    {path: 'events', label: 'Events', key: 'e', make: events},
    {path: 'audit', label: 'Audit', key: 'a', make: audit, role: 'admin'}
];

let current = null;
let drawing = false;
let wasLive = false;

// ---- views

function route() {
    const [path = '', rest] = location.hash.replace(/^#\/?/, '').split(/\/(.*)/s);
    const section = SECTIONS.find(one => one.path === path && may(one.role || 'viewer')) || null;
    return {section, name: rest ? decodeURIComponent(rest) : ''};
}

function show(focus) {
    if (!who.role || model.broker === null) {
        return;
    }
    const {section, name} = route();
    current = !section ? missing('This page') : name ? section.one?.(name) || missing((section.what || 'This page')
        + ' ' + name) : section.make();
    byId('main').replaceChildren(current.element);
    document.title = current.title + ' · Hawser';
    byId('sections').querySelectorAll('a').forEach(link => {
        if (section && link.dataset.path === section.path) {
            link.setAttribute('aria-current', name ? 'true' : 'page');
        } else {
            link.removeAttribute('aria-current');
        }
    });
    current.change();
    current.second();
    if (focus) {
        window.scrollTo(0, 0);
        byId('main').focus({preventScroll: true});
        announce(current.title);
    }
}

function sectionsBar() {
    const list = h('ul', {}, SECTIONS.filter(one => may(one.role || 'viewer')).map(one => {
        const size = one.size ? h('span', {class: 'count'}) : null;
        one.sizeElement = size;
        const link = h('a', {href: '#/' + one.path}, one.label, size);
        link.dataset.path = one.path;
        return h('li', {}, link);
    }));
    byId('sections').replaceChildren(list);
    byId('sections').hidden = false;
}

/** Draws once for all changes since the last drawing, and only while the page is visible. */
function draw() {
    if (drawing || !current) {
        return;
    }
    drawing = true;
    requestAnimationFrame(() => {
        drawing = false;
        current?.change();
        SECTIONS.forEach(one => one.sizeElement && setText(one.sizeElement, count(one.size())));
    });
}

// ---- the connection

function showState() {
    const live = byId('live');
    const banner = byId('banner');
    live.hidden = model.state === 'off';
    live.dataset.state = model.state;
    setText(live, model.state === 'live' ? 'Live' : 'Reconnecting');
    banner.hidden = model.state !== 'trying';
    if (model.state === 'trying') {
        const since = model.points.length ? ' The figures are of ' + time(model.points.at(-1).t) + '.' : '';
        setText(banner, model.problem + since + ' Trying again by itself.');
    } else if (model.state === 'live' && !wasLive) {
        announce('Connected to the broker.');
    }
    wasLive = model.state === 'live';
}

// ---- login

function loggedIn(user) {
    become(user);
    sectionsBar();
    const box = byId('user');
    box.hidden = false;
    box.replaceChildren(...[h('span', {class: 'name'}, who.name), h('span', {class: 'role'}, who.role),
        user.via === 'loopback' ? null : h('button', {type: 'button', class: 'quiet', onClick: leave}, 'Sign out')].filter(Boolean));
    byId('main').replaceChildren(h('p', {class: 'note', role: 'status'}, 'Waiting for the broker …'));
    model.start();
}

async function leave() {
    try {
        await logout();
    } catch (failure) {
        toast(failure.message, true);
        return;
    }
    loggedOut('');
}

function loggedOut(reason) {
    model.stop();
    model.broker = null;
    current = null;
    become(null);
    byId('sections').hidden = true;
    byId('user').hidden = true;
    document.querySelectorAll('dialog').forEach(dialog => dialog.close());
    showLogin(reason);
}

function showLogin(reason) {
    const name = h('input', {autocomplete: 'username', spellcheck: false});
    const password = h('input', {type: 'password', autocomplete: 'current-password', required: true});
    const problem = h('p', {class: 'problem', role: 'alert', hidden: !reason}, reason);
    const go = h('button', {type: 'submit', class: 'primary'}, 'Sign in');
    const form = h('form', {class: 'panel', onSubmit: async event => {
        event.preventDefault();
        go.disabled = true;
        problem.hidden = true;
        const user = name.value.trim();
        try {
            loggedIn(await login(user ? {name: user, password: password.value} : {token: password.value.trim()}));
        } catch (failure) {
            problem.hidden = false;
            setText(problem, failure.message);
            password.select();
        } finally {
            go.disabled = false;
        }
    }}, h('h1', {}, 'Sign in to this broker'), problem,
    field('Name', name, 'Empty for the admin token'),
    field('Password or admin token', password, 'The token is in admin.token of the broker’s state folder'), go);
    byId('main').replaceChildren(h('div', {class: 'login'}, form));
    document.title = 'Sign in · Hawser';
    name.focus();
}

// ---- theme, keys

const THEMES = ['auto', 'light', 'dark'];

function themeNow() {
    return document.documentElement.dataset.theme || 'auto';
}

function showTheme() {
    setText(byId('theme'), {auto: '◐', light: '☀', dark: '☾'}[themeNow()]);
    byId('theme').setAttribute('aria-label', 'Colours: ' + themeNow());
    byId('theme').title = 'Colours: ' + themeNow();
}

function nextTheme() {
    const next = THEMES[(THEMES.indexOf(themeNow()) + 1) % THEMES.length];
    if (next === 'auto') {
        delete document.documentElement.dataset.theme;
        localStorage.removeItem('hawser.theme');
    } else {
        document.documentElement.dataset.theme = next;
        localStorage.setItem('hawser.theme', next);
    }
    showTheme();
    announce('Colours: ' + next);
}

const keysOn = () => localStorage.getItem('hawser.keys') !== 'off';

function showKeys() {
    const on = h('input', {type: 'checkbox', checked: keysOn(), onChange: event =>
        localStorage.setItem('hawser.keys', event.target.checked ? 'on' : 'off')});
    const rows = [['?', 'This list'], ['/', 'Filter of the table'], ['n', 'New vGPU'], ['t', 'Colours: auto, light, dark'],
        ...SECTIONS.filter(one => may(one.role || 'viewer')).map(one => ['g ' + one.key, one.label]),
        ['Esc', 'Close a dialog']];
    ask({title: 'Keyboard', submit: 'Close', cancel: null, body: [
        h('dl', {class: 'keys'}, rows.flatMap(([key, what]) => [h('dt', {}, key.split(' ').map(k => h('kbd', {}, k))),
            h('dd', {}, what)])),
        h('label', {class: 'check'}, on, 'Single keys are shortcuts')]}, async () => null);
}

let afterG = 0;

function key(event) {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || dialogOpen() || !keysOn()
        || event.target.closest('input, select, textarea')) {
        return;
    }
    const section = Date.now() - afterG < 1500 && SECTIONS.find(one => one.key === event.key && may(one.role || 'viewer'));
    afterG = 0;
    if (section) {
        location.hash = '#/' + section.path;
    } else if (event.key === 'g') {
        afterG = Date.now();
    } else if (event.key === '?') {
        showKeys();
    } else if (event.key === 't') {
        nextTheme();
    } else if (event.key === '/' && current?.find) {
        current.find.focus();
    } else if (event.key === 'n' && may('operator')) {
        createVgpu();
    } else {
        return;
    }
    event.preventDefault();
}

async function begin() {
    showTheme();
    byId('theme').addEventListener('click', nextTheme);
    byId('help').addEventListener('click', showKeys);
    document.addEventListener('keydown', key);
    window.addEventListener('hashchange', () => show(true));
    model.addEventListener('picture', () => current ? draw() : show(false));
    model.addEventListener('change', draw);
    model.addEventListener('second', () => current?.second());
    model.addEventListener('state', showState);
    model.addEventListener('failed', event => toast(event.detail, true));
    model.addEventListener('unauthorized', () => loggedOut('You are signed out.'));
    try {
        const user = await me();
        if (user) {
            loggedIn(user);
        } else {
            showLogin('');
        }
    } catch (failure) {
        showLogin(failure.message);
    }
}

begin();
