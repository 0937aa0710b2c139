/** Tests of users, passwords, logins and roles. */
package io.hawser.broker.access;
