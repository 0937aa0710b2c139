// Tables that change each second. Only changed cells are updated, and rows keep their places while the pointer is over
// them.
import {Meter, h, newId, setText} from './dom.js';

/**
 * A table.
 *
 * A column has: label, value(row) for sorting, and one of text(row), link(row) => {text, href}, pill(row) => {text, tone},
 * bar(row) => {share, text, tone} or action(row) => {label, name, run} or null; and num; grow; least and minor, which go first where there is little room; wide, a line of its own on a phone.
 */
export class LiveTable {
    #columns;
    #options;
    #rows = new Map(); // key -> {tr, cells}
    #sort;
    #page = 0;
    #all = [];

    /** Options: caption, key(row), columns, sort: [column number, descending], empty, pageSize, matches(row, text). */
    constructor(options) {
        this.#options = {pageSize: 50, empty: 'Nothing here.', ...options};
        this.#columns = options.columns;
        this.#sort = options.sort || [0, false];
        this.head = this.#columns.map((column, i) => this.#header(column, i));
        this.body = h('tbody', {role: 'rowgroup'});
        this.table = h('table', {class: 'live-table', role: 'table'},
            h('caption', {class: 'visually-hidden'}, options.caption),
            h('thead', {role: 'rowgroup'}, h('tr', {role: 'row'}, this.head)), this.body);
        this.none = h('p', {class: 'empty'}, this.#options.empty);
        this.shown = h('span', {class: 'num'});
        this.back = h('button', {type: 'button', class: 'small', onClick: () => this.#turn(-1)}, 'Previous');
        this.on = h('button', {type: 'button', class: 'small', onClick: () => this.#turn(1)}, 'Next');
        this.foot = h('div', {class: 'table-foot', hidden: true}, this.shown,
            h('span', {class: 'pages'}, this.back, this.on));
        this.scroll = h('div', {class: 'table-scroll'}, this.table);
        this.element = h('div', {}, this.scroll, this.none, this.foot);
        if (options.matches) {
            const id = newId('filter');
            this.filter = h('input', {class: 'filter', type: 'search', id, placeholder: 'Filter', autocomplete: 'off',
                'aria-label': 'Filter: ' + options.caption, onInput: () => {
                    this.#page = 0;
                    this.#draw(true);
                }});
        }
        this.#showSort();
    }

    #header(column, i) {
        const sortable = column.value;
        const label = sortable ? h('button', {type: 'button', onClick: () => this.#sortBy(i)}, column.label)
            : h('span', {class: column.label ? '' : 'visually-hidden'}, column.label || 'Actions');
        return h('th', {class: classesOf(column), scope: 'col', role: 'columnheader'}, label);
    }

    #sortBy(i) {
        this.#sort = this.#sort[0] === i ? [i, !this.#sort[1]] : [i, Boolean(this.#columns[i].num)];
        this.#page = 0;
        this.#showSort();
        this.#draw(true);
    }

    #showSort() {
        this.head.forEach((header, i) => {
            if (this.#columns[i].value && this.#sort[0] === i) {
                header.setAttribute('aria-sort', this.#sort[1] ? 'descending' : 'ascending');
            } else {
                header.removeAttribute('aria-sort');
            }
        });
    }

    #turn(by) {
        this.#page += by;
        this.#draw(true);
    }

    /** Shows these rows. */
    update(rows) {
        this.#all = rows;
        this.#draw(false);
    }

    #draw(asked) {
        const {key, matches, pageSize, limit} = this.#options;
        const text = this.filter ? this.filter.value.trim().toLowerCase() : '';
        const fitting = text ? this.#all.filter(row => matches(row, text)) : this.#all;
        const [number, descending] = this.#sort;
        const value = this.#columns[number].value;
        const sorted = [...fitting].sort((a, b) => compare(value(a), value(b)) * (descending ? -1 : 1)
            || compare(key(a), key(b)));
        const size = limit || pageSize;
        this.#page = Math.max(0, Math.min(this.#page, Math.ceil(sorted.length / size) - 1));
        const page = sorted.slice(this.#page * size, (this.#page + 1) * size);
        this.#place(page.map(row => [key(row), row]), asked);
        this.none.hidden = sorted.length > 0;
        this.scroll.hidden = sorted.length === 0;
        setText(this.none, text ? 'Nothing fits “' + this.filter.value.trim() + '”.' : this.#options.empty);
        this.foot.hidden = Boolean(limit) || sorted.length <= size;
        setText(this.shown, this.#page * size + 1 + '–' + Math.min(sorted.length, (this.#page + 1) * size) + ' of '
            + sorted.length);
        this.back.disabled = this.#page === 0;
        this.on.disabled = (this.#page + 1) * size >= sorted.length;
    }

    #place(entries, asked) {
        const wanted = new Set(entries.map(([key]) => key));
        // A row under the pointer or with the focus must not move or disappear.
        const held = !asked && this.body.matches(':hover, :focus-within');
        for (const [key, row] of this.#rows) {
            if (!wanted.has(key)) {
                row.tr.remove();
                this.#rows.delete(key);
            }
        }
        let before = this.body.firstElementChild;
        for (const [key, data] of entries) {
            let row = this.#rows.get(key);
            if (!row) {
                row = this.#makeRow();
                this.#rows.set(key, row);
                this.body.insertBefore(row.tr, held ? null : before);
            } else if (!held && row.tr !== before) {
                this.body.insertBefore(row.tr, before);
            } else if (!held) {
                before = row.tr.nextElementSibling;
            }
            row.data = data;
            row.cells.forEach((cell, i) => cell.show(data, this.#columns[i]));
        }
    }

    #makeRow() {
        const row = {cells: this.#columns.map(makeCell)};
        row.tr = h('tr', {role: 'row'}, row.cells.map(cell => cell.td));
        return row;
    }
}

function compare(a, b) {
    return typeof a === 'string' ? a.localeCompare(b, 'en', {numeric: true}) : a < b ? -1 : a > b ? 1 : 0;
}

const classesOf = column => [column.num && 'n', column.grow && 'grow', column.minor && 'minor', column.least && 'least',
    column.wide && 'wide', column.cut && 'cut', column.action && 'action'].filter(Boolean).join(' ');

/** A cell and its display of a row. */
function makeCell(column) {
    const td = h('td', {class: classesOf(column), role: 'cell', 'data-label': column.label});
    if (column.link) {
        const anchor = h('a');
        td.append(anchor);
        return {td, show: row => {
            const {text, href} = column.link(row);
            setText(anchor, text);
            if (anchor.getAttribute('href') !== href) {
                anchor.setAttribute('href', href);
            }
        }};
    }
    if (column.pill) {
        const mark = h('span', {class: 'pill'});
        td.append(mark);
        return {td, show: row => {
            const {text, tone} = column.pill(row);
            setText(mark, text);
            mark.className = 'pill ' + (tone || '');
        }};
    }
    if (column.bar) {
        const meter = new Meter(column.label);
        const text = h('span', {class: 'num'});
        td.append(h('span', {class: 'bar'}, text, meter.element));
        return {td, show: row => {
            const bar = column.bar(row);
            setText(text, bar.text);
            meter.element.hidden = bar.share === null;
            meter.set([bar.share || 0], bar.text, bar.tone);
        }};
    }
    if (column.action) {
        let current = null;
        const button = h('button', {type: 'button', class: 'small', onClick: () => current.run()});
        td.append(button);
        return {td, show: row => {
            current = column.action(row);
            button.hidden = !current;
            if (current) {
                setText(button, current.label);
                button.setAttribute('aria-label', current.name);
            }
        }};
    }
    return {td, show: row => {
        const text = column.text(row);
        setText(td, text);
        if (column.cut && td.title !== text) {
            td.title = text;
        }
    }};
}
