/** Tests of the command. */
package io.hawser.poolsimulator;
