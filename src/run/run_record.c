/* Opens the record to write (--record) or to replay (--replay), once the run is set up. The
   files themselves: record.c. */
#include "base/file.h"
#include "base/memory.h"
#include "run/fingerprint.h"
#include "run/record.h"
#include "run/run.h"

#include <string.h>

/* The path, plus the options that determine the end of the run and the order of its rows. Given
   away. */
static enum sdr_status whole_path(const struct sdr_run *run, char **path)
{
    const struct sdr_settings *s = &run->options.settings;
    struct sdr_text text = {0};
    sdr_text_add(
        &text, "%s;epochs=%llu;updates=%llu;target=%s;early-stop=%llu;shuffle=%d;memory=%llu",
        run->log.path, (unsigned long long)run->pace.epochs, (unsigned long long)s->updates,
        s->target ? s->target : "", (unsigned long long)s->early_stop, (int)run->rows.shuffle,
        (unsigned long long)(run->data->streams ? run->rows.block_rows : 0));
    return sdr_text_take(&text, path);
}

static enum sdr_status compare(const struct sdr_run *run, const char *path)
{
    const char *file = run->options.settings.replay, *recorded = run->race.replay->run_path;
    if (strcmp(path, recorded) != 0) {
        char name[32];
        const char *mine = strstr(path, "data="), *its = strstr(recorded, "data=");
        bool same = mine && its && strncmp(mine, its, strcspn(mine, ";")) == 0;
        sdr_path_difference(path, recorded, name);
        return sdr_fail(SDR_USAGE, "%s: the recorded run had other %s%s", file,
                        !same                         ? "data"
                        : strcmp(name, "length") == 0 ? "epochs"
                                                      : "options: ",
                        !same || strcmp(name, "length") == 0 ? "" : name);
    }
    if (run->race.replay->workers != (uint32_t)run->workers)
        return sdr_fail(SDR_BAD_FILE, "%s: the record has more workers than this run can have",
                        file);
    return SDR_OK;
}

enum sdr_status sdr_run_record_open(struct sdr_run *run)
{
    const struct sdr_settings *s = &run->options.settings;
    struct sdr_file_facts facts;
    char *path;
    if (!s->record && !s->replay)
        return SDR_OK;
    if (s->record && s->resume) {
        sdr_note(&run->options, "nothing is recorded: a record needs the run from its beginning");
        return SDR_OK;
    }
    if (s->record && sdr_file_exists(s->record) &&
        (sdr_file_facts(s->record, &facts) != SDR_OK || !facts.regular))
        return sdr_fail(SDR_USAGE, "--record %s: that is no regular file", s->record);
    SDR_TRY(whole_path(run, &path));
    enum sdr_status status =
        s->record ? sdr_record_create(s->record, path, (uint32_t)run->workers, &run->race.record)
                  : compare(run, path);
    sdr_release(path);
    return status;
}
