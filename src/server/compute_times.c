/* --compute, --delay and --slow: compute times in virtual time, and delays in real time. */
#include "server/compute_times.h"
#include "base/memory.h"
#include "base/text.h"
#include "run/run.h"
#include "server/network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static double slowness(const struct sdr_node *node)
{
    const float *of = node->run->network->times.slowness;
    return of ? of[node->worker] : 1;
}

static int64_t delay(const struct sdr_node *node, const struct sdr_work *work)
{
    const struct sdr_network *net = node->run->network;
    int64_t time = 0;
    for (uint32_t i = 0; net->times.delay.terms && i < work->draws && time < INT64_C(1) << 60; i++)
        time += sdr_delay_draw(&net->times.delay, ~node->run->options.settings.seed,
                               (uint32_t)node->worker, work->number + i);
    return time;
}

/* The share of the next step in a time; the shares of all steps add up to it exactly. */
static int64_t step_share(const struct sdr_work *work, int64_t time)
{
    double before = 0, after = 0, sum = 0;
    if (work->steps == 1)
        return time;
    for (uint32_t i = 0; i < work->steps; i++) {
        sum += work->cost ? work->cost[i] : 1;
        before = i + 1 == work->next ? sum : before;
        after = i == work->next ? sum : after;
    }
    if (!(sum > 0))
        return work->next == 0 ? time : 0;
    int64_t end = after == sum ? time : (int64_t)((double)time * (after / sum));
    return end - (before == sum ? time : (int64_t)((double)time * (before / sum)));
}

int64_t sdr_compute_time(const struct sdr_node *node, struct sdr_work *work)
{
    const struct sdr_network *net = node->run->network;
    if (work->next > 0)
        return step_share(work, work->time);
    int64_t time = 0;
    for (uint32_t i = 0; i < work->draws && time < INT64_C(1) << 60; i++)
        time += sdr_delay_draw(&net->times.compute, node->run->options.settings.seed,
                               (uint32_t)node->worker, work->number + i);
    work->time = (int64_t)fmin((double)time * slowness(node), 1e18) + delay(node, work);
    return step_share(work, work->time);
}

int64_t sdr_compute_delay(const struct sdr_node *node, const struct sdr_work *work, int64_t took)
{
    return (int64_t)fmin((double)took * (slowness(node) - 1), 1e18) +
           step_share(work, delay(node, work));
}

enum sdr_status sdr_parse_factors(const char *text, char between, const char *owner, int workers,
                                  float **factors)
{
    const char ends[] = {between, 0};
    if (!*factors)
        SDR_TRY(sdr_allocate(factors, (size_t)workers, sizeof(float), owner));
    for (int w = 0; w < workers; w++)
        (*factors)[w] = 1;
    for (const char *at = text; *at;) {
        char item[64];
        size_t length = strcspn(at, ends);
        snprintf(item, sizeof item, "%.*s", (int)(length < 63 ? length : 63), at);
        char *colon = strchr(item, ':'), *end = colon ? item + strlen(item) - 1 : item;
        uint64_t worker;
        double factor;
        if (!colon || end <= colon || *end != 'x')
            return sdr_fail(SDR_USAGE, "%s takes WORKER:FACTORx, such as 2:3x, not '%s'", owner,
                            item);
        *colon = *end = 0;
        if (!sdr_parse_u64(item, &worker) || !sdr_parse_double(colon + 1, &factor) ||
            !(factor >= 1 && factor <= 1e6))
            return sdr_fail(SDR_USAGE,
                            "%s takes WORKER:FACTORx with a factor of 1 or more, not '%.*s'", owner,
                            (int)length, at);
        if (worker >= (uint64_t)workers)
            return sdr_fail(SDR_USAGE, "%s %s: workers are 0 … %d", owner, text, workers - 1);
        (*factors)[worker] = (float)factor;
        at += length + (at[length] == between);
    }
    return SDR_OK;
}

enum sdr_status sdr_compute_times_parse(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    struct sdr_network *net = run->network;
    SDR_TRY(sdr_delay_parse(s->compute ? s->compute : "const:1", "--compute", &net->times.compute));
    if (s->delay)
        SDR_TRY(sdr_delay_parse(s->delay, "--delay", &net->times.delay));
    return s->slow ? sdr_parse_factors(s->slow, ',', "--slow", net->workers, &net->times.slowness)
                   : SDR_OK;
}
