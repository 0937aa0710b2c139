// The GPUs: a card of each, and a view of one GPU with plots.
import {fill, matchesVgpu, sessionColumns, tone, vgpuColumns} from '../columns.js';
import {Meter, h, setText} from '../dom.js';
import {bytes, percent} from '../format.js';
import {model} from '../model.js';
import {LiveTable} from '../table.js';
import {EventList, Facts, HistoryPlots, pageHead, panel, view} from './parts.js';

const NO_TOTALS = {sessions: 0, usedBytes: 0, calls: 0, roundTrips: 0, bytesIn: 0, bytesOut: 0, waitedMs: 0};

export const gpuHref = uuid => '#/gpus/' + encodeURIComponent(uuid);

const known = value => value !== null && value !== undefined;

/** Memory in use: of the whole device where the driver reports it, else the sessions' memory. */
const used = gpu => known(gpu.memoryUsedBytes) ? gpu.memoryUsedBytes : gpu.usedBytes;

class GpuCard {
    constructor(uuid) {
        this.name = h('a', {href: gpuHref(uuid)});
        this.health = h('span', {class: 'pill'});
        this.memory = new Meter('Memory', ['reserved', 'used']);
        this.memoryText = h('span', {class: 'num'});
        this.busy = new Meter('Utilisation');
        this.busyText = h('span', {class: 'num'});
        this.busyPart = measure('Utilisation', this.busyText, this.busy);
        this.facts = h('p', {class: 'gpu-facts'});
        this.problem = h('p', {class: 'problem', hidden: true});
        this.element = h('article', {class: 'panel gpu'},
            h('div', {class: 'gpu-head'}, h('h3', {}, this.name), this.health), this.problem,
            measure('Memory', this.memoryText, this.memory), this.busyPart, this.facts);
    }

    update(gpu) {
        setText(this.name, (known(gpu.index) ? gpu.index + ' · ' : '') + gpu.name);
        setText(this.health, gpu.health || 'ok');
        this.health.className = 'pill ' + tone(gpu.health || 'ok');
        this.problem.hidden = !gpu.healthDetail;
        setText(this.problem, gpu.healthDetail || '');
        const reserved = gpu.reservedBytes || 0;
        const text = bytes(used(gpu)) + ' used' + (reserved ? ', ' + bytes(reserved) + ' reserved' : '') + ' of '
            + bytes(gpu.totalBytes);
        setText(this.memoryText, text);
        this.memory.set([reserved / gpu.totalBytes, used(gpu) / gpu.totalBytes], text,
            fill(used(gpu), gpu.totalBytes).tone);
        this.busyPart.hidden = !known(gpu.utilizationPercent);
        setText(this.busyText, percent(gpu.utilizationPercent));
        this.busy.set([(gpu.utilizationPercent || 0) / 100], percent(gpu.utilizationPercent));
        const facts = [['vGPUs', gpu.vgpus], ['sessions', gpu.sessions],
            ['°C', gpu.temperatureCelsius], ['W', known(gpu.powerWatts) ? Math.round(gpu.powerWatts) : null]]
            .filter(([, value]) => known(value));
        const shown = facts.map(fact => fact.join()).join();
        if (shown !== this.shown) {
            this.shown = shown;
            this.facts.replaceChildren(...facts.map(([label, value]) => h('span', {}, h('b', {}, String(value)), ' '
                + (value === 1 ? label.replace(/s$/, '') : label))));
        }
    }
}

function measure(label, text, meter) {
    return h('div', {class: 'measure'}, h('div', {class: 'measure-head'}, h('span', {}, label), text), meter.element);
}

/** A card for each GPU. */
export class GpuCards {
    #cards = new Map();

    constructor() {
        this.grid = h('div', {class: 'gpus'});
        this.none = h('p', {class: 'panel empty'}, 'The GPUs are known as soon as the first worker is ready.');
        this.element = h('div', {}, this.grid, this.none);
    }

    update() {
        this.none.hidden = model.gpus.size > 0;
        for (const [uuid, card] of this.#cards) {
            if (!model.gpus.has(uuid)) {
                card.element.remove();
                this.#cards.delete(uuid);
            }
        }
        for (const [uuid, gpu] of model.gpus) {
            if (!this.#cards.has(uuid)) {
                this.#cards.set(uuid, new GpuCard(uuid));
                this.grid.append(this.#cards.get(uuid).element);
            }
            this.#cards.get(uuid).update(gpu);
        }
    }
}

export function gpus() {
    const cards = new GpuCards();
    const legend = h('p', {class: 'legend'}, h('span', {}, h('span', {class: 'swatch'}), 'used'),
        h('span', {}, h('span', {class: 'swatch reserved'}), 'reserved by vGPUs'));
    return view('GPUs', h('div', {}, pageHead('GPUs', {actions: [legend]}), cards.element),
        {change: () => cards.update()});
}

export function gpu(uuid) {
    const of = () => model.gpus.get(uuid);
    const has = (list, value) => Array.isArray(list) && list.includes(value);
    const first = of();
    if (!first) {
        return null;
    }
    const title = 'GPU ' + first.index + ' · ' + first.name;
    const facts = new Facts([
        ['UUID', () => uuid, true], ['Backend', () => of().backend], ['PCI address', () => of().pciBusId || '–'],
        ['Compute capability', () => of().computeCapability], ['Health', () => of().healthDetail || of().health || 'ok'],
        ['Memory', () => bytes(of().totalBytes)], ['Reserved by vGPUs', () => bytes(of().reservedBytes || 0)],
        ['Held by sessions', () => bytes(of().usedBytes)],
        ['Used on the device', () => bytes(of().memoryUsedBytes)],
        ['A worker’s context', () => bytes(of().contextBytes || null)],
        ['Temperature', () => known(of().temperatureCelsius) ? of().temperatureCelsius + ' °C' : '–'],
        ['Power', () => known(of().powerWatts) ? Math.round(of().powerWatts) + ' W' : '–'],
        ['Utilisation', () => percent(of().utilizationPercent)]]);
    const plots = new HistoryPlots('gpu=' + encodeURIComponent(uuid), () => ({...NO_TOTALS, ...model.ofGpu.get(uuid),
        utilizationPercent: of()?.utilizationPercent}), ['memory', 'utilization', 'calls', 'bytes'],
        {memory: () => of()?.totalBytes});
    const vgpus = new LiveTable({caption: 'vGPUs on this GPU', columns: vgpuColumns(), key: v => v.name, sort: [5, true],
        empty: 'No vGPU is placed here.', matches: matchesVgpu});
    const sessions = new LiveTable({caption: 'Sessions on this GPU', columns: sessionColumns(), key: s => s.id,
        sort: [6, true], empty: 'No session has this GPU.'});
    const events = new EventList(event => event.kind === 'gpu' && event.text.includes(uuid), 20,
        'Nothing of this GPU.');
    const element = h('div', {}, pageHead(title, {crumb: ['GPUs', '#/gpus']}),
        h('div', {class: 'stack'}, panel('Device', facts.element), plots.element,
            panel('vGPUs', vgpus.element, h('span', {class: 'more'}, vgpus.filter)),
            panel('Sessions', sessions.element), panel('Events', events.element)));
    return view(title, element, {change() {
        if (of()) {
            facts.update();
        }
        vgpus.update([...model.vgpus.values()].filter(v => has(v.placedGpus, uuid)));
        sessions.update([...model.sessions.values()].filter(s => has(s.gpus, uuid)));
        events.update();
    }, second: () => plots.second(), find: vgpus.filter});
}
