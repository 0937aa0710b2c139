// Actions of an operator. Each asks for confirmation and shows its result.
import {call} from './api.js';
import {ask, field, select, sizeField} from './dialogs.js';
import {h, toast} from './dom.js';
import {bytes} from './format.js';
import {model} from './model.js';

const vgpuPath = name => '/vgpus/' + encodeURIComponent(name);

export async function endSession(session) {
    const done = await ask({title: 'End session ' + session.id + '?', submit: 'End session', danger: true, body: [
        h('p', {}, h('b', {}, session.program), ' on ', h('b', {}, session.host), ' (vGPU ' + session.vgpu
            + ') loses its GPU: its next CUDA call fails as with a lost device.')]},
        () => call('DELETE', '/sessions/' + session.id).then(() => true));
    if (done) {
        toast('Session ' + session.id + ' has ended.');
    }
}

/** Fields of the dialogs that create and change a vGPU. */
function vgpuFields(vgpu) {
    const memory = sizeField('Memory of each GPU', vgpu.memoryBytes, '0: best effort, nothing is reserved');
    const share = h('input', {type: 'number', min: '1', max: '100', required: true, value: String(vgpu.computeShare)});
    const mode = select(vgpu.mode, [['shared', 'shared'], ['exclusive', 'exclusive']]);
    const gpus = h('input', {value: vgpu.gpus, required: true, autocomplete: 'off', spellcheck: false});
    const sessions = h('input', {type: 'number', min: '0', required: true, value: String(vgpu.maxSessions)});
    const communication = select(vgpu.communication, [['none', 'alone'], ['host', 'together, by NCCL']]);
    const swappable = h('input', {type: 'checkbox', checked: vgpu.swappable});
    const rdma = h('input', {type: 'checkbox', checked: vgpu.rdma});
    const carriers = ['tcp', 'shm'].map(name => h('input', {type: 'checkbox', value: name,
        checked: vgpu.carriers.includes(name)}));
    const kind = select(vgpu.owner.kind, [['none', 'nobody'], ['domain', 'a libvirt domain'], ['host', 'a host']]);
    const owner = h('input', {value: vgpu.owner.id, autocomplete: 'off', spellcheck: false});
    const sync = () => {
        owner.disabled = kind.value === 'none';
        owner.required = !owner.disabled;
    };
    kind.addEventListener('change', sync);
    sync();
    return {
        elements: [
            h('div', {class: 'pair'}, memory.element, field('Compute share', share, '1 to 100, a weight')),
            h('div', {class: 'pair'}, field('Mode', mode, 'exclusive: alone on its GPUs'),
                field('GPUs', gpus, 'any, all, or numbers and UUIDs')),
            h('div', {class: 'pair'}, field('Sessions at most', sessions, '0: no limit of its own'),
                h('fieldset', {}, h('legend', {}, 'Carriers'), h('div', {class: 'checks'}, carriers.map(box =>
                    h('label', {}, box, box.value === 'tcp' ? 'TCP' : 'shared memory')), h('label', {}, rdma, 'RDMA, over TCP')))),
            h('div', {class: 'pair'}, field('Its processes exchange data', communication),
                h('fieldset', {}, h('legend', {}, 'While it is idle'), h('div', {class: 'checks'},
                    h('label', {}, swappable, 'its memory may move to the host')))),
            h('div', {class: 'pair'}, field('Owner', kind), field('Owner’s UUID or name', owner))],
        value: () => ({memoryBytes: memory.value(), computeShare: Number(share.value), mode: mode.value,
            gpus: gpus.value.trim(), maxSessions: Number(sessions.value), communication: communication.value,
            swappable: swappable.checked, rdma: rdma.checked,
            carriers: carriers.filter(box => box.checked).map(box => box.value).sort(),
            owner: {kind: kind.value, id: kind.value === 'none' ? '' : owner.value.trim()}})
    };
}

const NEW_VGPU = {memoryBytes: 1073741824, computeShare: 100, mode: 'shared', gpus: 'any', maxSessions: 0,
    communication: 'none', swappable: false, rdma: false,
    carriers: ['tcp', 'shm'], owner: {kind: 'none', id: ''}};

export async function createVgpu() {
    const name = h('input', {required: true, maxLength: 63, pattern: '[A-Za-z0-9][A-Za-z0-9_.\\-]*', autocomplete: 'off',
        spellcheck: false, title: 'letters, digits, _ . and -'});
    const fields = vgpuFields(NEW_VGPU);
    const made = await ask({title: 'New vGPU', submit: 'Create vGPU', focus: name,
        body: [field('Name', name, 'Letters, digits, _ . and -; cannot be changed'), ...fields.elements]},
        () => call('POST', '/vgpus', {name: name.value.trim(), ...fields.value()}));
    if (made) {
        toast('vGPU ' + made.name + ' was made.');
        model.vgpus.set(made.name, made);
        location.hash = '#/vgpus/' + encodeURIComponent(made.name);
    }
}

