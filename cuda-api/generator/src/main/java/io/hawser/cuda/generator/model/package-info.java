/** The model that all emitters read: libraries, functions, types, and the place of each value on the wire. */
package io.hawser.cuda.generator.model;
