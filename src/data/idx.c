/* IDX (LeCun's MNIST format): an array of numbers; labels are in another file (--labels). */
#include "data/array.h"
#include "data/label_file.h"

struct idx {
    struct sdr_label_file labels;
};

static int recognise(const char *head, size_t count)
{
    return sdr_idx_is(head, count) ? 90 : 0;
}

static enum sdr_status open_idx(void *state, struct sdr_reading *reading, const char *head,
                                size_t count)
{
    struct idx *idx = state;
    struct sdr_array array;
    SDR_TRY(sdr_idx_header(reading->path, head, count, &array));
    reading->schema->base = 0;
    return sdr_label_file_read(reading->options, reading->known, &idx->labels);
}

static enum sdr_status whole(void *state, struct sdr_reading *reading, struct sdr_source *source)
{
    struct idx *idx = state;
    struct sdr_array array;
    const char *head;
    size_t count;
    SDR_TRY(sdr_source_peek(source, &head, &count));
    SDR_TRY(sdr_idx_header(sdr_source_name(source), head, count, &array));
    return sdr_array_feed(&array, reading, source, &idx->labels);
}

static void close_idx(void *state)
{
    struct idx *idx = state;
    sdr_label_file_free(&idx->labels);
}

SDR_REGISTER(format, idx) = {
    .name = "idx",
    .summary = "IDX arrays (MNIST); labels in a file of their own",
    .extensions = "idx",
    .takes = "labels missing",
    .state_size = sizeof(struct idx),
    .recognise = recognise,
    .open = open_idx,
    .whole = whole,
    .close = close_idx,
    .by_density = true,
};
