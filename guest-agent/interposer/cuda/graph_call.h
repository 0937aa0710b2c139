/*
 * The guest's part in the execution of a graph: a host function, or the bytes of a copy that only this process has. The
 * worker names it by an id, any number of times; it stays as long as a graph or an executable graph holds it, or a
 * launch still brings its CALLBACK.
 */
#ifndef HWS_GRAPH_CALL_H
#define HWS_GRAPH_CALL_H

#include "graph.h"

/*
 * Set in the id of every such call, and of no host function that waits in a stream. The lowest one: a driver may keep an
 * id as a pointer, whose upper bits are its own.
 */
#define HWS_GRAPH_CALL_BIT 1ull

/* Held once; NULL when memory is short. */
hws_graph_call_t *hws_graph_call_host(CUhostFn function, void *user_data);
hws_graph_call_t *hws_graph_call_copy(const hws_node_copy_t *copy);

/* NULL is legal, and held by nobody. */
hws_graph_call_t *hws_graph_call_hold(hws_graph_call_t *call);
void hws_graph_call_release(hws_graph_call_t *call);

/* 0 for NULL. */
uint64_t hws_graph_call_id(const hws_graph_call_t *call);

/* Says that a launch about to be sent brings its CALLBACK; take it back when sending fails. */
CUresult hws_graph_call_expect(hws_graph_call_t *call);
void hws_graph_call_unexpect(hws_graph_call_t *call);

/* Runs it; on the callback thread. An unknown id is ignored. */
void hws_graph_call_run(uint64_t id, int status);

#endif
