/** Makes the generated pages of the documentation, and compares them with the committed pages. For tests only. */
package io.hawser.reference;
