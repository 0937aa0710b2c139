/** The description's files in their YAML form, with nothing resolved. */
package io.hawser.cuda.generator.yaml;
