/** The process that serves one guest process: it decodes the guest's calls and executes them on a GPU backend. */
package io.hawser.worker;
