/** Access to the REST interface: identities, roles, passwords and logins. */
package io.hawser.broker.access;
