// The REST interface and its stream. A cookie that scripts cannot read holds the login.

/** A failed request; the message is the server's reason. */
export class ApiError extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

function headers(method, withBody) {
    const all = {};
    if (method !== 'GET') {
        all['X-Hawser-Request'] = '1';
    }
    if (withBody) {
        all['Content-Type'] = 'application/json';
    }
    return all;
}

async function send(method, path, body, extra = {}) {
    let response;
    try {
        response = await fetch('/api/v1' + path, {
            method, headers: headers(method, body !== undefined), credentials: 'same-origin', redirect: 'error',
            body: body === undefined ? undefined : JSON.stringify(body), ...extra
        });
    } catch (failure) {
        if (failure.name === 'AbortError') {
            throw failure;
        }
        throw new ApiError(0, 'The broker does not answer.');
    }
    if (!response.ok) {
        throw new ApiError(response.status, await reason(response));
    }
    return response;
}

async function reason(response) {
    try {
        const problem = await response.json();
        return problem.detail || problem.title || 'The broker answered ' + response.status + '.';
    } catch {
        return 'The broker answered ' + response.status + '.';
    }
}

/** Sends a request and returns the answer's JSON, or null without a body. Throws ApiError. */
export async function call(method, path, body) {
    const response = await send(method, path, body);
    if (response.status === 204) {
        return null;
    }
    try {
        return await response.json();
    } catch {
        throw new ApiError(0, 'The broker’s answer broke off.');
    }
}

export const get = path => call('GET', path);

/** The identity of the login; null without one. */
export async function me() {
    try {
        return await get('/me');
    } catch (failure) {
        if (failure.status === 401) {
            return null;
        }
        throw failure;
    }
}

/** Logs in with {name, password} or {token}. Throws ApiError. */
export const login = credentials => call('POST', '/login', credentials);

/** Ends the login. */
export const logout = () => call('DELETE', '/login');

const SILENCE_MS = 40000; // the broker sends a comment every 15 s

/**
 * Reads the stream until it ends.
 *
 * @param heard called with each event's name and data.
 * @param signal aborts the stream.
 * @returns a promise of the end: fulfilled when the broker ended the stream, rejected when it broke off.
 */
export async function stream(heard, signal) {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    const response = await send('GET', '/stream', undefined, {signal: AbortSignal.any([signal, silence.signal])});
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    let name = '';
    let data = [];
    try {
        for (;;) {
            const {value, done} = await reader.read();
            if (done) {
                return;
            }
            clearTimeout(timer);
            timer = setTimeout(() => silence.abort(), SILENCE_MS);
            const lines = (rest + value).split('\n');
            rest = lines.pop();
            for (const line of lines) {
                if (line === '') {
                    if (data.length > 0) {
                        heard(name, JSON.parse(data.join('\n')));
                    }
                    name = '';
                    data = [];
                } else if (line.startsWith('event:')) {
                    name = line.slice(6).trim();
                } else if (line.startsWith('data:')) {
                    data.push(line.slice(5));
                }
            }
        }
    } finally {
        clearTimeout(timer);
    }
}
