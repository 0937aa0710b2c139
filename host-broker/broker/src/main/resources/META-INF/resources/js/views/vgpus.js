// The vGPUs: a table of all, and a view of one with sessions, tokens and plots.
import {changeVgpu, createToken, createVgpu, deleteVgpu, revokeToken} from '../actions.js';
import {get} from '../api.js';
import {fill, gpuNames, matchesVgpu, quotaOf, sessionColumns, tone, totalsOf, vgpuColumns} from '../columns.js';
import {h, setText} from '../dom.js';
import {bytes, count, dateTime, percent} from '../format.js';
import {model} from '../model.js';
import {may} from '../rights.js';
import {LiveTable} from '../table.js';
import {EventList, Facts, HistoryPlots, pageHead, panel, view} from './parts.js';

export function vgpus() {
    const table = new LiveTable({caption: 'vGPUs', columns: vgpuColumns(), key: v => v.name, sort: [0, false],
        empty: 'There is no vGPU.', matches: matchesVgpu});
    return view('vGPUs', h('div', {}, pageHead('vGPUs', {actions: [table.filter, may('operator')
        ? h('button', {type: 'button', class: 'primary', onClick: createVgpu}, 'New vGPU') : null].filter(Boolean)}),
        h('div', {class: 'panel'}, table.element)),
    {change: () => table.update([...model.vgpus.values()]), find: table.filter});
}

// Whether guest packages before version 2 of the handshake can use a token, and the last such use.
const oldProof = t => !t.acceptsOldProof ? 'refused'
    : 'accepted, ' + (t.oldProofUsed ? 'used ' + dateTime(t.oldProofUsed) : 'never used');

class Tokens {
    constructor(name) {
        this.name = name;
        this.table = new LiveTable({caption: 'Tokens of ' + name, key: t => t.keyId, sort: [0, false],
            empty: 'No token opens this vGPU.', columns: [
                {label: 'Key', value: t => t.keyId, text: t => t.keyId},
                {label: 'Note', grow: true, wide: true, value: t => t.note || '', text: t => t.note || '–'},
                {label: 'Made', value: t => t.created, text: t => dateTime(t.created)},
                {label: 'Valid until', value: t => t.expires || '', text: t => t.expires ? dateTime(t.expires) : 'no end'},
                {label: 'Last used', value: t => t.lastUsed || '', text: t => t.lastUsed ? dateTime(t.lastUsed) : 'never'},
                {label: 'Old guest package', value: t => t.acceptsOldProof ? t.oldProofUsed || ' ' : '', text: oldProof},
                {label: '', wide: true, action: t => ({label: 'Revoke', name: 'Revoke token ' + t.keyId,
                    run: () => this.#revoke(t)})}]});
        this.problem = h('p', {class: 'problem', role: 'status', hidden: true});
        this.element = h('div', {}, this.problem, this.table.element);
        this.load();
    }

    async #revoke(token) {
        await revokeToken(this.name, token);
        this.load();
    }

    async load() {
        try {
            this.table.update(await get('/vgpus/' + encodeURIComponent(this.name) + '/tokens'));
            this.problem.hidden = true;
        } catch (failure) {
            this.problem.hidden = false;
            setText(this.problem, 'Tokens: ' + failure.message);
        }
    }
}

const owner = vgpu => vgpu.owner.kind === 'none' ? 'nobody' : vgpu.owner.kind + ' ' + vgpu.owner.id;

/** Where the memory of a swappable vGPU is. */
function swap(vgpu) {
    const now = vgpu.swap;
    return now ? bytes(now.swappedBytes) + ' on the host, moved ' + count(now.swaps) + ' times, waited '
        + (now.waitedMs / 1000).toFixed(1) + ' s' + (now.stays ? '; stays now: ' + now.stays : '') : 'no';
}

function actions(vgpu, current, tokens) {
    if (!may('operator')) {
        return [];
    }
    const token = h('button', {type: 'button', onClick: async () => {
        await createToken(current());
        tokens.load();
    }}, 'New token');
    // Users cannot change or delete vGPUs of the settings here.
    return vgpu.origin === 'settings' ? [token] : [token,
        h('button', {type: 'button', onClick: () => changeVgpu(current())}, 'Change'),
        h('button', {type: 'button', class: 'danger', onClick: () => deleteVgpu(current())}, 'Delete')];
}

export function vgpu(name) {
    let last = model.vgpus.get(name);
    if (!last) {
        return null;
    }
    const of = () => {
        last = model.vgpus.get(name) || last;
        return last;
    };
    const state = h('span', {class: 'pill'});
    const problem = h('p', {class: 'problem', hidden: true});
    const facts = new Facts([
        ['Memory', () => fill(of().usedBytes, quotaOf(of())).text],
        ['Quota on each GPU', () => of().memoryBytes ? bytes(of().memoryBytes) : 'best effort'],
        ['Compute', () => of().mode === 'exclusive' ? 'exclusive' : 'share ' + of().computeShare],
        ['Sessions', () => of().sessions + (of().maxSessions ? ' of ' + of().maxSessions : '')
            + (of().startsWaiting ? ', ' + of().startsWaiting + ' waiting for a worker' : '')],
        ['GPUs asked for', () => of().gpus],
        ['Placed on', () => gpuNames(of().broker, of().placedGpus)],
        ...(model.broker?.name ? [['Broker', () => of().broker || 'none']] : []),
        ['Carriers', () => of().carriers.concat(of().rdma ? ['rdma'] : []).join(', ')], ['Processes', () => of().communication === 'host' ? 'together, by NCCL'
            : 'alone'], ['Swappable', () => swap(of())], ['Owner', () => owner(of())],
        ['Waiting for turns', () => percent(Math.min(100, totalsOf(name).waitedMs / 10
            / Math.max(1, totalsOf(name).sessions)))],
        ['Belongs to', () => of().origin === 'settings' ? 'the broker’s settings' : 'REST'],
        ['Made', () => dateTime(of().created)], ['Changed', () => dateTime(of().changed)]]);
    const plots = new HistoryPlots('vgpu=' + encodeURIComponent(name), () => totalsOf(name),
        ['memory', 'calls', 'bytes', 'waited', 'sessions'], {memory: () => quotaOf(of()) || null});
    const sessions = new LiveTable({caption: 'Sessions of ' + name, columns: sessionColumns(false), key: s => s.id,
        sort: [0, false], empty: 'No guest uses this vGPU now.'});
    const events = new EventList(event => event.vgpu === name, 20, 'Nothing of this vGPU.');
    const tokens = may('operator') ? new Tokens(name) : null;
    const gone = h('p', {class: 'problem', role: 'status', hidden: true}, 'This vGPU is deleted.');
    const element = h('div', {},
        pageHead(name, {crumb: ['vGPUs', '#/vgpus'], marks: [state], actions: actions(last, of, tokens)}),
        h('div', {class: 'stack'}, gone, problem, panel('Settings and use', facts.element), plots.element,
            panel('Sessions', sessions.element), tokens ? panel('Tokens', tokens.element) : null,
            panel('Events', events.element)));
    return view(name, element, {change() {
        const now = of();
        gone.hidden = model.vgpus.has(name);
        setText(state, now.state);
        state.className = 'pill ' + tone(now.state);
        problem.hidden = !now.problem;
        setText(problem, now.problem);
        facts.update();
        sessions.update([...model.sessions.values()].filter(s => s.vgpu === name));
        events.update();
    }, second: () => plots.second()});
}
