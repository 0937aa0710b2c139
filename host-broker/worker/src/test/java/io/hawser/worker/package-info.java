/** Tests of the worker as a whole: sessions over real sockets, and the real process. */
package io.hawser.worker;
