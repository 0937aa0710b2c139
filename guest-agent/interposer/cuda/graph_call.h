/*
 * The guest's part in the execution of a graph: a host function, or the bytes of a copy that only this process has. The
 * worker names it by an id, any number of times. It exists as long as a graph or an executable graph holds it, or a
 * launch still expects its CALLBACK.
 */
#ifndef HWS_GRAPH_CALL_H
#define HWS_GRAPH_CALL_H

#include "graph.h"

/*
 * Set in the id of every such call, and not in that of a host function in a stream. It is the lowest bit, because a
 * driver may keep an id as a pointer whose upper bits it uses.
 */
#define HWS_GRAPH_CALL_BIT 1ull

/* Makes a call with one holder; NULL when memory is short. */
hws_graph_call_t *hws_graph_call_host(CUhostFn function, void *user_data);
hws_graph_call_t *hws_graph_call_copy(const hws_node_copy_t *copy);

/* Adds a holder. NULL is legal and has no holders. */
hws_graph_call_t *hws_graph_call_hold(hws_graph_call_t *call);
void hws_graph_call_release(hws_graph_call_t *call);

/* 0 for NULL. */
uint64_t hws_graph_call_id(const hws_graph_call_t *call);

/* Announces a CALLBACK of a launch that is about to be sent. The caller withdraws it when sending fails. */
CUresult hws_graph_call_expect(hws_graph_call_t *call);
void hws_graph_call_unexpect(hws_graph_call_t *call);

/* Runs the call. A callback's thread. Ignores an unknown id. */
void hws_graph_call_run(uint64_t id, int status);

#endif
