// Plots over time as SVG. A label describes each plot in words.
import {h, newId, setText, svg} from './dom.js';
import {minute, time} from './format.js';

const HEIGHT = 150;
const LEFT = 58;
const BOTTOM = 20;
const TOP = 8;
const STEPS = [10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 21600, 43200];

/** A plot of one or two series with a shared scale. */
export class Plot {
    #format;
    #series;
    #limit;
    #least;
    #points = {t: [], values: []};
    #span = [0, 1];
    #scale = null;

    /** Options: title, series: [{label}], format(value), binary for bytes, least: the lower bound of the scale's top. */
    constructor({title, series, format, binary = false, least = 0}) {
        this.title = title;
        this.#series = series;
        this.#format = format;
        this.#least = least;
        this.binary = binary;
        const id = newId('plot');
        this.reading = h('span', {class: 'reading'});
        this.svg = svg('svg', {role: 'img', 'aria-labelledby': id, height: HEIGHT});
        this.label = h('span', {class: 'visually-hidden', id});
        this.element = h('figure', {class: 'panel plot'},
            h('figcaption', {class: 'plot-head'}, h('h3', {}, title), this.reading), this.label, this.svg);
        this.svg.addEventListener('pointermove', event => this.#point(event));
        this.svg.addEventListener('pointerleave', () => this.#unpoint());
        new ResizeObserver(() => this.#draw()).observe(this.svg);
    }

    /** Shows points: times in ms, a list of values for each series (null is unknown), and a limit or null. */
    set(times, values, limit = null) {
        this.#points = {t: times, values};
        this.#limit = limit;
        this.#span = times.length > 1 ? [times[0], times.at(-1)] : [Date.now() - 1000, Date.now()];
        this.#draw();
    }

    #draw() {
        const width = this.svg.clientWidth;
        if (width === 0) {
            return;
        }
        const known = this.#points.values.flat().filter(value => value !== null && value !== undefined);
        const most = Math.max(this.#least, this.#limit || 0, ...(known.length > 5000 ? [maximum(known)] : known));
        const top = niceTop(most, this.binary);
        const [from, to] = this.#span;
        const x = when => LEFT + (when - from) / (to - from || 1) * (width - LEFT - 4);
        const y = value => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
        this.#scale = {x, y, width, from, to};
        const parts = [];
        for (const share of [0, 0.5, 1]) {
            parts.push(svg('line', {class: 'rule', x1: LEFT, x2: width, y1: y(top * share), y2: y(top * share)}));
            parts.push(svg('text', {x: LEFT - 8, y: y(top * share) + 4, 'text-anchor': 'end'},
                this.#format(top * share)));
        }
        parts.push(...this.#timeTicks(x, from, to, width));
        if (this.#limit) {
            parts.push(svg('line', {class: 'limit', x1: LEFT, x2: width, y1: y(this.#limit), y2: y(this.#limit)}));
        }
        this.#points.values.forEach((values, i) => {
            const {line, area} = paths(this.#points.t, values, x, y);
            parts.push(svg('path', {class: i ? 'area second' : 'area', d: area}));
            parts.push(svg('path', {class: i ? 'line second' : 'line', d: line}));
        });
        this.cursor = svg('line', {class: 'cursor', y1: TOP, y2: HEIGHT - BOTTOM, visibility: 'hidden'});
        parts.push(this.cursor);
        this.svg.setAttribute('viewBox', '0 0 ' + width + ' ' + HEIGHT);
        this.svg.replaceChildren(...parts);
        this.#showNow(known);
    }

    #timeTicks(x, from, to, width) {
        const room = Math.max(2, Math.floor((width - LEFT) / 52));
        const step = STEPS.find(seconds => (to - from) / 1000 / seconds <= room) || 86400;
        const ticks = [];
        // Ticks lie at round wall-clock times.
        const zone = new Date(to).getTimezoneOffset() * 60000;
        for (let t = Math.ceil((from - zone) / (step * 1000)) * step * 1000 + zone; t <= to; t += step * 1000) {
            if (x(t) > LEFT + 14 && x(t) < width - 16) {
                ticks.push(svg('text', {x: x(t), y: HEIGHT - 4, 'text-anchor': 'middle'},
                    step < 60 ? time(t) : minute(t)));
            }
        }
        return ticks;
    }

    #showNow(known) {
        const last = this.#points.values.map(values => values.findLast(value => value !== null && value !== undefined));
        const text = last[0] === undefined ? 'no figures'
            : last.map((value, i) => this.#named(value, i)).join(' · ');
        if (this.cursor.getAttribute('visibility') === 'hidden') {
            this.#read(last);
        }
        setText(this.label, this.title + ', since ' + time(this.#span[0]) + ': now ' + text
            + (known.length ? ', at most ' + this.#format(maximum(known)) : '')
            + (this.#limit ? ', limit ' + this.#format(this.#limit) : ''));
    }

    #named(value, i) {
        const text = value === null || value === undefined ? '–' : this.#format(value);
        return this.#series.length > 1 ? this.#series[i].label + ' ' + text : text;
    }

    #point(event) {
        const {t, values} = this.#points;
        if (!this.#scale || t.length < 2) {
            return;
        }
        const {x, width, from, to} = this.#scale;
        const at = event.clientX - this.svg.getBoundingClientRect().left;
        const when = from + (at - LEFT) / (width - LEFT - 4) * (to - from);
        let best = 0;
        for (let i = 1; i < t.length; i++) {
            best = Math.abs(t[i] - when) < Math.abs(t[best] - when) ? i : best;
        }
        this.cursor.setAttribute('x1', x(t[best]));
        this.cursor.setAttribute('x2', x(t[best]));
        this.cursor.setAttribute('visibility', 'visible');
        this.#read(values.map(list => list[best]), time(t[best]));
    }

    /** Shows a value of each series, with colours where the plot has several. */
    #read(values, when = '') {
        const several = this.#series.length > 1;
        this.reading.replaceChildren(when, ...values.map((value, i) => h('span', {},
            several ? h('span', {class: 'swatch ' + (i ? 'second' : '')}) : null, several ? this.#series[i].label + ' ' : null,
            h('b', {}, value === null || value === undefined ? '–' : this.#format(value)))));
    }

    #unpoint() {
        this.cursor?.setAttribute('visibility', 'hidden');
        this.#showNow(this.#points.values.flat().filter(value => value !== null && value !== undefined));
    }
}

/** The paths of a line and of the area below it, with gaps for unknown values. */
function paths(times, values, x, y) {
    let line = '';
    let area = '';
    let begun = null;
    for (let i = 0; i <= times.length; i++) {
        const value = i < times.length ? values[i] : null;
        if (value === null || value === undefined) {
            if (begun !== null) {
                area += 'L' + round(x(times[i - 1])) + ' ' + round(y(0)) + 'L' + round(x(begun)) + ' ' + round(y(0)) + 'Z';
            }
            begun = null;
        } else {
            const step = (begun === null ? 'M' : 'L') + round(x(times[i])) + ' ' + round(y(value));
            begun ??= times[i];
            line += step;
            area += step;
        }
    }
    return {line, area};
}

const round = value => Math.round(value * 10) / 10;

const maximum = values => values.reduce((most, value) => Math.max(most, value), 0);

/** The next round number: 1, 2, 5 of tens, or of 1024s for bytes. */
function niceTop(most, binary) {
    if (most <= 0) {
        return binary ? 1024 : 1;
    }
    const unit = binary ? 1024 ** Math.floor(Math.log(most) / Math.log(1024)) : 1;
    const left = most / unit;
    const ten = 10 ** Math.floor(Math.log10(left));
    const step = [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find(factor => factor * ten >= left);
    return step * ten * unit;
}

/** A small plot without axes; hidden from screen readers, which get the figure beside it. */
export class Spark {
    constructor() {
        this.area = svg('path', {class: 'area'});
        this.line = svg('path', {});
        this.element = svg('svg', {class: 'spark', viewBox: '0 0 100 26', preserveAspectRatio: 'none',
            'aria-hidden': 'true'}, this.area, this.line);
    }

    /** Shows the last values. */
    set(values, points = 120) {
        const shown = values.slice(-points);
        const most = maximum(shown) || 1;
        const x = i => 100 - (shown.length - 1 - i) / (points - 1) * 100;
        const {line, area} = paths(shown.map((_, i) => i), shown, x, value => 25 - value / most * 23);
        this.line.setAttribute('d', line);
        this.area.setAttribute('d', area);
    }
}
