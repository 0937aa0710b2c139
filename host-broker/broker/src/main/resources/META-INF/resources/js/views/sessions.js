// The sessions: a table of all, and a view of one with its present work.
import {endSession} from '../actions.js';
import {fill, gpuNames, matchesSession, sessionColumns, tone, vgpuHref} from '../columns.js';
import {h, setText} from '../dom.js';
import {byteRate, bytes, count, dateTime, duration, percent, rate} from '../format.js';
import {model} from '../model.js';
import {Plot} from '../plot.js';
import {may} from '../rights.js';
import {LiveTable} from '../table.js';
import {EventList, Facts, pageHead, panel, view} from './parts.js';

const KEPT = 600;

export function sessions() {
    const table = new LiveTable({caption: 'Sessions', columns: sessionColumns(), key: s => s.id, sort: [0, false],
        empty: 'No guest uses a GPU now.', matches: matchesSession});
    return view('Sessions', h('div', {}, pageHead('Sessions', {actions: [table.filter]}),
        h('div', {class: 'panel'}, table.element)),
    {change: () => table.update([...model.sessions.values()]), find: table.filter});
}

/** Plots of a session since the view was opened: the broker keeps the history of vGPUs, not of sessions. */
class SessionPlots {
    #points = {t: [], calls: [], roundTrips: [], bytesIn: [], bytesOut: [], used: [], waited: []};

    constructor(id) {
        this.id = id;
        this.calls = new Plot({title: 'Calls', series: [{label: 'calls'}, {label: 'round trips'}],
            format: rate, least: 10});
        this.bytes = new Plot({title: 'Bytes', series: [{label: 'in'}, {label: 'out'}], format: byteRate, binary: true});
        this.memory = new Plot({title: 'Device memory', series: [{label: 'used'}], format: bytes, binary: true});
        this.waited = new Plot({title: 'Waiting for its turn', series: [{label: 'of its time'}], format: percent,
            least: 100});
        this.element = h('section', {class: 'stack', 'aria-label': 'Since this view was opened'},
            h('h2', {}, 'Since this view was opened'), h('div', {class: 'grid plots'},
                [this.calls, this.bytes, this.memory, this.waited].map(plot => plot.element)));
    }

    second(session) {
        const rates = model.rate(this.id);
        const points = this.#points;
        Object.entries({t: model.now(), calls: rates.calls, roundTrips: rates.roundTrips, bytesIn: rates.bytesIn,
            bytesOut: rates.bytesOut, used: session.statistics.deviceBytes,
            waited: Math.min(100, rates.waitedMs / 10)}).forEach(([name, value]) => {
            points[name].push(value);
            if (points[name].length > KEPT) {
                points[name].shift();
            }
        });
        this.calls.set(points.t, [points.calls, points.roundTrips]);
        this.bytes.set(points.t, [points.bytesIn, points.bytesOut]);
        this.memory.set(points.t, [points.used], session.memoryBytes || null);
        this.waited.set(points.t, [points.waited]);
    }
}

export function session(idText) {
    const id = Number(idText);
    let last = model.sessions.get(id);
    if (!last) {
        return null;
    }
    const of = () => {
        last = model.sessions.get(id) || last;
        return last;
    };
    const total = name => () => count(of().statistics[name] ?? 0);
    const facts = new Facts([
        ['Program', () => of().program], ['Host', () => of().host], ['Process', () => String(of().guestPid)],
        ['Peer', () => of().peer], ['Carrier', () => of().carrier], ['Token', () => of().keyId || '–'],
        ['Started', () => dateTime(of().started)], ['Running for', () => duration(model.now() - Date.parse(of().started))],
        ['Worker', () => of().workerPid ? 'process ' + of().workerPid : 'waits for one'],
        ['GPUs', () => gpuNames(of().broker, of().gpus)],
        ...(model.broker?.name ? [['Broker', () => of().broker]] : []),
        ['Memory', () => fill(of().statistics.deviceBytes, of().memoryBytes).text],
        ['Calls', total('calls')], ['Round trips', total('roundTrips')], ['Kernels', total('kernels')],
        ['From the guest', () => bytes(of().statistics.bytesIn)], ['To the guest', () => bytes(of().statistics.bytesOut)],
        ['Waited for its turn', () => duration(of().statistics.waitedMs || 0)],
        ['GPU time', () => duration(of().statistics.gpuTimeMs || 0)],
        ['Refused records', total('refusedRecords')]]);
    const plots = new SessionPlots(id);
    const events = new EventList(event => event.sessionId === id, 20, 'Nothing of this session.');
    const state = h('span', {class: 'pill'});
    const over = h('p', {class: 'note panel', role: 'status', hidden: true},
        'This session is over; the figures are its last.');
    const end = may('operator') ? h('button', {type: 'button', class: 'danger', onClick: () => endSession(of())},
        'End session') : null;
    const element = h('div', {},
        pageHead('Session ' + id + ' · ' + last.program, {crumb: ['Sessions', '#/sessions'], marks: [state],
            actions: end ? [end] : [], sub: h('span', {}, 'vGPU ', h('a', {href: vgpuHref(last.vgpu)}, last.vgpu))}),
        h('div', {class: 'stack'}, over, panel('Session', facts.element), plots.element,
            panel('Events', events.element)));
    return view('Session ' + id, element, {change() {
        const now = of();
        const there = model.sessions.has(id);
        over.hidden = there;
        if (end) {
            end.disabled = !there || now.state === 'ending';
        }
        setText(state, there ? now.state : 'over');
        state.className = 'pill ' + (there ? tone(now.state) : '');
        facts.update();
        events.update();
    }, second() {
        if (model.sessions.has(id)) {
            plots.second(of());
        }
    }});
}
