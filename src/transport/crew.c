#include "transport/crew.h"
#include "base/clock.h"
#include "base/memory.h"
#include "network.h"
#include "run.h"

#include <stdio.h>

enum sdr_status sdr_crew_open(struct sdr_run *run, struct sdr_crew *crew)
{
    pthread_mutex_init(&crew->lock, NULL);
    SDR_TRY(sdr_allocate(&crew->box, (size_t)run->network->nodes, sizeof *crew->box, "threads"));
    for (; crew->nodes < run->network->nodes; crew->nodes++) {
        sdr_box_open(&crew->box[crew->nodes]);
        run->network->node[crew->nodes].seat = &crew->box[crew->nodes];
    }
    return SDR_OK;
}

void sdr_crew_free(struct sdr_crew *crew)
{
    for (int i = 0; i < crew->nodes; i++)
        sdr_box_free(&crew->box[i]);
    sdr_release(crew->box);
    pthread_mutex_destroy(&crew->lock);
}

void sdr_crew_break_up(struct sdr_crew *crew, enum sdr_status status)
{
    pthread_mutex_lock(&crew->lock);
    if (crew->status == SDR_OK) {
        crew->status = status;
        snprintf(crew->sentence, sizeof crew->sentence, "%s", sdr_error());
    }
    pthread_mutex_unlock(&crew->lock);
    atomic_store(&crew->broken, true);
    for (int i = 0; i < crew->nodes; i++)
        sdr_box_close(&crew->box[i]);
}

enum sdr_status sdr_crew_broken(struct sdr_crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    enum sdr_status status = crew->status;
    pthread_mutex_unlock(&crew->lock);
    return status == SDR_OK ? SDR_OK : sdr_fail(status, "%s", crew->sentence);
}

static void *run_node(void *argument)
{
    struct sdr_node *node = argument;
    struct sdr_crew *crew = node->run->network->shared;
    enum sdr_status status = crew->loop(node);
    if (status != SDR_OK)
        sdr_crew_break_up(crew, status);
    return NULL;
}

enum sdr_status sdr_crew_launch(struct sdr_run *run, enum sdr_status (*loop)(struct sdr_node *node),
                                bool (*lives_here)(const struct sdr_node *node))
{
    struct sdr_network *net = run->network;
    struct sdr_crew *crew = net->shared;
    pthread_t *thread;
    int started = 0, wanted = 0;
    struct sdr_node *own = NULL; /* the first runs in this thread: it talks to the user */
    SDR_TRY(sdr_allocate(&thread, (size_t)net->nodes, sizeof *thread, "threads"));
    crew->loop = loop;
    crew->launched = sdr_clock_now();
    for (int i = 0; i < net->nodes && started == wanted; i++) {
        if (!lives_here(&net->node[i]))
            continue;
        if (!own) {
            own = &net->node[i];
            continue;
        }
        wanted++;
        started += pthread_create(&thread[started], NULL, run_node, &net->node[i]) == 0;
    }
    if (started < wanted) {
        sdr_fail(SDR_RUNTIME, "no more than %d threads can be started: give fewer --workers",
                 started + 1);
        sdr_crew_break_up(crew, SDR_RUNTIME);
    } else if (own) {
        run_node(own);
    }
    for (int i = 0; i < started; i++)
        pthread_join(thread[i], NULL);
    sdr_release(thread);
    return sdr_crew_broken(crew);
}
