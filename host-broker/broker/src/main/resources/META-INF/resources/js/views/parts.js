// Parts that several views share.
import {get} from '../api.js';
import {totalsOf} from '../columns.js';
import {h, setText} from '../dom.js';
import {byteRate, bytes, count, dateTime, percent, rate, time} from '../format.js';
import {model, waitedPercent} from '../model.js';
import {Plot} from '../plot.js';

/** A panel with a heading; more stands to its right. */
export function panel(title, content, ...more) {
    return h('section', {class: 'panel', 'aria-label': title}, h('div', {class: 'panel-head'}, h('h2', {}, title),
        more), content);
}

/** The head of a view: its heading, a line below it, and buttons. */
export function pageHead(title, {crumb, sub, marks = [], actions = []} = {}) {
    return h('div', {class: 'page-head'},
        h('div', {}, crumb ? h('p', {class: 'crumb'}, h('a', {href: crumb[1]}, crumb[0])) : null, h('h1', {}, title)),
        marks, actions.length ? h('div', {class: 'actions'}, actions) : null, sub ? h('p', {class: 'sub'}, sub) : null);
}

/** A list of changing facts, each [label, text(), wide]. */
export class Facts {
    #facts;

    constructor(facts) {
        this.#facts = facts.map(([label, text, wide]) => ({text, dd: h('dd'), label, wide}));
        this.element = h('dl', {class: 'facts panel-body'}, this.#facts.map(fact =>
            h('div', {class: fact.wide ? 'fact-wide' : ''}, h('dt', {}, fact.label), fact.dd)));
    }

    update() {
        this.#facts.forEach(fact => setText(fact.dd, fact.text()));
    }
}

/** Matching events, newest first. */
export class EventList {
    #shown = new Map();

    constructor(fits, limit, empty = 'Nothing has happened since the broker started.') {
        this.fits = fits;
        this.limit = limit;
        this.list = h('ul', {class: 'events'});
        this.none = h('p', {class: 'empty'}, empty);
        this.element = h('div', {}, this.list, this.none);
    }

    update() {
        const events = model.events.filter(this.fits).slice(0, this.limit);
        this.none.hidden = events.length > 0;
        const keys = events.map(event => event.started + event.seq);
        for (const [key, item] of this.#shown) {
            if (!keys.includes(key)) {
                item.remove();
                this.#shown.delete(key);
            }
        }
        events.forEach((event, i) => {
            if (!this.#shown.has(keys[i])) {
                const item = eventItem(event);
                this.#shown.set(keys[i], item);
                this.list.insertBefore(item, this.list.children[i] || null);
            }
        });
    }
}

function eventItem(event) {
    const today = new Date(event.time).toDateString() === new Date().toDateString();
    return h('li', {}, h('span', {class: 'dot ' + event.severity, 'aria-hidden': 'true'}),
        h('span', {class: 'what'}, event.severity === 'info' ? null
            : h('span', {class: 'visually-hidden'}, event.severity + ': '), event.text),
        h('span', {class: 'when'}, h('time', {dateTime: event.time}, today ? time(event.time) : dateTime(event.time)),
            ' · ' + event.kind, event.vgpu ? ' · ' + event.vgpu : ''));
}

const RANGES = [['10 min', 600], ['1 h', 3600], ['6 h', 21600], ['24 h', 86400]];
const REFRESH_MS = 30000;

/** The history of one object as plots, which update themselves. */
export class HistoryPlots {
    #query;
    #live;
    #limits;
    #seconds = 600;
    #history = null;
    #loadedMs = 0;
    #asked = 0;

