/* NPY (numpy.save), versions 1 to 3: an array of numbers; labels are in another file (--labels). */
#include "data/array.h"
#include "data/label_file.h"

struct npy {
    struct sdr_label_file labels;
};

static int recognise(const char *head, size_t count)
{
    return sdr_npy_is(head, count) ? 100 : 0;
}

static enum sdr_status open_npy(void *state, struct sdr_reading *reading, const char *head,
                                size_t count)
{
    struct npy *npy = state;
    struct sdr_array array;
    SDR_TRY(sdr_npy_header(reading->path, head, count, &array));
    reading->schema->base = 0;
    return sdr_label_file_read(reading->options, reading->known, &npy->labels);
}

static enum sdr_status whole(void *state, struct sdr_reading *reading, struct sdr_source *source)
{
    struct npy *npy = state;
    struct sdr_array array;
    const char *head;
    size_t count;
    SDR_TRY(sdr_source_peek(source, &head, &count));
    SDR_TRY(sdr_npy_header(sdr_source_name(source), head, count, &array));
    return sdr_array_feed(&array, reading, source, &npy->labels);
}

static void close_npy(void *state)
{
    struct npy *npy = state;
    sdr_label_file_free(&npy->labels);
}

SDR_REGISTER(format, npy) = {
    .name = "npy",
    .summary = "NumPy arrays; labels in a file of their own",
    .extensions = "npy",
    .takes = "labels missing",
    .state_size = sizeof(struct npy),
    .recognise = recognise,
    .open = open_npy,
    .whole = whole,
    .close = close_npy,
    .by_density = true,
};
