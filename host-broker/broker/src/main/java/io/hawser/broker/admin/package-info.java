/** The use cases of operators: they create, change, place and delete vGPUs and tokens. */
package io.hawser.broker.admin;
