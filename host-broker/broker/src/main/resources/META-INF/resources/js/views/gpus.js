// The GPUs: a card of each, and a view of one GPU with plots.
import {fill, matchesVgpu, sessionColumns, tone, vgpuColumns} from '../columns.js';
import {Meter, h, setText} from '../dom.js';
import {bytes, percent} from '../format.js';
import {model} from '../model.js';
import {LiveTable} from '../table.js';
import {EventList, Facts, HistoryPlots, pageHead, panel, view} from './parts.js';

const NO_TOTALS = {sessions: 0, usedBytes: 0, calls: 0, roundTrips: 0, bytesIn: 0, bytesOut: 0, waitedMs: 0};

export const gpuHref = key => '#/gpus/' + encodeURIComponent(key);

const known = value => value !== null && value !== undefined;

/** Memory in use: of the whole device where the driver reports it, else the sessions' memory. */
const used = gpu => known(gpu.memoryUsedBytes) ? gpu.memoryUsedBytes : gpu.usedBytes;

class GpuCard {
    constructor(key) {
        this.name = h('a', {href: gpuHref(key)});
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
        setText(this.name, titleOf(gpu));
        setText(this.health, (gpu.health || 'ok') + (gpu.drained ? ', drained' : ''));
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

const titleOf = gpu => (gpu.broker ? gpu.broker + ' · ' : '') + (known(gpu.index) ? gpu.index + ' · ' : '') + gpu.name;

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
        for (const [key, card] of this.#cards) {
            if (!model.gpus.has(key)) {
                card.element.remove();
                this.#cards.delete(key);
            }
        }
        for (const [key, gpu] of model.gpus) {
            if (!this.#cards.has(key)) {
                this.#cards.set(key, new GpuCard(key));
                this.grid.append(this.#cards.get(key).element);
            }
            this.#cards.get(key).update(gpu);
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

export function gpu(key) {
    const of = () => model.gpus.get(key);
    const first = of();
    if (!first) {
        return null;
    }
    const uuid = first.uuid;
    const has = (one, list) => one.broker === first.broker && Array.isArray(list) && list.includes(uuid);
    const title = 'GPU ' + titleOf(first);
    const facts = new Facts([
        ['UUID', () => uuid, true], ['Backend', () => of().backend], ['PCI address', () => of().pciBusId || '–'],
        ['Compute capability', () => of().computeCapability], ['Health', () => of().healthDetail || of().health || 'ok'],
        ['Drained', () => of().drained ? 'yes: it gets no further vGPUs' : 'no'],
        ['Memory', () => bytes(of().totalBytes)], ['Reserved by vGPUs', () => bytes(of().reservedBytes || 0)],
        ['Held by sessions', () => bytes(of().usedBytes)],
        ['Used on the device', () => bytes(of().memoryUsedBytes)],
        ['A worker’s context', () => bytes(of().contextBytes || null)],
        ['Temperature', () => known(of().temperatureCelsius) ? of().temperatureCelsius + ' °C' : '–'],
        ['Power', () => known(of().powerWatts) ? Math.round(of().powerWatts) + ' W' : '–'],
        ['Utilisation', () => percent(of().utilizationPercent)]]);
    const plots = new HistoryPlots('gpu=' + encodeURIComponent(uuid), () => ({...NO_TOTALS, ...model.ofGpu.get(key),
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
        vgpus.update([...model.vgpus.values()].filter(v => has(v, v.placedGpus)));
        sessions.update([...model.sessions.values()].filter(s => has(s, s.gpus)));
        events.update();
    }, second: () => plots.second(), find: vgpus.filter});
}
