/** The broker's part of the jail of its workers: users, control groups and answers to rejected system calls. */
package io.hawser.broker.jail;
