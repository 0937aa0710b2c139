// The state that the broker has sent, and derived rates of each session, vGPU and GPU. Views listen to its events.
import {ApiError, get, stream} from './api.js';

const RATE_SPAN_MS = 3200; // rates cover about three seconds: workers report their totals twice a second
const KEPT_EVENTS = 500;
const KEPT_POINTS = 600;
const TICK_MS = 1000;
const RATES = ['calls', 'roundTrips', 'kernels', 'bytesIn', 'bytesOut', 'waitedMs', 'gpuTimeMs'];
const NOTHING = Object.freeze(Object.fromEntries(RATES.map(name => [name, 0])));

/** Sums and rates of one object. */
function emptyTotals() {
    return {sessions: 0, usedBytes: 0, ...NOTHING};
}

class Model extends EventTarget {
    state = 'off'; // off, trying, live
    retryAt = 0;
    problem = '';
    broker = null;
    gpus = new Map();
    vgpus = new Map();
    sessions = new Map();
    regions = new Map();
    events = [];
    rates = new Map(); // of sessions
    ofVgpu = new Map();
    ofGpu = new Map();
    ofBroker = emptyTotals();
    points = []; // of the broker, for the small plots: {t, ...ofBroker}
    #samples = new Map(); // of sessions: [{t, s}]
    #lastMs = 0; // the broker's clock at the last message
    #aheadMs = 0; // its clock minus the browser's
    #abort = null;
    #timer = 0;

    /** The broker's clock. */
    now() {
        return Date.now() + this.#aheadMs;
    }

    rate(id) {
        return this.rates.get(id) || NOTHING;
    }

    /** Starts to listen; reconnects after every failure until stop(). */
    start() {
        this.stop();
        this.#abort = new AbortController();
        this.#timer = setInterval(() => this.#idle(), TICK_MS);
        this.#listen(this.#abort.signal);
    }

    stop() {
        this.#abort?.abort();
        clearInterval(this.#timer);
        this.#set('off', '');
    }

    async #listen(signal) {
        let wait = 1000;
        while (!signal.aborted) {
            let failure = null;
            try {
                await stream((name, data) => {
                    wait = 1000;
                    this.#heard(name, data);
                }, signal);
            } catch (thrown) {
                failure = thrown;
            }
            if (signal.aborted) {
                return;
            }
            if (failure instanceof ApiError && failure.status === 401) {
                this.#set('off', '');
                this.dispatchEvent(new Event('unauthorized'));
                return;
            }
            if (failure) {
                const reason = failure instanceof ApiError ? failure.message : 'The connection to the broker broke.';
                this.retryAt = Date.now() + wait;
                this.#set('trying', reason);
                await new Promise(resolve => setTimeout(resolve, wait));
                wait = Math.min(wait * 2, 15000);
            }
        }
    }

