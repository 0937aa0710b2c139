// Columns of vGPUs and sessions for the tables of several views.
import {byteRate, bytes, ofTotal, percent, rate, shortUuid} from './format.js';
import {gpuKey, model, waitedPercent} from './model.js';
import {may} from './rights.js';
import {endSession} from './actions.js';

const NO_TOTALS = {sessions: 0, usedBytes: 0, calls: 0, roundTrips: 0, bytesIn: 0, bytesOut: 0, waitedMs: 0};

export const totalsOf = name => model.ofVgpu.get(name) || NO_TOTALS;

/** Use of a quota; a null share without one. */
export function fill(used, quota) {
    const share = quota > 0 ? used / quota : null;
    return {share, text: quota > 0 ? ofTotal(used, quota) : bytes(used),
        tone: share === null ? '' : share > 0.98 ? 'full' : share > 0.9 ? 'high' : ''};
}

/** Memory quota of a vGPU over all its GPUs; 0 for none. */
export const quotaOf = vgpu => vgpu.memoryBytes * Math.max(1, vgpu.placedGpus.length);

const STATE_TONES = {ready: 'good', waiting: '', unplaced: 'bad', running: 'good', starting: 'warn', ending: 'warn',
    serving: 'good', failed: 'bad', ok: 'good', failing: 'warn', lost: 'bad'};

export const tone = state => STATE_TONES[state] || '';

export const vgpuHref = name => '#/vgpus/' + encodeURIComponent(name);

/** The column of the broker; none when the broker is alone. */
export const brokerColumn = () => model.broker?.name
    ? [{label: 'Broker', minor: true, value: one => one.broker, text: one => one.broker || '–'}] : [];

/** The GPUs of a session or vGPU by their numbers, or the beginnings of their UUIDs while they are unknown. */
export const gpuNames = (broker, uuids) => uuids.map(uuid => model.gpus.get(gpuKey(broker, uuid))?.index !== undefined
    ? 'GPU ' + model.gpus.get(gpuKey(broker, uuid)).index : shortUuid(uuid)).join(', ') || '–';

export function vgpuColumns() {
    return [
        {label: 'vGPU', value: v => v.name, link: v => ({text: v.name, href: vgpuHref(v.name)})},
        ...brokerColumn(),
        {label: 'State', value: v => v.state, pill: v => ({text: v.state, tone: tone(v.state)})},
        {label: 'Sessions', num: true, value: v => v.sessions,
            text: v => v.maxSessions ? v.sessions + ' / ' + v.maxSessions : String(v.sessions)},
        {label: 'Memory', num: true, wide: true, value: v => v.usedBytes, bar: v => fill(v.usedBytes, quotaOf(v))},
        {label: 'Share', num: true, minor: true, least: true, value: v => v.computeShare,
            text: v => v.mode === 'exclusive' ? 'exclusive' : percent(v.computeShare)},
        {label: 'Calls', num: true, value: v => totalsOf(v.name).calls, text: v => rate(totalsOf(v.name).calls)},
        {label: 'Round trips', num: true, minor: true, value: v => totalsOf(v.name).roundTrips,
            text: v => rate(totalsOf(v.name).roundTrips)},
        {label: 'In', num: true, value: v => totalsOf(v.name).bytesIn, text: v => byteRate(totalsOf(v.name).bytesIn)},
        {label: 'Out', num: true, value: v => totalsOf(v.name).bytesOut,
            text: v => byteRate(totalsOf(v.name).bytesOut)},
        {label: 'Waiting', num: true, value: v => waitedPercent(totalsOf(v.name)),
            text: v => percent(waitedPercent(totalsOf(v.name)))}
    ];
}

/** Columns of sessions, without the vGPU's column in a view of one vGPU. */
export function sessionColumns(withVgpu = true) {
    const columns = [
        {label: 'Session', value: s => s.id, link: s => ({text: s.id + ' · ' + s.program, href: '#/sessions/' + s.id})},
        {label: 'vGPU', value: s => s.vgpu, link: s => ({text: s.vgpu, href: vgpuHref(s.vgpu)})},
        ...brokerColumn(),
        {label: 'Host', minor: true, least: true, cut: true, value: s => s.host, text: s => s.host},
        {label: 'Carrier', minor: true, least: true, value: s => s.carrier, text: s => s.carrier},
        {label: 'State', value: s => s.state, pill: s => ({text: s.state, tone: tone(s.state)})},
        {label: 'Memory', num: true, wide: true, value: s => s.statistics.deviceBytes,
            bar: s => fill(s.statistics.deviceBytes, s.memoryBytes)},
        {label: 'Calls', num: true, value: s => model.rate(s.id).calls, text: s => rate(model.rate(s.id).calls)},
        {label: 'Round trips', num: true, minor: true, value: s => model.rate(s.id).roundTrips,
            text: s => rate(model.rate(s.id).roundTrips)},
        {label: 'In', num: true, value: s => model.rate(s.id).bytesIn, text: s => byteRate(model.rate(s.id).bytesIn)},
        {label: 'Out', num: true, value: s => model.rate(s.id).bytesOut,
            text: s => byteRate(model.rate(s.id).bytesOut)},
        {label: 'Waiting', num: true, value: s => model.rate(s.id).waitedMs,
            text: s => percent(Math.min(100, model.rate(s.id).waitedMs / 10))}
    ];
    if (!withVgpu) {
        columns.splice(1, 1);
    }
    if (may('operator')) {
        columns.push({label: '', wide: true, action: s => s.state === 'ending' ? null
            : {label: 'End', name: 'End session ' + s.id, run: () => endSession(s)}});
    }
    return columns;
}

export const matchesVgpu = (v, text) => [v.name, v.owner.id, v.state, v.mode, v.origin, v.broker].some(
    field => field.toLowerCase().includes(text));

export const matchesSession = (s, text) => [String(s.id), s.vgpu, s.program, s.host, s.peer, s.carrier, s.state,
    s.broker].some(
    field => field.toLowerCase().includes(text));
