/** Brokers without guests and GPUs that run their real transactions against one PostgreSQL. */
package io.hawser.poolsimulator.database;
