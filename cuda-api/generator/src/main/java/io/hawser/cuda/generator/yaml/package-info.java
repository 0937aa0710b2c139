/** The description's files as they are written; nothing is resolved yet. */
package io.hawser.cuda.generator.yaml;
