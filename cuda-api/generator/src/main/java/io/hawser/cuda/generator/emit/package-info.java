/** What all emitters share: text with indentation, and files that are written only when they change. */
package io.hawser.cuda.generator.emit;