    /**
     * Makes the plots.
     *
     * @param query of the history: '', 'gpu=..' or 'vgpu=..'.
     * @param live the totals and, for GPUs, utilizationPercent of this second.
     * @param only names of the plots to show.
     * @param limits of a plot by name, as functions; null for none.
     */
    constructor(query, live, only, limits = {}) {
        this.#query = query;
        this.#live = live;
        this.#limits = limits;
        this.plots = PLOTS.filter(plot => only.includes(plot.name)).map(plot => ({...plot, plot: new Plot(plot)}));
        this.buttons = RANGES.map(([label, seconds]) => h('button', {type: 'button',
            'aria-pressed': String(seconds === this.#seconds), onClick: () => this.#range(seconds)}, label));
        this.problem = h('p', {class: 'problem', role: 'status', hidden: true});
        this.element = h('section', {class: 'stack', 'aria-label': 'History'},
            h('div', {class: 'history-head'}, h('h2', {}, 'History'),
                h('div', {class: 'segments', role: 'group', 'aria-label': 'Time shown'}, this.buttons)),
            this.problem, h('div', {class: 'grid plots'}, this.plots.map(one => one.plot.element)));
        this.load();
    }

    #range(seconds) {
        this.#seconds = seconds;
        RANGES.forEach(([, value], i) => this.buttons[i].setAttribute('aria-pressed', String(value === seconds)));
        this.load();
    }

    async load() {
        const asked = ++this.#asked;
        this.#loadedMs = Date.now();
        try {
            const history = await get('/history?seconds=' + this.#seconds + (this.#query ? '&' + this.#query : ''));
            if (asked !== this.#asked) {
                return;
            }
            const from = Date.parse(history.from);
            history.t = history.sessions.map((_, i) => from + i * history.stepSeconds * 1000);
            this.#history = history;
            this.problem.hidden = true;
            this.#show();
        } catch (failure) {
            this.problem.hidden = false;
            setText(this.problem, 'History: ' + failure.message);
        }
    }

    /** Updates the plots once a second. */
    second() {
        if (this.#seconds > 600 || !this.#history) {
            if (Date.now() - this.#loadedMs > REFRESH_MS) {
                this.load();
            }
            return;
        }
        const totals = this.#live();
        const history = this.#history;
        const now = model.now();
        if (history.t.length > 0 && now - history.t.at(-1) < 500) {
            return;
        }
        history.t.push(now);
        for (const [name, value] of Object.entries({sessions: totals.sessions, usedBytes: totals.usedBytes,
            callsPerSecond: totals.calls, roundTripsPerSecond: totals.roundTrips, bytesInPerSecond: totals.bytesIn,
            bytesOutPerSecond: totals.bytesOut, utilizationPercent: totals.utilizationPercent ?? null,
            waitedPercent: waitedPercent(totals)})) {
            history[name].push(value);
        }
        while (history.t.length > 2 && now - history.t[0] > 601000) {
            history.t.shift();
            PLOTS.flatMap(plot => plot.of).forEach(name => history[name].shift());
        }
        this.#show();
    }

    #show() {
        for (const {name, plot, of} of this.plots) {
            plot.set(this.#history.t, of.map(figure => this.#history[figure]),
                this.#limits[name] ? this.#limits[name]() : null);
        }
    }
}

const PLOTS = [
    {name: 'memory', title: 'Device memory used', series: [{label: 'used'}], format: bytes, binary: true,
        of: ['usedBytes']},
    {name: 'utilization', title: 'Utilisation', series: [{label: 'GPU'}], format: percent, least: 100,
        of: ['utilizationPercent']},
    {name: 'calls', title: 'Calls', series: [{label: 'calls'}, {label: 'round trips'}],
        format: rate, least: 10, of: ['callsPerSecond', 'roundTripsPerSecond']},
    {name: 'bytes', title: 'Bytes', series: [{label: 'in'}, {label: 'out'}], format: byteRate, binary: true,
        of: ['bytesInPerSecond', 'bytesOutPerSecond']},
    {name: 'waited', title: 'Waiting for its turn', series: [{label: 'of its time'}], format: percent, least: 100,
        of: ['waitedPercent']},
    {name: 'sessions', title: 'Sessions', series: [{label: 'sessions'}], format: count, least: 4, of: ['sessions']}
];

/** A view: its element and its update function. */
export function view(title, element, {change = () => { }, second = () => { }, find = null} = {}) {
    return {title, element, change, second, find};
}

export {totalsOf};
