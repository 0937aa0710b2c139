/** Tests of the parts of a session. */
package io.hawser.worker.session;
