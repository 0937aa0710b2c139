/** The one model that all emitters read: libraries, functions, types, and where each value lies on the wire. */
package io.hawser.cuda.generator.model;
