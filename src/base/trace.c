#define _DEFAULT_SOURCE /* strsep */
#include "base/trace.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS_MOST = 1 << 20 };
#define BYTES_MOST (UINT64_C(1) << 30)

/* Column numbers of the worker (−1: none) and the time. */
struct columns {
    int worker, seconds;
};

static struct columns find_columns(const char *line)
{
    struct columns of = {-1, -1};
    char copy[512], *rest = copy;
    snprintf(copy, sizeof copy, "%.*s", (int)strcspn(line, "\r\n"), line);
    for (int i = 0; rest; i++) {
        const char *name = strsep(&rest, ",");
        if (strcmp(name, "worker") == 0)
            of.worker = i;
        if (strcmp(name, "computing") == 0)
            of.seconds = i;
    }
    return of;
}

static bool read_line(char *line, struct columns of, const char *between, uint64_t *worker,
                      double *seconds)
{
    int i = 0;
    bool time = false, who = of.worker < 0;
    for (char *cell; (cell = strsep(&line, between)); i++) {
        if (i == of.worker)
            who = sdr_parse_u64(cell, worker) && *worker < WORKERS_MOST;
        if (i == of.seconds)
            time = sdr_parse_double(cell, seconds) && *seconds >= 0 && *seconds <= 1e9;
    }
    return who && time;
}

/* Runs twice over the same lines: counts the times of each worker, then stores them. */
static enum sdr_status scan(const char *path, const char *text, struct columns of, bool table,
                            struct sdr_trace *trace, bool fill)
{
    uint64_t number = table;
    const char *at = table ? text + strcspn(text, "\n") : text;
    for (at += table && *at; *at; number++) {
        size_t length = strcspn(at, "\n");
        char line[1024];
        uint64_t worker = 0;
        double seconds;
        snprintf(line, sizeof line, "%.*s", (int)(length < 1023 ? length : 1023), at);
        at += length + (at[length] == '\n');
        line[strcspn(line, "\r")] = 0;
        if (!*line)
            continue;
        if (!read_line(line, of, table ? "," : " \t", &worker, &seconds))
            return sdr_fail(SDR_BAD_DATA, "%s:%llu: that is not a time, nor a worker and a time",
                            path, (unsigned long long)number + 1);
        if (fill)
            trace->seconds[trace->start[worker]++] = (float)seconds;
        else
            trace->start[worker + 1]++;
        trace->workers = worker >= trace->workers ? (uint32_t)worker + 1 : trace->workers;
        trace->count += !fill;
    }
    return SDR_OK;
}

static enum sdr_status sort_out(const char *path, const char *text, struct sdr_trace *trace)
{
    text += strspn(text, "\r\n");
    bool table = strncmp(text, "worker,", 7) == 0;
    size_t first = strcspn(text, "\n");
    bool two = memchr(text, ' ', first) || memchr(text, '\t', first);
    struct columns of = table ? find_columns(text)
                        : two ? (struct columns){0, 1}
                              : (struct columns){-1, 0};
    if (of.seconds < 0)
        return sdr_fail(SDR_BAD_DATA, "%s:1: there is no column 'computing'", path);
    SDR_TRY(sdr_allocate(&trace->start, WORKERS_MOST + 2, sizeof *trace->start, "times"));
    SDR_TRY(scan(path, text, of, table, trace, false));
    if (!trace->count)
        return sdr_fail(SDR_BAD_DATA, "'%s' has no times", path);
    SDR_TRY(sdr_allocate(&trace->seconds, trace->count, sizeof *trace->seconds, "times"));
    for (uint32_t w = 0; w < trace->workers; w++)
        trace->start[w + 1] += trace->start[w];
    SDR_TRY(scan(path, text, of, table, trace, true));
    memmove(trace->start + 1, trace->start,
            trace->workers * sizeof *trace->start); /* filling advanced each start to its end */
    trace->start[0] = 0;
    return SDR_OK;
}

enum sdr_status sdr_trace_load(const char *path, struct sdr_trace *trace)
{
    char *text;
    size_t bytes;
    *trace = (struct sdr_trace){0};
    SDR_TRY(sdr_file_load(path, BYTES_MOST, &text, &bytes));
    enum sdr_status status =
        memchr(text, 0, bytes) ? sdr_fail(SDR_BAD_DATA, "'%s' is not a text", path) : SDR_OK;
    char *whole;
    if (status == SDR_OK)
        status = sdr_allocate(&whole, bytes + 1, 1, "times");
    if (status == SDR_OK) {
        memcpy(whole, text, bytes);
        status = sort_out(path, whole, trace);
        sdr_release(whole);
    }
    sdr_release(text);
    if (status != SDR_OK)
        sdr_trace_free(trace);
    return status;
}

void sdr_trace_free(struct sdr_trace *trace)
{
    sdr_release(trace->seconds);
    sdr_release(trace->start);
    *trace = (struct sdr_trace){0};
}

double sdr_trace_pick(const struct sdr_trace *trace, uint32_t worker, double at)
{
    uint64_t first = 0, count = trace->count;
    if (worker < trace->workers && trace->start[worker + 1] > trace->start[worker]) {
        first = trace->start[worker];
        count = trace->start[worker + 1] - first;
    }
    return trace->seconds[first + (uint64_t)(at * (double)count)];
}

double sdr_trace_mean(const struct sdr_trace *trace)
{
    double sum = 0;
    for (uint64_t i = 0; i < trace->count; i++)
        sum += trace->seconds[i];
    return sum / (double)trace->count;
}
