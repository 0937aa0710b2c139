// Events, regions and, for administrators, the audit log.
import {deleteRegion, removeBroker} from '../actions.js';
import {get} from '../api.js';
import {brokerColumn, tone, vgpuHref} from '../columns.js';
import {h, setText} from '../dom.js';
import {bytes, dateTime} from '../format.js';
import {model, regionKey} from '../model.js';
import {select} from '../dialogs.js';
import {may} from '../rights.js';
import {LiveTable} from '../table.js';
import {EventList, pageHead, panel, view} from './parts.js';

const KINDS = [['', 'All kinds'], ['session', 'Sessions'], ['refused', 'Refusals'], ['worker', 'Workers'], ['gpu', 'GPUs'],
    ['vgpu', 'vGPUs'], ['swap', 'Moved memory'], ['region', 'Regions'], ['admin', 'Administration']];
const SEVERITIES = [['', 'All'], ['warning', 'Warnings and errors'], ['error', 'Errors']];

export function events() {
    const kind = select('', KINDS, {class: 'filter', 'aria-label': 'Kind of events'});
    const severity = select('', SEVERITIES, {class: 'filter', 'aria-label': 'How severe'});
    const list = new EventList(event => (!kind.value || event.kind === kind.value) && (!severity.value
        || event.severity === 'error' || event.severity === severity.value), 500, 'Nothing of this kind.');
    kind.addEventListener('change', () => list.update());
    severity.addEventListener('change', () => list.update());
    return view('Events', h('div', {}, pageHead('Events', {actions: [kind, severity],
        sub: 'What the broker remembers since it started: at most 256 of each kind.'}),
    h('div', {class: 'panel'}, list.element)), {change: () => list.update(), find: kind});
}

export function regions() {
    const columns = [
        {label: 'Region', value: r => r.name, text: r => r.name},
        ...brokerColumn(),
        {label: 'vGPU', value: r => r.vgpu, link: r => ({text: r.vgpu, href: vgpuHref(r.vgpu)})},
        {label: 'State', value: r => r.state, pill: r => ({text: r.state, tone: tone(r.state)})},
        {label: 'Place', grow: true, wide: true, value: r => r.path || r.doorbellSocket,
            text: r => r.problem || r.path || r.doorbellSocket},
        {label: 'Size', num: true, value: r => r.sizeBytes, text: r => bytes(r.sizeBytes)},
        {label: 'Slots', num: true, value: r => r.slotsInUse, text: r => r.slotsInUse + ' / ' + r.slots},
        {label: 'Sessions', num: true, value: r => r.sessions, text: r => String(r.sessions)}];
    if (may('operator')) {
        columns.push({label: '', wide: true, action: r => r.broker === model.broker.name ? {label: 'Stop',
            name: 'Stop serving region ' + r.name, run: () => deleteRegion(r)} : null});
    }
    const table = new LiveTable({caption: 'Regions of shared memory', columns, key: regionKey, sort: [0, false],
        empty: 'No shared memory is served.'});
    return view('Regions', h('div', {}, pageHead('Regions', {sub: 'Shared memory that guests on this host use.'}),
        h('div', {class: 'panel'}, table.element)), {change: () => table.update([...model.regions.values()])});
}

/** The brokers of the pool. They are not in the stream, so the view asks for them while it is open. */
export function brokers() {
    const remove = broker => may('admin') && broker.state === 'silent' ? {label: 'Remove',
        name: 'Remove broker ' + broker.name, run: () => removeBroker(broker)} : null;
    const table = new LiveTable({caption: 'Brokers of the pool', key: b => b.name, sort: [0, false],
        empty: 'This broker is alone: it has its own database.', columns: [
            {label: 'Broker', value: b => b.name, text: b => b.name + (b.self ? ' (this one)' : '')},
            {label: 'State', value: b => b.state, pill: b => ({text: b.state,
                tone: b.state === 'ready' ? 'good' : 'bad'})},
            {label: 'GPUs', num: true, value: b => b.gpus, text: b => String(b.gpus)},
            {label: 'Memory', num: true, value: b => b.totalBytes, text: b => bytes(b.totalBytes)},
            {label: 'vGPUs', num: true, value: b => b.vgpus, text: b => String(b.vgpus)},
            {label: 'Guests connect to', grow: true, wide: true, value: b => b.guestEndpoint,
                text: b => [b.guestEndpoint, b.guestTlsEndpoint && 'tls://' + b.guestTlsEndpoint].filter(e => e)
                    .join(', ')},
            {label: 'Version', minor: true, value: b => b.version, text: b => b.version || '–'},
            {label: '', wide: true, action: remove}]});
    const problem = h('p', {class: 'problem', role: 'status', hidden: true});
    let waiting = false;
    let askedAt = 0;
    const load = async () => {
        if (waiting || Date.now() - askedAt < 2000) {
            return;
        }
        waiting = true;
        askedAt = Date.now();
        try {
            table.update(await get('/brokers'));
            problem.hidden = !model.broker.poolProblem;
            setText(problem, model.broker.poolProblem);
        } catch (failure) {
            problem.hidden = false;
            setText(problem, 'Brokers: ' + failure.message);
        } finally {
            waiting = false;
        }
    };
    return view('Brokers', h('div', {}, pageHead('Brokers', {sub: 'Brokers that share one database.'}), problem,
        h('div', {class: 'panel'}, table.element)), {change: load});
}

export function audit() {
    if (!may('admin')) {
        return null;
    }
    const table = new LiveTable({caption: 'Audit log', key: e => e.seq, sort: [0, true], pageSize: 100,
        empty: 'Nobody has administered this broker.', matches: (e, text) => [e.name, e.action, e.target, e.outcome,
            e.detail, e.peer].some(part => String(part).toLowerCase().includes(text)), columns: [
            {label: 'Time', value: e => e.seq, text: e => dateTime(e.time)},
            {label: 'Who', value: e => e.name, text: e => e.name + (e.role ? ' (' + e.role + ')' : '')},
            {label: 'From', minor: true, value: e => e.peer, text: e => e.peer},
            {label: 'Action', value: e => e.action, text: e => e.action},
            {label: 'Target', value: e => e.target, text: e => e.target || '–'},
            {label: 'Outcome', value: e => e.outcome, pill: e => ({text: e.outcome,
                tone: {done: 'good', refused: 'warn', failed: 'bad'}[e.outcome]})},
            {label: 'Detail', grow: true, wide: true, value: e => e.detail, text: e => e.detail}]});
    const problem = h('p', {class: 'problem', role: 'status', hidden: true});
    const load = async () => {
        try {
            table.update(await get('/audit?limit=1000'));
            problem.hidden = true;
        } catch (failure) {
            problem.hidden = false;
            setText(problem, 'Audit log: ' + failure.message);
        }
    };
    load();
    return view('Audit', h('div', {}, pageHead('Audit log', {actions: [table.filter,
        h('button', {type: 'button', onClick: load}, 'Refresh')]}), problem, h('div', {class: 'panel'}, table.element)),
    {find: table.filter});
}

/** The view of a missing or deleted object. */
export function missing(what) {
    return view('Not found', h('div', {}, pageHead('Not found'), panel('What now', h('p', {class: 'note'},
        what + ' is not there, or not any more. ', h('a', {href: '#/'}, 'To the overview')))));
}
