// Who is logged in, and what is offered to whom. The broker decides; the page only offers nothing that it would refuse.
const ORDER = ['viewer', 'operator', 'admin'];

export const who = {name: '', role: ''};

export function become(user) {
    who.name = user ? user.name : '';
    who.role = user ? user.role : '';
}

/** Whether the role is at least this one. */
export const may = role => ORDER.indexOf(who.role) >= ORDER.indexOf(role);
