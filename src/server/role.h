/* Role server: the functions that the loops of the coordinator and of workers may call. */
#ifndef SDR_SERVER_ROLE_H
#define SDR_SERVER_ROLE_H

#include "server/message.h"
#include "team/node.h"

/* ---- a worker ---- */
/* await_task: waits for a batch and the values to compute from. compute_gradient: *done is false
   if a new task cancelled it. push_gradient: sends the gradient to the servers. */
enum sdr_status sdr_await_task(struct sdr_node *node, bool *more);
enum sdr_status sdr_compute_gradient(struct sdr_node *node, bool *done);
enum sdr_status sdr_push_gradient(struct sdr_node *node);
/* ---- the coordinator ---- */
struct sdr_body;
struct sdr_gradient {
    int worker;
    uint64_t batch, version; /* version: of the values it was computed from */
    struct sdr_body *body;   /* owned until it is applied or dropped */
    float weight;            /* in its update; 1 on arrival */
    bool lost;               /* no gradient: the worker was lost */
    bool joined;             /* no gradient: the worker has joined, or is back */
    struct sdr_ledger_record record;
};
uint64_t sdr_current_version(const struct sdr_node *node);
/* Epochs done, with the fraction of the present one. */
double sdr_epochs_done(const struct sdr_node *node);
/* Gradients of all planned epochs that are not applied yet. */
uint64_t sdr_gradients_left(const struct sdr_node *node);
/* Gradients of the next update: K, or those that are left. */
uint64_t sdr_quorum(const struct sdr_node *node);
/* Gives a worker its next batch and the present values. If it is busy, its work is cancelled and
   its batch returns to the queue. A lost worker gets nothing. If the queue is empty, the worker
   stays idle until a batch returns. */
enum sdr_status sdr_assign(struct sdr_node *node, int worker);
/* The same without values: the worker continues from its present values and its own steps. */
enum sdr_status sdr_assign_kept(struct sdr_node *node, int worker);
/* Tasks assigned to the worker so far. */
uint64_t sdr_tasks_given(const struct sdr_node *node, int worker);
bool sdr_is_busy(const struct sdr_node *node, int worker);
/* Whether the worker is lost, or has not joined yet. */
bool sdr_is_gone(const struct sdr_node *node, int worker);
/* Sends a busy worker the values of its next batch ahead; if it has them, sends a patch. budget:
   bytes per second of the link, 0: no limit; within it the largest relative changes go first.
   The worker begins that batch when it has finished its present one. */
enum sdr_status sdr_prefetch(struct sdr_node *node, int worker, double budget);
/* Waits for the next valid gradient (its batch is still assigned to its worker), for a worker
   that joins, or for the loss of one, whose batch returns to the queue. *more is false if the
   run has ended meanwhile. */
enum sdr_status sdr_await_gradient(struct sdr_node *node, struct sdr_gradient *gradient,
                                   bool *more);
/* One step with the gradients, at most as many as make an update, combined by the aggregate; if
   workers take the steps, adds them up. *more is false after the last one. */
enum sdr_status sdr_apply(struct sdr_node *node, struct sdr_gradient *gradient, uint64_t count,
                          bool *more);
/* After the loss of a worker: fails, with a checkpoint, if fewer than `needed` workers are left. */
enum sdr_status sdr_go_on_without(struct sdr_node *node, const struct sdr_gradient *lost,
                                  uint64_t needed);
/* Drops a gradient; its batch returns to the queue. */
enum sdr_status sdr_drop(struct sdr_node *node, struct sdr_gradient *gradient);
/* Tells all nodes that the run is over. */
enum sdr_status sdr_dismiss(struct sdr_node *node);

#endif
