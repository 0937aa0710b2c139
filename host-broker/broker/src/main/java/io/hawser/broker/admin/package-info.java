/** The operators' use cases: they create, change, place and delete vGPUs and tokens. */
package io.hawser.broker.admin;
