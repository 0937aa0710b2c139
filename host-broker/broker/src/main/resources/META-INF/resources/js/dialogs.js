// Dialogs, one at a time. Escape closes a dialog and returns the focus. A failed request shows the server's message.
import {h, newId} from './dom.js';

/**
 * Shows a dialog, runs its action, and closes after the action's success.
 *
 * @param content {title, body: elements, submit: the button's text, danger, focus: an element}
 * @param act called with the form; the dialog shows its failure and stays open.
 * @returns a promise of act's result, or null after a cancellation.
 */
export function ask({title, body, submit, danger = false, focus = null, cancel = 'Cancel'}, act) {
    return new Promise(resolve => {
        const id = newId('dialog');
        const before = document.activeElement;
        const problem = h('p', {class: 'problem', role: 'alert', hidden: true});
        const go = h('button', {type: 'submit', class: danger ? 'danger' : 'primary'}, submit);
        const no = cancel ? h('button', {type: 'button', onClick: () => dialog.close()}, cancel) : null;
        const form = h('form', {method: 'dialog', noValidate: false, onSubmit: event => {
            event.preventDefault();
            run();
        }}, h('h2', {id}, title), body, problem, h('div', {class: 'buttons'}, no, go));
        const dialog = h('dialog', {'aria-labelledby': id}, form);
        let answer = null;

        async function run() {
            go.disabled = true;
            problem.hidden = true;
            try {
                answer = await act(form);
                dialog.close();
            } catch (failure) {
                problem.hidden = false;
                problem.textContent = failure.message;
                go.disabled = false;
                go.focus();
            }
        }

        dialog.addEventListener('close', () => {
            dialog.remove();
            if (before && before.isConnected) {
                before.focus();
            }
            resolve(answer);
        });
        document.body.append(dialog);
        dialog.showModal();
        (focus || (danger && no) || form.querySelector('input, select') || go).focus();
    });
}

/** Whether a dialog is open. */
export const dialogOpen = () => document.querySelector('dialog[open]') !== null;

/** A labelled field with a hint; beside stands to the right of the control. */
export function field(label, control, hint, beside) {
    control.id ||= newId('field');
    const note = hint ? h('span', {class: 'hint', id: control.id + '-hint'}, hint) : null;
    if (note) {
        control.setAttribute('aria-describedby', note.id);
    }
    return h('div', {class: 'field'}, h('label', {for: control.id}, label),
        beside ? h('div', {class: 'with-unit'}, control, beside) : control, note);
}

/** A select of [value, text] pairs. */
export function select(value, choices, properties = {}) {
    return h('select', properties, choices.map(([key, text]) => h('option', {value: key, selected: key === value}, text)));
}

const UNITS = [['1048576', 'MiB'], ['1073741824', 'GiB'], ['1', 'bytes']];

/** A size: a number and its unit; value() is in bytes. */
export function sizeField(label, bytes, hint) {
    const unit = bytes > 0 && bytes % 1048576 !== 0 ? '1' : bytes > 0 && bytes % 1073741824 !== 0 ? '1048576'
        : '1073741824';
    const number = h('input', {type: 'number', min: '0', step: 'any', required: true, inputMode: 'decimal',
        value: String(bytes / Number(unit))});
    const units = select(unit, UNITS, {'aria-label': label + ': unit'});
    return {element: field(label, number, hint, units), value: () => Math.round(Number(number.value) * Number(units.value))};
}
