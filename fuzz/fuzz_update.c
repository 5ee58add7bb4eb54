/* Updates as they come from other processes (update/wire.h): any bytes. What is accepted lies in
   its blocks and in the span of the server, and can be summed up and multiplied out, or added as a
   step.

   The first four bytes choose what the reader expects: a codec, how many examples, a span, sparse
   or dense rows. The others are the message. */
#include "fuzz.h"

#include "kernel/linear.h"
#include "run/registry.h"
#include "run/settings.h"
#include "update/values.h"
#include "update/wire.h"

enum { FEATURES = 11, ROWS = 8, BLOCKS = 5, SPANS = 3, CHOICES = 4 };

struct world {
    struct sdr_layout layout;
    struct sdr_rows rows[2];
    struct sdr_scratch scratch;
    struct sdr_marks marks;
    struct sdr_sum sum;
    struct sdr_wire_reader reader;
    struct sdr_span span[SPANS + 1];
    float *w;
    uint32_t mark;
};

static void make_rows(struct world *world)
{
    static uint64_t start[ROWS + 1];
    static uint16_t index[ROWS * FEATURES];
    static float value[ROWS * FEATURES], dense[ROWS * FEATURES];
    uint64_t used = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        start[i] = used;
        for (uint32_t j = 0; j < FEATURES; j++) {
            dense[i * FEATURES + j] = (float)((i + 2 * j) % 5) / 4;
            if ((i + j) % 3)
                continue;
            index[used] = (uint16_t)j;
            value[used++] = dense[i * FEATURES + j];
        }
    }
    start[ROWS] = used;
    world->rows[0] = (struct sdr_rows){
        .count = ROWS, .features = FEATURES, .start = start, .index16 = index, .value = value};
    world->rows[1] =
        (struct sdr_rows){.count = ROWS, .features = FEATURES, .dense = dense, .stride = FEATURES};
}

static struct world *make_world(void)
{
    static struct world world;
    static const struct sdr_block block[BLOCKS] = {
        {.name = "weight", .rows = FEATURES, .cols = 3, .per_feature = true},
        {.name = "intercept", .rows = 1, .cols = 3},
        {.name = "one", .rows = FEATURES, .cols = 1, .per_feature = true},
        {.name = "hidden", .rows = 4, .cols = 5},
        {.name = "origin", .rows = FEATURES, .cols = 1, .fixed = true}};
    sdr_layout_make(&world.layout, block, BLOCKS);
    make_rows(&world);
    FUZZ_CHECK(sdr_scratch_create(&world.scratch, &world.layout) == SDR_OK);
    FUZZ_CHECK(sdr_marks_create(&world.marks, FEATURES) == SDR_OK);
    FUZZ_CHECK(sdr_sum_create(&world.sum, &world.layout) == SDR_OK);
    FUZZ_CHECK(sdr_allocate(&world.w, world.layout.count, sizeof *world.w, "fuzz") == SDR_OK);
    sdr_cut_spans(&world.layout, NULL, 1, 0, SPANS, world.span);
    world.span[SPANS] = sdr_all(&world.layout);
    return &world;
}

/* Rows and columns within their bounds. */
static void check_part(const struct world *world, const struct sdr_part *part, struct sdr_span span,
                       uint32_t examples)
{
    FUZZ_CHECK(part->block >= 0 && part->block < BLOCKS);
    const struct sdr_block *block = &world->layout.block[part->block];
    uint32_t first, end;
    sdr_rows_within(block, span, &first, &end);
    FUZZ_CHECK(first < end);
    if (part->form == SDR_DENSE)
        FUZZ_CHECK(part->first == first && part->count == (end - first) * block->cols);
    else
        FUZZ_CHECK(part->first == 0);
    if (part->form == SDR_FACTORS && part->right == SDR_EXAMPLES)
        FUZZ_CHECK(part->count == examples && block->per_feature);
    if (part->form == SDR_FACTORS && part->right == SDR_ONES)
        FUZZ_CHECK(block->rows == 1);
    FUZZ_CHECK(part->form != SDR_ROWS || part->index);
    for (uint32_t i = 0; i < part->count && part->index; i++)
        FUZZ_CHECK(part->form == SDR_ROWS ? part->index[i] >= first && part->index[i] < end
                                          : part->index[i] < block->cols);
}

