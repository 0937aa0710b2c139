// The login's identity and rights. The broker decides; the page only hides actions that the broker would refuse.
const ORDER = ['viewer', 'operator', 'admin'];

export const who = {name: '', role: ''};

export function become(user) {
    who.name = user ? user.name : '';
    who.role = user ? user.role : '';
}

/** Whether the role is at least this one. */
export const may = role => ORDER.indexOf(who.role) >= ORDER.indexOf(role);
