/** Shared by all emitters: indented text, and files that are written only when they change. */
package io.hawser.cuda.generator.emit;