    #set(state, problem) {
        if (this.state !== state || this.problem !== problem) {
            this.state = state;
            this.problem = problem;
            this.dispatchEvent(new Event('state'));
        }
    }

    #heard(name, data) {
        if (name === 'event') {
            this.#addEvents([data]);
            return;
        }
        const at = Date.parse(data.time);
        this.#aheadMs = at - Date.now();
        if (name === 'picture') {
            this.#picture(data);
        } else if (name === 'change') {
            this.#change(data);
        }
        this.#tick(at);
    }

    #picture(picture) {
        this.broker = picture.broker;
        this.gpus = new Map(picture.gpus.map(gpu => [gpuKey(gpu.broker, gpu.uuid), gpu]));
        this.vgpus = new Map(picture.vgpus.map(vgpu => [vgpu.name, vgpu]));
        this.sessions = new Map(picture.sessions.map(session => [session.id, session]));
        this.regions = new Map((picture.regions || []).map(region => [regionKey(region), region]));
        for (const id of this.#samples.keys()) {
            if (!this.sessions.has(id)) {
                this.#samples.delete(id);
            }
        }
        this.#set('live', '');
        this.#loadEvents();
        this.#loadPoints();
        this.dispatchEvent(new Event('picture'));
    }

    #change(change) {
        this.broker = change.broker || this.broker;
        merge(this.gpus, change.gpus, change.removedGpus, gpu => gpuKey(gpu.broker, gpu.uuid));
        merge(this.vgpus, change.vgpus, change.removedVgpus, vgpu => vgpu.name);
        merge(this.sessions, change.sessions, change.removedSessions, session => session.id);
        merge(this.regions, change.regions, change.removedRegions, regionKey);
        change.removedSessions.forEach(id => this.#samples.delete(id));
    }

    async #loadEvents() {
        try {
            this.#addEvents(await get('/events?limit=200'));
        } catch (failure) {
            if (!(failure instanceof ApiError)) {
                throw failure;
            }
            this.dispatchEvent(new CustomEvent('failed', {detail: failure.message}));
        }
    }

    /** Loads the last minutes for the small plots, without the points that the page already has. */
    async #loadPoints() {
        if (this.points.length > 5) {
            return;
        }
        try {
            const history = await get('/history?seconds=120');
            const from = Date.parse(history.from);
            const first = this.points[0]?.t ?? Infinity;
            const before = history.sessions.map((sessions, i) => ({...emptyTotals(), t: from + i * 1000, sessions,
                usedBytes: history.usedBytes[i], calls: history.callsPerSecond[i],
                roundTrips: history.roundTripsPerSecond[i], bytesIn: history.bytesInPerSecond[i],
                bytesOut: history.bytesOutPerSecond[i], waitedMs: history.waitedPercent[i] * 10 * sessions}));
            this.points.unshift(...before.filter(point => point.t < first - 500));
        } catch (failure) {
            if (!(failure instanceof ApiError)) {
                throw failure;
            }
        }
    }

    #addEvents(events) {
        const started = this.broker?.started;
        // A restarted broker counts its events from 1 again.
        const known = new Map(this.events.filter(event => event.started === started).map(e => [e.seq, e]));
        events.forEach(event => known.set(event.seq, {...event, started}));
        this.events = [...known.values()].sort((a, b) => b.seq - a.seq).slice(0, KEPT_EVENTS);
        this.dispatchEvent(new Event('change'));
    }

    /** Without a message for a second nothing has changed, and rates fall to 0. */
    #idle() {
        if (this.state === 'live' && this.now() - this.#lastMs > TICK_MS * 1.3) {
            this.#tick(this.now());
        }
        if (this.state === 'trying') {
            this.dispatchEvent(new Event('state'));
        }
    }

    #tick(at) {
        this.#lastMs = at;
        this.rates = new Map();
        this.ofVgpu = new Map();
        this.ofGpu = new Map();
        this.ofBroker = emptyTotals();
        for (const session of this.sessions.values()) {
            const rates = this.#ratesOf(session, at);
            this.rates.set(session.id, rates);
            const gpu = session.gpus[0] && gpuKey(session.broker, session.gpus[0]);
            for (const sum of [this.ofBroker, sumOf(this.ofVgpu, session.vgpu), gpu && sumOf(this.ofGpu, gpu)]) {
                if (sum) {
                    sum.sessions++;
                    sum.usedBytes += session.statistics.deviceBytes;
                    RATES.forEach(name => sum[name] += rates[name]);
                }
            }
        }
        this.points.push({t: at, ...this.ofBroker});
        while (this.points.length > KEPT_POINTS) {
            this.points.shift();
        }
        this.dispatchEvent(new Event('change'));
        this.dispatchEvent(new Event('second'));
    }

    #ratesOf(session, at) {
        const samples = this.#samples.get(session.id) || [];
        this.#samples.set(session.id, samples);
        samples.push({t: at, s: session.statistics});
        while (samples.length > 2 && at - samples[1].t >= RATE_SPAN_MS) {
            samples.shift();
        }
        const first = samples[0];
        const seconds = (at - first.t) / 1000;
        if (seconds <= 0) {
            return NOTHING;
        }
        return Object.fromEntries(RATES.map(name => [name,
            Math.max(0, ((session.statistics[name] || 0) - (first.s[name] || 0)) / seconds)]));
    }
}

/** Key of a GPU: in a pool two software GPUs of two brokers may have one UUID. */
export const gpuKey = (broker, uuid) => broker ? broker + '/' + uuid : uuid;

/** Key of a region: each broker of a pool has its own names. */
export const regionKey = region => region.broker ? region.broker + '/' + region.name : region.name;

function merge(map, changed, removed, key) {
    changed.forEach(one => map.set(key(one), one));
    removed.forEach(one => map.delete(one));
}

function sumOf(map, key) {
    let sum = map.get(key);
    if (!sum) {
        sum = emptyTotals();
        map.set(key, sum);
    }
    return sum;
}

export const model = new Model();

/** Share of the time in which sessions waited for their turn, 0 to 100, from a rate of waitedMs. */
export const waitedPercent = totals => totals.sessions === 0 ? 0
    : Math.min(100, totals.waitedMs / 10 / (totals.sessions || 1));
