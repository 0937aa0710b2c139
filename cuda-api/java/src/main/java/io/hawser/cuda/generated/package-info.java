/** Code that the generator writes from the description. */
package io.hawser.cuda.generated;
