/* The peers of a run: what network.c makes, and what the calls of peer.h share. */
#ifndef SDR_PEERS_H
#define SDR_PEERS_H

#include "peer/role.h"
#include "team/node.h"
#include "update/parameters.h"

/* What a peer tells peer 0 of an update. */
struct sdr_peer_report {
    double loss, weight; /* sums over its rows */
    uint64_t rows;
    uint32_t bytes;           /* that it has sent for the update */
    float computing, waiting; /* seconds */
};

/* A peer that lives in this process. */
struct sdr_peer {
    struct sdr_parameters
        replica; /* of the run's parameters; the first peer here has these themselves */
    bool replicated;
    struct sdr_message *pending; /* owned: a ring of messages that nobody has asked for yet */
    uint64_t from, count, room;
    int *lost; /* owned: the peers that have died */
    uint64_t losses, lost_room;
    bool over;
    /* Batches. */
    uint64_t number;                 /* of the next batch */
    uint64_t epoch, at;              /* of the present one, and of the first row of all its parts */
    uint32_t *row;                   /* owned */
    struct sdr_gradient_space space; /* owned */
    uint32_t mark;                   /* the last one of a gradient */
    const struct sdr_batch *batch;   /* borrowed while a gradient is computed */
    float *gradient;                 /* borrowed meanwhile */
    int64_t waited;                  /* nanoseconds, for messages */
    uint64_t works;                  /* so far: times are drawn by their number */
    struct sdr_peer_report report;   /* of the present update */
};

/* Peer 0's books of an update. */
struct sdr_peer_books {
    struct sdr_peer_report *report; /* owned, per peer: a sum where batches are not joint */
    bool *told;                     /* owned, per peer */
    int missing;                    /* reports of peers that are alive */
    const char *stop;               /* why the run is to end; NULL: it is not */
};

struct sdr_peers {
    struct sdr_peer **peer; /* owned, per peer: NULL where it lives elsewhere */
    struct sdr_peer_books books;
};

enum sdr_status sdr_peers_create(struct sdr_run *run);
void sdr_peers_destroy(struct sdr_run *run);
/* Trains, by the loops of the strategy. */
enum sdr_status sdr_peers_work(struct sdr_run *run);

struct sdr_peer *sdr_peer_of(const struct sdr_node *node);
/* Receives a message and files it. */
enum sdr_status sdr_peer_pump(struct sdr_node *node);
/* Peer 0 files a report that has come, or keeps it for the next update. */
enum sdr_status sdr_peer_file_report(struct sdr_node *node, struct sdr_message *message);
/* Keeps a message until somebody asks for it: it is the peer's, or if that fails is gone. */
enum sdr_status sdr_peer_keep(struct sdr_peer *peer, const struct sdr_message *message);
/* A peer has died. */
enum sdr_status sdr_peer_lose(struct sdr_node *node, const struct sdr_message *message);

#endif
