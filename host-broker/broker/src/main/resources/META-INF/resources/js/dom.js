// Creates elements without markup: text from guests stays plain text.

/** Creates an element. A key sets a property, else an attribute; on<Event> adds a listener. */
export function h(name, properties = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
        if (value === undefined || value === null || value === false) {
            continue;
        }
        if (key.startsWith('on')) {
            element.addEventListener(key.slice(2).toLowerCase(), value);
        } else if (key === 'class') {
            element.className = value;
        } else if (key.includes('-') || key === 'role' || key === 'for' || key === 'list' || key === 'form') {
            element.setAttribute(key, value === true ? '' : value);
        } else {
            element[key] = value;
        }
    }
    element.append(...children.flat().filter(child => child !== null && child !== undefined && child !== false));
    return element;
}

const SVG = 'http://www.w3.org/2000/svg';

/** Creates an SVG element. */
export function svg(name, attributes = {}, ...children) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) {
        element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
}

/** Sets a text only if it differs, so that the browser does not redraw it. */
export function setText(element, text) {
    if (element.textContent !== text) {
        element.textContent = text;
    }
}

export const byId = id => document.getElementById(id);

/** Announces a text to screen readers. */
export function announce(text) {
    byId('announcer').textContent = text;
}

/** Shows a result for a while, and announces it. */
export function toast(text, bad = false) {
    const box = h('div', {class: bad ? 'toast bad' : 'toast'}, text);
    byId('toasts').append(box);
    announce(text);
    setTimeout(() => box.remove(), bad ? 12000 : 6000);
}

let nextId = 1;

/** A unique id for an element. */
export const newId = prefix => prefix + '-' + nextId++;

/** A bar of overlapping parts, the last on top. */
export class Meter {
    constructor(label, parts = ['used']) {
        this.fills = parts.map(part => h('span', {class: 'meter-fill ' + part}));
        this.element = h('span', {class: 'meter', role: 'meter', 'aria-label': label, 'aria-valuemin': '0',
            'aria-valuemax': '100'}, this.fills);
    }

    /** Shares from 0 to 1; text for screen readers. */
    set(shares, text, tone = '') {
        shares.forEach((share, i) => {
            this.fills[i].style.width = Math.max(0, Math.min(1, share || 0)) * 100 + '%';
        });
        const top = this.fills.at(-1);
        top.classList.toggle('high', tone === 'high');
        top.classList.toggle('full', tone === 'full');
        this.element.setAttribute('aria-valuenow', Math.round(Math.max(0, Math.min(1, shares.at(-1) || 0)) * 100));
        this.element.setAttribute('aria-valuetext', text);
    }
}

/** A small label for a state. */
export function pill(text, tone = '') {
    return h('span', {class: 'pill ' + tone}, text);
}
