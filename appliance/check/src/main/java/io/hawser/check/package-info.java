/** hawser-check: runs test programs and benchmarks natively and through Hawser, and compares. */
package io.hawser.check;
