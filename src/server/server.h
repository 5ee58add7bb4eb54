/* Every server: its state, its messages, its steps. The coordinator is the first server:
   coordinator.h. */
#ifndef SDR_SERVER_H
#define SDR_SERVER_H

#include "server/network.h"

/* A gradient that the coordinator has not decided on yet, or has decided to drop before it
   arrived. */
struct sdr_pending {
    uint64_t batch, version;
    struct sdr_body *body;    /* owned; NULL: it will be dropped when it comes */
    bool decided;             /* it is in the decision that is followed now */
    struct sdr_pending *next; /* owned: of the same worker */
};
struct sdr_server {
    /* The run's, or an alias of them; NULL: it lives elsewhere. */
    struct sdr_parameters *parameters;
    struct sdr_parameters alias;
    struct sdr_span span;           /* its values */
    struct sdr_body *snapshot;      /* owned: the values of a version; NULL: none yet */
    uint64_t version;               /* of the snapshot */
    struct sdr_workspace workspace; /* for gathering touched values, and reading updates */
    struct sdr_sum sum;             /* of the gradients of an update */
    uint32_t *row;                  /* owned: rows of an update */
    uint64_t row_room;
    float *dense; /* owned: expanded gradients, for aggregates that need them; NULL: none */
    uint64_t dense_room;
    uint32_t combined;            /* mark of the last expanded gradient */
    struct sdr_saved saved;       /* for SDR_ORDER_SAVE, in another process */
    int places;                   /* size of its member table: see membership.c */
    bool *gone;                   /* owned, per worker: lost, or not joined yet */
    struct sdr_pending **pending; /* owned, per worker; not at the coordinator */
    struct sdr_message *backlog;  /* owned: messages deferred while waiting for another */
    uint64_t backlogged, backlog_room, backlog_at;
};

struct sdr_server *sdr_server_of(const struct sdr_node *node);
/* The next message; deferred messages come first. */
enum sdr_status sdr_next_message(struct sdr_node *node, struct sdr_message *message);
/* Coordinator: waits for a message of a kind from another server (−1: any) and defers others. Fails
   if a server is lost. */
enum sdr_status sdr_await_kind(struct sdr_node *node, int kind, int from,
                               struct sdr_message *message);
/* Fails, and names the process that was lost. */
enum sdr_status sdr_lost_server(struct sdr_node *node, const struct sdr_message *lost);
/* The coordinator: fails, with the same sentence, once a server was lost. */
enum sdr_status sdr_servers_there(const struct sdr_node *node);

/* The values for a worker's batch, as they travel. */
enum sdr_status sdr_current_values(struct sdr_node *node, int worker, uint64_t number,
                                   struct sdr_body **body);
enum sdr_status sdr_send_task(struct sdr_node *node, int worker, uint64_t number, uint8_t flags);
/* Makes room for the numbers of so many rows at server->row. */
enum sdr_status sdr_server_row_room(struct sdr_server *server, uint64_t rows);
/* Decodes the update in a gradient's message and writes the batch's row numbers to `row`. The
   arrays of *update are valid until the next call. */
enum sdr_status sdr_read_update(struct sdr_node *node, const struct sdr_gradient *gradient,
                                uint32_t *row, struct sdr_wire_facts *facts,
                                struct sdr_update *update);
/* One step on the server's span, with gradients in the order given. */
enum sdr_status sdr_server_step(struct sdr_node *node, const struct sdr_gradient *gradient,
                                uint64_t count, double rate);

/* The body of an APPLY message: the gradients that the other servers are to apply. */
struct sdr_decision {
    double rate, penalty_due;
    uint64_t count;
    struct {
        uint64_t batch, version;
        int32_t worker;
        float weight;
    } of[];
};
/* The loop of every server but the coordinator. */
enum sdr_status sdr_follow_coordinator(struct sdr_node *node);
void sdr_release_pending(struct sdr_pending **link);

#endif
