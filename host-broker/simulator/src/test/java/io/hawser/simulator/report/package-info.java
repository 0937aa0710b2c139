/** Tests of package {@code report}. */
package io.hawser.simulator.report;
