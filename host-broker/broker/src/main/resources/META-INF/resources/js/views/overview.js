// The overview: the main figures of the broker.
import {sessionColumns, vgpuColumns} from '../columns.js';
import {createVgpu} from '../actions.js';
import {h, setText} from '../dom.js';
import {byteRate, bytes, count, duration, percent, rate} from '../format.js';
import {model, waitedPercent} from '../model.js';
import {Spark} from '../plot.js';
import {may} from '../rights.js';
import {LiveTable} from '../table.js';
import {GpuCards} from './gpus.js';
import {EventList, Facts, pageHead, panel, view} from './parts.js';

const SHOWN = 8;

class Tile {
    constructor(label, value, of) {
        this.value = value;
        this.of = of;
        this.spark = of ? new Spark() : null;
        this.number = h('span', {});
        this.rest = h('small', {});
        this.element = h('div', {class: 'tile'}, h('span', {class: 'label'}, label),
            h('span', {class: 'value'}, this.number, this.rest), this.spark?.element);
    }

    update() {
        const [number, rest = ''] = this.value();
        setText(this.number, number);
        setText(this.rest, rest ? ' ' + rest : '');
        this.spark?.set(model.points.map(this.of));
    }
}

function tiles() {
    const total = () => [...model.gpus.values()].reduce((sum, gpu) => sum + gpu.totalBytes, 0);
    return [
        new Tile('Sessions', () => [String(model.sessions.size), 'of ' + (model.broker?.maxSessions ?? '–')],
            point => point.sessions),
        new Tile('Device memory', () => [bytes(model.ofBroker.usedBytes), 'of ' + bytes(total())],
            point => point.usedBytes),
        new Tile('Calls', () => [rate(model.ofBroker.calls)], point => point.calls),
        new Tile('Round trips', () => [rate(model.ofBroker.roundTrips)], point => point.roundTrips),
        new Tile('From guests', () => [byteRate(model.ofBroker.bytesIn)], point => point.bytesIn),
        new Tile('To guests', () => [byteRate(model.ofBroker.bytesOut)], point => point.bytesOut),
        new Tile('Waiting for turns', () => [percent(waitedPercent(model.ofBroker))], point => waitedPercent(point))
    ];
}

export function overview() {
    const all = tiles();
    const cards = new GpuCards();
    const vgpus = new LiveTable({caption: 'The busiest vGPUs', columns: vgpuColumns(), key: v => v.name, limit: SHOWN,
        sort: [5, true], empty: 'There is no vGPU.'});
    const sessions = new LiveTable({caption: 'The busiest sessions', columns: sessionColumns(), key: s => s.id,
        limit: SHOWN, sort: [6, true], empty: 'No guest uses a GPU now.'});
    const events = new EventList(() => true, 14);
    const moreVgpus = h('a', {href: '#/vgpus', class: 'more'});
    const moreSessions = h('a', {href: '#/sessions', class: 'more'});
    const of = () => model.broker;
    const about = new Facts([
        ['Guests connect to', () => [of().guestEndpoint, of().guestTlsEndpoint && 'tls://' + of().guestTlsEndpoint]
            .filter(e => e).join(', ')], ['Running for', () => duration(model.now()
            - Date.parse(of().started))],
        ['Version', () => of().version], ['Spare workers', () => of().pool.ready + ' of ' + of().pool.size + ' ready'],
        ['Placement', () => of().placement + (of().overcommit > 1 ? ', overcommit ' + of().overcommit : '')],
        ['GPU time', () => ({turns: 'by turns', mps: 'by MPS', off: 'by the driver'})[of().turns] || of().turns],
        ['Database', () => of().database], ['TLS for this page', () => of().tls ? 'on' : 'off'],
        ['The workers’ jail', () => of().jail, true]]);
    const sub = h('span');
    const element = h('div', {},
        pageHead('Overview', {sub, actions: may('operator')
            ? [h('button', {type: 'button', class: 'primary', onClick: createVgpu}, 'New vGPU')] : []}),
        h('div', {class: 'stack'},
            h('section', {class: 'panel tiles', 'aria-label': 'Figures of the broker'}, all.map(tile => tile.element)),
            h('section', {'aria-label': 'GPUs'}, h('h2', {class: 'visually-hidden'}, 'GPUs'), cards.element),
            h('div', {class: 'grid split'},
                h('div', {class: 'stack'}, panel('vGPUs', vgpus.element, moreVgpus),
                    panel('Sessions', sessions.element, moreSessions)),
                panel('Events', events.element, h('a', {href: '#/events', class: 'more'}, 'All'))),
            panel('Broker', about.element)));
    return view('Overview', element, {change() {
        all.forEach(tile => tile.update());
        cards.update();
        vgpus.update([...model.vgpus.values()]);
        sessions.update([...model.sessions.values()]);
        events.update();
        setText(moreVgpus, 'All ' + count(model.vgpus.size));
        setText(moreSessions, 'All ' + count(model.sessions.size));
        const broker = model.broker;
        if (broker) {
            about.update();
            setText(sub, 'Guests connect to ' + broker.guestEndpoint + (broker.pool.lastFailure
                ? ' · workers do not start: ' + broker.pool.lastFailure : ''));
        }
    }});
}
