/** What generated code and the worker share: the call being served and the handles it names. */
package io.hawser.cuda;