export async function changeVgpu(vgpu) {
    const fields = vgpuFields(vgpu);
    const changed = await ask({title: 'Change vGPU ' + vgpu.name, submit: 'Apply', body: [
        vgpu.sessions > 0 ? h('p', {class: 'muted'}, 'It has ' + vgpu.sessions
            + ' running sessions, which keep going.') : null, ...fields.elements]}, () => {
        const wanted = fields.value();
        // Send only changed fields, to keep simultaneous changes of other users.
        const change = Object.fromEntries(Object.entries(wanted).filter(
            ([key, value]) => JSON.stringify(value) !== JSON.stringify(vgpu[key])));
        return call('PATCH', vgpuPath(vgpu.name), change);
    });
    if (changed) {
        toast('vGPU ' + vgpu.name + ' was changed.');
    }
}

export async function deleteVgpu(vgpu) {
    const force = h('input', {type: 'checkbox'});
    const done = await ask({title: 'Delete vGPU ' + vgpu.name + '?', submit: 'Delete vGPU', danger: true, body: [
        h('p', {}, 'Its reservation of ' + bytes(vgpu.memoryBytes) + ' and its ' + vgpu.tokens
            + (vgpu.tokens === 1 ? ' token' : ' tokens') + ' go with it. This cannot be undone.'),
        h('label', {class: 'check'}, force, 'End its sessions and regions, too'
            + (vgpu.sessions > 0 ? ' (' + vgpu.sessions + ' now)' : ''))]},
        () => call('DELETE', vgpuPath(vgpu.name) + (force.checked ? '?force=true' : '')).then(() => true));
    if (done) {
        toast('vGPU ' + vgpu.name + ' was deleted.');
        location.hash = '#/vgpus';
    }
}

export async function createToken(vgpu) {
    const note = h('input', {maxLength: 200, autocomplete: 'off'});
    const expires = h('input', {type: 'datetime-local'});
    const made = await ask({title: 'New token for ' + vgpu.name, submit: 'Create token', body: [
        field('Note', note, 'Its purpose; not secret'),
        field('Valid until', expires, 'Empty: until it is revoked')]},
        () => call('POST', vgpuPath(vgpu.name) + '/tokens', {note: note.value.trim(),
            ...expires.value ? {expires: new Date(expires.value).toISOString()} : {}}));
    if (made) {
        const secret = h('p', {class: 'secret', tabIndex: 0, 'aria-label': 'The token'}, made.token);
        await ask({title: 'The token for ' + vgpu.name, submit: 'Done', cancel: null, focus: secret, body: [
            h('p', {}, 'It is shown only now. Put it into the guest’s file that ', h('code', {}, 'HAWSER_TOKEN_FILE'),
                ' names, or its ', h('code', {}, 'guest.toml'), '.'), secret, copyButton(made.token)]}, async () => null);
    }
    return made;
}

function copyButton(text) {
    return h('div', {}, h('button', {type: 'button', class: 'small', onClick: async event => {
        const button = event.currentTarget;
        try {
            await navigator.clipboard.writeText(text);
            button.textContent = 'Copied';
        } catch {
            button.textContent = 'The browser refused: select and copy';
        }
    }}, 'Copy'));
}

export async function revokeToken(vgpuName, token) {
    const done = await ask({title: 'Revoke token ' + token.keyId + '?', submit: 'Revoke token', danger: true, body: [
        h('p', {}, 'Guests can no longer use the token, and its sessions end.')]},
        () => call('DELETE', vgpuPath(vgpuName) + '/tokens/' + encodeURIComponent(token.keyId)).then(() => true));
    if (done) {
        toast('Token ' + token.keyId + ' was revoked.');
    }
    return done;
}

export async function deleteRegion(region) {
    const done = await ask({title: 'Stop serving region ' + region.name + '?', submit: 'Stop serving', danger: true,
        body: [h('p', {}, 'Its ' + region.sessions + ' sessions end: their programs’ next CUDA call fails.')]},
        () => call('DELETE', '/regions/' + encodeURIComponent(region.name)).then(() => true));
    if (done) {
        toast('Region ' + region.name + ' is no longer served.');
    }
}

export async function removeBroker(broker) {
    const done = await ask({title: 'Remove broker ' + broker.name + ' from the pool?', submit: 'Remove', danger: true,
        body: [h('p', {}, 'Its ' + broker.vgpus + ' vGPUs go to other brokers, also those in use. If it comes back, it '
            + 'ends its sessions.')]},
        () => call('DELETE', '/brokers/' + encodeURIComponent(broker.name)).then(() => true));
    if (done) {
        toast('Broker ' + broker.name + ' is removed.');
    }
}
