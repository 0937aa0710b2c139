/** Shared by generated code and the worker: the call in service and its handles. */
package io.hawser.cuda;
