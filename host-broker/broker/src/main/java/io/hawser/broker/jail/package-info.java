/** What the broker does for the jail of its workers: who they are, where they are, and who answers what it refuses. */
package io.hawser.broker.jail;
