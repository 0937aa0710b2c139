// Formats figures for people. A no-break space joins the unit to its number.
const NBSP = ' ';
const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const COUNTS = ['', 'k', 'M', 'G', 'T'];

/** 2.5 GiB. */
export function bytes(count) {
    if (count === null || count === undefined || Number.isNaN(count)) {
        return '–';
    }
    let unit = 0;
    let value = count;
    while (Math.abs(value) >= 1024 && unit < BYTES.length - 1) {
        value /= 1024;
        unit++;
    }
    return digits(value, unit === 0) + NBSP + BYTES[unit];
}

/** 1.50 / 4.00 GiB: the unit once if both have the same. */
export function ofTotal(part, total) {
    const [whole, unit] = bytes(total).split(NBSP);
    const [amount, its] = bytes(part).split(NBSP);
    return (its === unit || part === 0 ? amount : amount + NBSP + its) + ' / ' + whole + NBSP + unit;
}

/** 1.24 M; whole numbers below 10,000 as they are. */
export function count(value) {
    if (value === null || value === undefined || Number.isNaN(value)) {
        return '–';
    }
    if (Math.abs(value) < 10000) {
        return value < 10 && value % 1 !== 0 ? value.toFixed(1) : Math.round(value).toLocaleString('en');
    }
    let unit = 0;
    let left = value;
    while (Math.abs(left) >= 1000 && unit < COUNTS.length - 1) {
        left /= 1000;
        unit++;
    }
    return digits(left, false) + NBSP + COUNTS[unit];
}

/** 1.24 M/s. */
export const rate = value => count(value) + '/s';

/** 2.5 GiB/s. */
export const byteRate = value => bytes(value) + '/s';

/** 42 %. */
export const percent = value => value === null || value === undefined || Number.isNaN(value) ? '–'
    : (value > 0 && value < 10 ? value.toFixed(1) : Math.round(value)) + NBSP + '%';

function digits(value, whole) {
    if (whole) {
        return String(Math.round(value));
    }
    return Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** 14:03:22. */
export const time = when => new Date(when).toLocaleTimeString('en-GB');

/** 14:03. */
export const minute = when => new Date(when).toLocaleTimeString('en-GB', {hour: '2-digit', minute: '2-digit'});

/** 21 Nov 2026, 14:03:22; empty for none. */
export const dateTime = when => when ? new Date(when).toLocaleString('en-GB', {dateStyle: 'medium', timeStyle: 'medium'})
    : '–';

/** 3 h 12 min, from milliseconds. */
export function duration(ms) {
    const seconds = Math.max(0, Math.round(ms / 1000));
    if (seconds < 60) {
        return seconds + NBSP + 's';
    }
    if (seconds < 3600) {
        return Math.floor(seconds / 60) + NBSP + 'min' + NBSP + seconds % 60 + NBSP + 's';
    }
    if (seconds < 86400) {
        return Math.floor(seconds / 3600) + NBSP + 'h' + NBSP + Math.floor(seconds % 3600 / 60) + NBSP + 'min';
    }
    return Math.floor(seconds / 86400) + NBSP + 'd' + NBSP + Math.floor(seconds % 86400 / 3600) + NBSP + 'h';
}

/** A GPU's UUID, short. */
export const shortUuid = uuid => uuid.slice(0, 8);
