#define _GNU_SOURCE /* sched_getaffinity, pthread_attr_setaffinity_np */
#include "base/thread.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* The cgroup's CPU limit (v2 cpu.max, else v1), rounded up; 0 if there is none. */
static int cgroup_limit(void)
{
    long quota = 0, period = 0;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (file) {
        if (fscanf(file, "%ld %ld", &quota, &period) != 2)
            quota = 0; /* "max": no limit */
        fclose(file);
    } else if ((file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "re"))) {
        if (fscanf(file, "%ld", &quota) != 1)
            quota = 0;
        fclose(file);
        period = 100000;
    }
    return quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

/* Of the calling thread: its cores before it was pinned. */
static _Thread_local cpu_set_t cores_before;
static _Thread_local bool is_pinned;

void sdr_thread_set_pinned(bool pinned)
{
    is_pinned = pinned && sched_getaffinity(0, sizeof cores_before, &cores_before) == 0;
}

/* The cores of the calling thread, or those before it was pinned. */
static bool own_cores(cpu_set_t *set)
{
    if (is_pinned)
        *set = cores_before;
    return is_pinned || sched_getaffinity(0, sizeof *set, set) == 0;
}

int sdr_thread_limit(void)
{
    cpu_set_t set;
    int cores = own_cores(&set) ? CPU_COUNT(&set) : 1;
    int quota = cgroup_limit();
    if (quota > 0 && quota < cores)
        cores = quota;
    return cores > 0 ? cores : 1;
}

/* The CPU of a set that is `places` after the caller's, in a circle. */
static int cpu_after(const cpu_set_t *set, int places)
{
    int cpu = sched_getcpu();
    while (places > 0) {
        cpu = (cpu + 1) % CPU_SETSIZE;
        places -= CPU_ISSET(cpu, set) != 0;
    }
    return cpu;
}

int sdr_thread_create(pthread_t *thread, int number, int threads, void *(*work)(void *),
                      void *argument)
{
    cpu_set_t all, start;
    pthread_attr_t attributes;
    if (!own_cores(&all) || (CPU_COUNT(&all) != threads && !is_pinned) ||
        pthread_attr_init(&attributes) != 0)
        return pthread_create(thread, NULL, work, argument);
    start = all;
    if (CPU_COUNT(&all) == threads) {
        CPU_ZERO(&start);
        CPU_SET(cpu_after(&all, number), &start);
    }
    pthread_attr_setaffinity_np(&attributes, sizeof start, &start);
    int failed = pthread_create(thread, &attributes, work, argument);
    pthread_attr_destroy(&attributes);
    if (failed)
        return pthread_create(thread, NULL, work, argument);
    pthread_setaffinity_np(*thread, sizeof all, &all);
    return 0;
}

struct parallel {
    enum sdr_status (*task)(void *context, size_t index);
    void *context;
    size_t count;
    atomic_size_t next;
    pthread_mutex_t lock; /* guards the members below */
    size_t failed_index;
    enum sdr_status status;
    char sentence[1024];
};

static void *work(void *argument)
{
    struct parallel *p = argument;
    for (;;) {
        size_t index = atomic_fetch_add(&p->next, 1);
        if (index >= p->count)
            return NULL;
        enum sdr_status status = p->task(p->context, index);
        if (status == SDR_OK)
            continue;
        atomic_store(&p->next, p->count);
        pthread_mutex_lock(&p->lock);
        if (index < p->failed_index) {
            p->failed_index = index;
            p->status = status;
            snprintf(p->sentence, sizeof p->sentence, "%s", sdr_error());
        }
        pthread_mutex_unlock(&p->lock);
        return NULL;
    }
}

enum sdr_status sdr_parallel(int threads, size_t count,
                             enum sdr_status (*task)(void *context, size_t index), void *context)
{
    enum { MOST = 256 };
    struct parallel p = {
        .task = task, .context = context, .count = count, .failed_index = SIZE_MAX};
    pthread_t others[MOST];
    int started = 0;
    pthread_mutex_init(&p.lock, NULL);
    /* If a thread cannot be created, the others do its work. */
    while (started < threads - 1 && started < MOST && (size_t)started + 1 < count &&
           sdr_thread_create(&others[started], started + 1, threads, work, &p) == 0)
        started++;
    work(&p);
    for (int i = 0; i < started; i++)
        pthread_join(others[i], NULL);
    pthread_mutex_destroy(&p.lock);
    return p.status == SDR_OK ? SDR_OK : sdr_fail(p.status, "%s", p.sentence);
}
