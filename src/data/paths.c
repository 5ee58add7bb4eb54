/* Expands paths and determines the format of files. */
#include "base/file.h"
#include "data/read.h"
#include "run/registry.h"

#include <glob.h>
#include <string.h>
#include <strings.h>

static enum sdr_status add_path(struct sdr_paths *paths, const char *path)
{
    if (paths->count == paths->room) {
        size_t room = paths->room ? 2 * paths->room : 8;
        char **list;
        SDR_TRY(sdr_allocate(&list, room, sizeof *list, "the list of files"));
        if (paths->count)
            memcpy(list, paths->path, paths->count * sizeof *list);
        sdr_release(paths->path);
        paths->path = list;
        paths->room = room;
    }
    SDR_TRY(sdr_copy_string(&paths->path[paths->count], path));
    paths->count++;
    return SDR_OK;
}

static enum sdr_status expand_pattern(const char *pattern, struct sdr_paths *paths)
{
    glob_t found = {0};
    int result = glob(pattern, 0, NULL, &found); /* sorted by name */
    enum sdr_status status = SDR_OK;
    if (result == GLOB_NOSPACE)
        status = sdr_fail(SDR_RUNTIME, "out of memory: the list of files");
    else if (result != 0)
        status = sdr_fail(SDR_RUNTIME, "no file matches '%s'", pattern);
    for (size_t i = 0; status == SDR_OK && i < found.gl_pathc; i++)
        status = add_path(paths, found.gl_pathv[i]);
    globfree(&found);
    return status;
}

enum sdr_status sdr_paths_expand(const char *const *given, size_t count, struct sdr_paths *paths)
{
    enum sdr_status status = SDR_OK;
    *paths = (struct sdr_paths){0};
    if (count == 0)
        return sdr_fail(SDR_USAGE, "no data file is given");
    for (size_t i = 0, standard = 0; status == SDR_OK && i < count; i++) {
        const char *path = given[i];
        if (strcmp(path, "-") == 0 && standard++)
            status = sdr_fail(SDR_USAGE, "standard input ('-') is given twice");
        if (status != SDR_OK)
            break;
        bool pattern = strpbrk(path, "*?[") && !sdr_file_exists(path);
        status = pattern ? expand_pattern(path, paths) : add_path(paths, path);
    }
    if (status != SDR_OK)
        sdr_paths_free(paths);
    return status;
}

void sdr_paths_free(struct sdr_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        sdr_release(paths->path[i]);
    sdr_release(paths->path);
    *paths = (struct sdr_paths){0};
}

/* ---- formats ---- */

static const struct sdr_format *format_called(const char *name)
{
    for (size_t i = 0; sdr_format_table[i]; i++)
        if (strcmp(sdr_format_table[i]->name, name) == 0)
            return sdr_format_table[i];
    return NULL;
}

static enum sdr_status no_format(const char *name)
{
    const char *nearest = NULL;
    size_t least = strlen(name) / 2 + 1;
    for (size_t i = 0; sdr_format_table[i]; i++) {
        size_t distance = sdr_edit_distance(name, sdr_format_table[i]->name);
        if (distance < least) {
            least = distance;
            nearest = sdr_format_table[i]->name;
        }
    }
    if (nearest)
        return sdr_fail(SDR_USAGE, "no format '%s' (did you mean '%s'?)", name, nearest);
    return sdr_fail(SDR_USAGE, "no format '%s'; 'sounder list format' shows what there is", name);
}

/* The extension, ignoring that of a compression: its first byte and length; 0: none. */
static size_t extension_of(const char *path, const char **extension)
{
    const char *base = sdr_path_base(path), *end = base + strlen(base);
    static const char *const packed[] = {".gz", ".zst"};
    for (size_t i = 0; i < 2; i++) {
        size_t length = strlen(packed[i]);
        if ((size_t)(end - base) > length && strncasecmp(end - length, packed[i], length) == 0) {
            end -= length;
            break;
        }
    }
    for (const char *p = end; p > base; p--)
        if (p[-1] == '.') {
            *extension = p;
            return (size_t)(end - p);
        }
    return 0;
}

static bool claims(const struct sdr_format *format, const char *extension, size_t length)
{
    const char *p = format->extensions;
    while (length && p && *p) {
        size_t word = strcspn(p, " ");
        if (word == length && strncasecmp(p, extension, length) == 0)
            return true;
        p += word + (p[word] == ' ');
    }
    return false;
}

/* The format most certain of the content: among those of the extension, or, if `all`, among all. */
static const struct sdr_format *surest(const char *extension, size_t length, bool all,
                                       const char *head, size_t count, int *sure)
{
    const struct sdr_format *best = NULL;
    *sure = all ? 0 : -1;
    for (size_t i = 0; sdr_format_table[i]; i++) {
        const struct sdr_format *format = sdr_format_table[i];
        if (!all && !claims(format, extension, length))
            continue;
        int certainty = format->recognise ? format->recognise(head, count) : 0;
        if (certainty > *sure) {
            *sure = certainty;
            best = format;
        }
    }
    return best;
}

