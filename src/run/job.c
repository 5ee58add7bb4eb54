/* The processes of a job: number of this process, comparison of options and data, broadcasts of
   the first process. */
#include "run/job.h"
#include "base/file.h"
#include "base/memory.h"
#include "run/fingerprint.h"
#include "run/registry.h"
#include "run/run.h"

/* The transport whose job this process has joined, and its number there. */
static const struct sdr_transport *joined;
static int joined_as;
static void (*overdue)(enum sdr_status status, const char *sentence);

int sdr_job_process(void)
{
    return joined_as;
}

enum sdr_status sdr_job_share(void *bytes, size_t count)
{
    return joined ? joined->share(bytes, count) : SDR_OK;
}

enum sdr_status sdr_share(const struct sdr_run *run, void *bytes, size_t count)
{
    return run->processes > 1 ? run->use.transport->share(bytes, count) : SDR_OK;
}

enum sdr_status sdr_job_meet(const struct sdr_run *run)
{
    char *text;
    if (run->processes == 1)
        return SDR_OK;
    SDR_TRY(sdr_job_text(run, &text));
    /* A process without a cache file reads the data, which takes as long as in the first
       process. */
    enum sdr_status status =
        run->use.transport->barrier(run->use.transport_options, run->data->seconds, text);
    sdr_release(text);
    return status;
}

enum sdr_status sdr_job_join(const struct sdr_options *options, int *process, int *processes)
{
    const struct sdr_plugin *plugin;
    void *parsed;
    *process = 0;
    *processes = 1;
    SDR_TRY(sdr_plugin_choose("transport", sdr_transport_table, options->settings.transport,
                              &plugin, &parsed));
    const struct sdr_transport *transport = (const struct sdr_transport *)plugin;
    enum sdr_status status = SDR_OK;
    if (transport->join)
        status = transport->join(parsed, process, processes);
    sdr_plugin_free(plugin, parsed);
    if (transport->join && status == SDR_OK) {
        joined = transport;
        joined_as = *process;
    }
    return status;
}

enum sdr_status sdr_job_leave(enum sdr_status status)
{
    if (joined)
        status = joined->leave(status);
    joined = NULL;
    joined_as = 0;
    return status;
}

void sdr_job_watch(void (*end)(enum sdr_status status, const char *sentence))
{
    overdue = end;
}

void sdr_job_overdue(enum sdr_status status, const char *sentence)
{
    if (!overdue)
        return;
    sdr_writers_remove();
    overdue(status, sentence);
}
