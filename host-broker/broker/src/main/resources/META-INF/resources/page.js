// Polls the REST interface. Text from guests goes in as text, never as markup.
'use strict';
const byId = id => document.getElementById(id);
let token = sessionStorage.getItem('hawser.token') || '';

function bytes(count) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;
    while (count >= 1024 && unit < units.length - 1) {
        count /= 1024;
        unit++;
    }
    return (unit === 0 ? count : count.toFixed(1)) + ' ' + units[unit];
}

async function get(path) {
    const response = await fetch('/api/v1/' + path, {headers: token ? {Authorization: 'Bearer ' + token} : {}});
    if (response.status === 401) {
        byId('login').hidden = false;
        throw new Error(token ? 'This is not the admin token.' : 'The admin token is needed.');
    }
    if (!response.ok) {
        throw new Error('The broker answered ' + response.status + '.');
    }
    byId('login').hidden = true;
    return response.json();
}

function fill(id, rows) {
    byId(id).replaceChildren(...rows.map(cells => {
        const row = document.createElement('tr');
        for (const cell of cells) {
            const field = document.createElement('td');
            field.textContent = typeof cell === 'object' ? cell.n : cell;
            field.className = typeof cell === 'object' ? 'n' : '';
            row.append(field);
        }
        return row;
    }));
}

async function show() {
    try {
        const broker = await get('broker');
        const [gpus, sessions, regions] = await Promise.all([get('gpus'), get('sessions'), get('regions')]);
        byId('broker').textContent = 'Version ' + broker.version + ', guests connect to ' + broker.guestEndpoint
            + ', workers ready: ' + broker.pool.ready + ' of ' + broker.pool.size;
        fill('gpus', gpus.map(g => [g.name, g.backend, g.computeCapability, {n: bytes(g.usedBytes)},
            {n: bytes(g.totalBytes)}, {n: g.sessions}]));
        fill('sessions', sessions.map(s => [{n: s.id}, s.vgpu, s.program, s.host, s.carrier, s.peer, s.state,
            new Date(s.started).toLocaleTimeString(), {n: s.statistics.calls}, {n: s.statistics.roundTrips},
            {n: s.statistics.kernels}, {n: bytes(s.statistics.bytesIn)}, {n: bytes(s.statistics.bytesOut)},
            {n: bytes(s.statistics.deviceBytes)}]));
        fill('regions', regions.map(r => [r.name, r.vgpu, r.path || r.doorbellSocket,
            r.problem ? r.state + ': ' + r.problem : r.state, {n: bytes(r.sizeBytes)}, {n: r.slotsInUse + ' of ' + r.slots},
            {n: r.sessions}]));
        byId('message').textContent = broker.pool.lastFailure;
    } catch (error) {
        byId('message').textContent = error.message;
    }
}

byId('login').addEventListener('submit', event => {
    event.preventDefault();
    token = byId('token').value.trim();
    sessionStorage.setItem('hawser.token', token);
    show();
});
show();
setInterval(show, 2000);
