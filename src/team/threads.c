/* Starts, pins and joins the worker threads. */
#include "base/affinity.h"
#include "base/memory.h"
#include "base/thread.h"
#include "team/plan.h"
#include "team/team.h"
#include "team/turns.h"

/* Pins workers and moves their replicas to their NUMA nodes: if requested, or by default with
   several nodes. On a single node the scheduler places threads better. */
static enum sdr_status pin_workers(struct sdr_run *run)
{
    enum { AUTO, YES, NO };
    int pin = run->options.settings.pin;
    struct sdr_team *team = run->shared.team;
    if (pin == NO || team->workers < 2 || (pin == AUTO && sdr_affinity_nodes() < 2))
        return SDR_OK;
    SDR_TRY(sdr_affinity_open(NULL, team->workers, &team->affinity));
    if (!team->affinity)
        sdr_note(&run->options, "nobody is pinned: there are more workers than cores");
    for (int w = 0; w < team->workers && team->affinity; w++) {
        struct sdr_own own = sdr_own_pieces(w, team->workers, (uint64_t)run->shared.plan.copies);
        for (uint64_t c = own.first; c < own.end; c++)
            sdr_replica_place(&run->shared.replica[c], team->affinity, w);
    }
    return SDR_OK;
}

static void *work(void *argument)
{
    struct sdr_node *node = argument;
    if (node->run->shared.team->affinity)
        sdr_affinity_pin(node->run->shared.team->affinity, node->worker);
    enum sdr_status status = node->run->use.strategy->team->worker(node);
    if (status != SDR_OK)
        sdr_team_break(node->run->shared.team, status);
    return NULL;
}

static bool start(struct sdr_run *run, int worker, pthread_t *thread)
{
    const struct sdr_team *team = run->shared.team;
    struct sdr_node *node = &run->shared.node[worker];
    return (team->affinity ? pthread_create(thread, NULL, work, node) /* it pins itself */
                           : sdr_thread_create(thread, worker, team->workers, work, node)) == 0;
}

static enum sdr_status run_threads(struct sdr_run *run)
{
    pthread_t thread[SDR_WORKERS_MOST];
    int started = 1, workers = run->shared.team->workers;
    while (started < workers && start(run, started, &thread[started]))
        started++;
    if (started < workers) {
        sdr_fail(SDR_RUNTIME, "no more than %d of %d threads can be started: give fewer --workers",
                 started, run->workers);
        sdr_team_break(run->shared.team, SDR_RUNTIME);
    } else {
        work(&run->shared.node[0]);
    }
    for (int i = 1; i < started; i++)
        pthread_join(thread[i], NULL);
    return sdr_team_status(run->shared.team);
}

enum sdr_status sdr_team_work(struct sdr_run *run)
{
    if (!run->use.strategy->many)
        return run->use.strategy->team->worker(&run->shared.node[0]);
    struct sdr_team *team;
    int workers = run->race.replay ? 1 : run->workers;
    SDR_TRY(sdr_allocate(&team, 1, sizeof *team + (size_t)workers * sizeof *team->pieces,
                         "a team of threads"));
    team->workers = workers;
    team->polls = run->workers <= sdr_thread_limit();
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->changed, NULL);
    for (int i = 0; i < SDR_LOCKS_MOST; i++)
        pthread_mutex_init(&team->guard[i], NULL);
    run->shared.team = team;
    run->shared.team_version = run->parameters.version;
    if (run->shared.turns)
        atomic_store(&team->turn, team->first_turn = run->shared.turns->first);
    sdr_plan_stop(run);
    enum sdr_status status = pin_workers(run);
    if (status == SDR_OK)
        status = run_threads(run);
    if (team->affinity)
        sdr_affinity_restore(team->affinity);
    sdr_affinity_close(team->affinity);
    run->shared.team = NULL;
    for (int i = 0; i < SDR_LOCKS_MOST; i++)
        pthread_mutex_destroy(&team->guard[i]);
    pthread_cond_destroy(&team->changed);
    pthread_mutex_destroy(&team->lock);
    sdr_release(team);
    return status;
}