static void expand(struct world *world, const struct sdr_update *update, struct sdr_span span)
{
    world->mark = world->mark % 1000 + 1;
    for (int p = 0; p < update->parts; p++) {
        const struct sdr_part *part = &update->part[p];
        struct sdr_expansion to = {&world->layout, sdr_linear_kernels(SDR_CPU_PORTABLE),
                                   NULL,           &world->scratch,
                                   world->mark,    1};
        uint32_t first, end;
        sdr_rows_within(&world->layout.block[part->block], span, &first, &end);
        if (part->count == 0)
            continue;
        struct sdr_part sum = sdr_part_expand(&to, part, &update->batch, first, end);
        for (uint32_t i = 0; i < sum.count && sum.form == SDR_ROWS; i++)
            FUZZ_CHECK(sum.index[i] >= first && sum.index[i] < end);
        volatile float last = 0;
        if (sum.form == SDR_DENSE)
            last += sum.value[(size_t)(end - first) * world->layout.block[part->block].cols - 1];
    }
}

static void use(struct world *world, struct sdr_update *update, struct sdr_span span)
{
    if (update->sense == SDR_STEP) {
        enum sdr_status status =
            sdr_step_add(&world->layout, &world->marks, update, span, world->w);
        FUZZ_CHECK(status == SDR_OK || status == SDR_BAD_FILE);
        return;
    }
    expand(world, update, span);
    sdr_sum_begin(&world->sum, update->sense);
    for (int times = 0; times < 2; times++)
        FUZZ_CHECK(sdr_sum_add(&world->sum, update, 0.5f) == SDR_OK);
    expand(world, sdr_sum_end(&world->sum, true), span);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct world *world;
    static const uint32_t row[ROWS] = {3, 1, 4, 0, 5, 2, 7, 6};
    if (!world)
        world = make_world();
    if (count < CHOICES)
        return 0;
    int codecs = 0;
    while (sdr_codec_table[codecs])
        codecs++;
    int codec = bytes[0] % (codecs + 1);
    uint32_t examples = bytes[1] % (ROWS + 1);
    struct sdr_span span = world->span[bytes[2] % (SPANS + 1)];
    struct sdr_batch batch = {.rows = &world->rows[bytes[3] % 2], .row = row, .count = examples};
    struct sdr_wire wire = {&world->layout, codec ? sdr_codec_table[codec - 1] : NULL, NULL};
    void *options = NULL;
    const struct sdr_plugin *plugin;
    if (codec)
        FUZZ_CHECK(sdr_plugin_choose("codec", sdr_codec_table, wire.codec->name, &plugin,
                                     &options) == SDR_OK);
    wire.codec_options = options;
    unsigned char *message = malloc(count - CHOICES + 1); /* ends where the bytes do */
    FUZZ_CHECK(message != NULL);
    memcpy(message, bytes + CHOICES, count - CHOICES);
    struct sdr_wire_facts facts;
    struct sdr_update update;
    bool head = sdr_wire_facts_of(message, count - CHOICES, &facts);
    enum sdr_status status = sdr_wire_read(&wire, message, count - CHOICES, examples, span,
                                           &world->reader, &facts, &update);
    FUZZ_CHECK(status == SDR_OK || (status == SDR_BAD_FILE && *sdr_error()));
    FUZZ_CHECK(head || status != SDR_OK);
    if (status == SDR_OK) {
        update.batch = batch;
        for (int p = 0; p < update.parts; p++)
            check_part(world, &update.part[p], span, examples);
        use(world, &update, span);
    }
    free(message);
    if (codec)
        sdr_plugin_free(plugin, options);
    return 0;
}
