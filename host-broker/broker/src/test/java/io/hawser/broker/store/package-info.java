/** Tests of the database. */
package io.hawser.broker.store;