/* Whether the content has the format of the schema, a format without columns: a table of ratings
   need not have the extension .triples again. */
static bool fits_known(const struct sdr_schema *known, const char *head, size_t count)
{
    enum { SURE = 15 };
    const struct sdr_format *format = known->format ? format_called(known->format) : NULL;
    return format && !known->columns && format->recognise && format->recognise(head, count) >= SURE;
}

enum sdr_status sdr_format_choose(const struct sdr_data_options *options,
                                  const struct sdr_schema *known, const char *path,
                                  const char *name, const char *head, size_t count,
                                  const struct sdr_format **format, bool *guessed)
{
    const char *extension = "";
    int sure;
    *guessed = false;
    if (options->format && strcmp(options->format, "auto") != 0) {
        *format = format_called(options->format);
        return *format ? SDR_OK : no_format(options->format);
    }
    size_t length = extension_of(path, &extension);
    *format = surest(extension, length, false, head, count, &sure);
    const struct sdr_format *by_content = surest(NULL, 0, true, head, count, &sure);
    if (*format && known && fits_known(known, head, count)) {
        *format = format_called(known->format);
        return SDR_OK;
    }
    *guessed =
        !*format || (options->by_content && sure >= SDR_CONTENT_CERTAIN && by_content != *format &&
                     sdr_format_check_options(options, by_content) == SDR_OK);
    if (!*guessed)
        return SDR_OK;
    *format = by_content;
    if (known && known->format && sure < 100 && format_called(known->format)) {
        *format = format_called(known->format); /* the format of the model's training data */
        *guessed = false;
    }
    if (!*format)
        return sdr_fail(SDR_BAD_DATA, "%s: the format is not recognised; name it with --format",
                        name);
    return SDR_OK;
}

/* ---- options of a format ---- */

static bool takes(const struct sdr_format *format, const char *option)
{
    size_t length = strlen(option);
    for (const char *p = format && format->takes ? format->takes : ""; *p; p += strspn(p, " ")) {
        size_t word = strcspn(p, " ");
        if (word == length && memcmp(p, option, length) == 0)
            return true;
        p += word;
    }
    return false;
}

/* Refuses an option that the format ignores; lists the formats that take it, or this format's
   option of the same name. */
static enum sdr_status does_nothing(const struct sdr_format *format, const char *option)
{
    const char *other = strcmp(option, "label") == 0    ? "labels"
                        : strcmp(option, "labels") == 0 ? "label"
                                                        : NULL;
    const char *name = format ? format->name : ".sdc";
    struct sdr_text list = {0};
    if (other && takes(format, other))
        return sdr_fail(SDR_USAGE, "--%s does nothing for %s data, which takes --%s", option, name,
                        other);
    for (size_t i = 0; sdr_format_table[i]; i++)
        if (takes(sdr_format_table[i], option))
            sdr_text_add(&list, "%s%s", list.length ? ", " : "", sdr_format_table[i]->name);
    sdr_fail(SDR_USAGE, "--%s does nothing for %s data (it is for %s)", option, name,
             list.length && !list.failed ? list.bytes : "other formats");
    sdr_text_free(&list);
    return SDR_USAGE;
}

enum sdr_status sdr_format_check_options(const struct sdr_data_options *options,
                                         const struct sdr_format *format)
{
    const struct {
        const char *name;
        bool given;
    } option[] = {
        {"label", options->label},           {"labels", options->labels},
        {"weight", options->weight},         {"ignore", options->ignore},
        {"categories", options->categories}, {"bits", options->bits},
        {"base", options->base >= 0},        {"missing", options->missing != SDR_MISSING_ERROR},
    };
    for (size_t i = 0; i < sizeof option / sizeof *option; i++)
        if (option[i].given && !takes(format, option[i].name))
            return does_nothing(format, option[i].name);
    return SDR_OK;
}

enum sdr_status sdr_format_check_known(const char *format, const struct sdr_schema *known,
                                       const char *name)
{
    const struct sdr_format *found = format ? format_called(format) : NULL;
    if (!found || !found->parse) /* whole-file formats are matrices, with numbered columns */
        return SDR_OK;
    if (known->columns && !takes(found, "label"))
        return sdr_fail(SDR_BAD_DATA,
                        "%s: the model was trained on columns by name; %s data has none", name,
                        format);
    if (known->bits && !takes(found, "bits"))
        return sdr_fail(SDR_BAD_DATA,
                        "%s: the model was trained on hashed features; %s data has none", name,
                        format);
    return SDR_OK;
}
