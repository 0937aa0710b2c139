/** The audit log: who has done, or tried to do, which administrative act. */
package io.hawser.broker.audit;
