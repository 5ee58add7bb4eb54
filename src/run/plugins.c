/* Finding, listing and giving options to plug-ins of every kind. */
#include "base/cpu.h"
#include "base/memory.h"
#include "run/registry.h"
#include "run/settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const void *sdr_optimizers(void)
{
    return sdr_optimizer_table[sdr_cpu_level()];
}

const struct sdr_optimizer *sdr_cell_optimizer(const struct sdr_optimizer *optimizer)
{
    enum sdr_cpu level = sdr_cpu_level() < SDR_CPU_AVX2 ? sdr_cpu_level() : SDR_CPU_AVX2;
    const struct sdr_optimizer *const *table = sdr_optimizer_table[level];
    while (*table && strcmp((*table)->name, optimizer->name) != 0)
        table++;
    return *table ? *table : optimizer;
}

static const struct sdr_plugin *find(const struct sdr_plugin *const *table, const char *name)
{
    for (; *table; table++)
        if (strcmp((*table)->name, name) == 0)
            return *table;
    return NULL;
}

static enum sdr_status unknown(const char *kind, const struct sdr_plugin *const *table,
                               const char *name)
{
    const char *best = NULL;
    size_t least = strlen(name) / 3 + 2;
    const struct sdr_plugin *const *first = table;
    for (; *table; table++) {
        size_t distance = sdr_edit_distance(name, (*table)->name);
        if (distance < least) {
            least = distance;
            best = (*table)->name;
        }
    }
    if (best)
        return sdr_fail(SDR_USAGE, "there is no %s '%s'; did you mean '%s'?", kind, name, best);
    struct sdr_text all = {0};
    for (table = first; *table; table++)
        sdr_text_add(&all, " %s", (*table)->name);
    enum sdr_status status = sdr_fail(SDR_USAGE, "there is no %s '%s'; there are:%s", kind, name,
                                      all.bytes ? all.bytes : "");
    sdr_text_free(&all);
    return status;
}

enum sdr_status sdr_plugin_choose(const char *kind, const void *table, const char *spec,
                                  const struct sdr_plugin **plugin, void **parsed)
{
    char *name;
    const char *rest;
    *parsed = NULL;
    SDR_TRY(sdr_spec_split(spec, &name, &rest));
    enum sdr_status status = SDR_OK;
    *plugin = find(table, name);
    if (!*plugin)
        status = unknown(kind, table, name);
    else if ((*plugin)->options_size)
        status = sdr_allocate(parsed, 1, (*plugin)->options_size, name);
    if (status == SDR_OK)
        status = sdr_option_defaults((*plugin)->options, *parsed);
    if (status == SDR_OK)
        status = sdr_spec_options((*plugin)->options, name, rest, *parsed);
    if (status != SDR_OK) {
        sdr_plugin_free(*plugin, *parsed);
        *parsed = NULL;
    }
    sdr_release(name);
    return status;
}

void sdr_plugin_free(const void *plugin, void *parsed)
{
    if (parsed)
        sdr_option_free(((const struct sdr_plugin *)plugin)->options, parsed);
    sdr_release(parsed);
}

static void list_options(const struct sdr_option *option, struct sdr_text *out)
{
    for (; option && option->key; option++) {
        sdr_text_add(out, "    %s=%s  %s", option->key, sdr_option_shown(option), option->help);
        if (option->preset && *option->preset)
            sdr_text_add(out, " [%s]", option->preset);
        sdr_text_add(out, "\n");
    }
}

enum sdr_status sdr_list(const char *kind, bool verbose, char **text)
{
    struct {
        const char *name, *help;
        const void *table;
    } kinds[] = {
        {"model", "models: what is trained", sdr_model_kind_table},
        {"optimizer", "update rules: from gradients to steps", sdr_optimizers()},
        {"schedule", "how the learning rate changes over a run", sdr_schedule_table},
        {"sync", "parallel strategies: when and how workers agree", sdr_strategy_table},
        {"transport", "how servers and workers exchange messages", sdr_transport_table},
        {"codec", "how gradients are encoded in messages", sdr_codec_table},
        {"aggregate", "how the gradients of several workers become one", sdr_aggregate_table},
        {"format", "file formats that can be read", sdr_format_table},
        {"generate", "synthetic data that can be generated", sdr_generator_table}};
    size_t count = sizeof kinds / sizeof *kinds;
    struct sdr_text out = {0};
    for (size_t i = 0; i < count; i++) {
        if (!kind) {
            sdr_text_add(&out, "%-18s %s\n", kinds[i].name, kinds[i].help);
            continue;
        }
        if (strcmp(kind, kinds[i].name) != 0)
            continue;
        for (const struct sdr_plugin *const *p = kinds[i].table; *p; p++) {
            sdr_text_add(&out, "%-22s %s\n", (*p)->name, (*p)->summary);
            if (verbose)
                list_options((*p)->options, &out);
        }
        return sdr_text_take(&out, text);
    }
    if (kind) {
        const char *best = kinds[0].name;
        for (size_t i = 1; i < count; i++)
            if (sdr_edit_distance(kind, kinds[i].name) < sdr_edit_distance(kind, best))
                best = kinds[i].name;
        return sdr_fail(SDR_USAGE, "there is no kind of plug-in '%s'; did you mean '%s'?", kind,
                        best);
    }
    return sdr_text_take(&out, text);
}

void sdr_note(const struct sdr_options *options, const char *format, ...)
{
    char note[512];
    if (!options->report)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(note, sizeof note, format, arguments);
    va_end(arguments);
    options->report(options->report_context,
                    &(struct sdr_report){.kind = SDR_REPORT_NOTE, .note = note});
}

const char *sdr_version(void)
{
    return SDR_VERSION;
}
