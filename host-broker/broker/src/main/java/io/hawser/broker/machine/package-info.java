/** What a broker needs of the machine, and whether it is there. */
package io.hawser.broker.machine;
