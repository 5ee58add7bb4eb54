/* The laws of updates as bytes: what was written is read, for every form, span and codec; what was
   damaged is refused, or is an update that can be used. Bytes lie in memory of exactly their size,
   so that a sanitizer sees a reader that goes beyond them. */
#include "conform/updates.h"

#include "run/registry.h"
#include "run/settings.h"
#include "update/values.h"
#include "update/wire.h"

enum { SPANS_MOST = 6, LEAVES = 3 };

/* ---- updates ---- */
struct sample {
    struct given given[BLOCKS];
    struct sdr_part part[BLOCKS];
    struct sdr_update update;
    uint32_t examples;
    int rows;
};

/* A part for every block, of any of the forms that it may have. */
static void make_update(const struct world *world, struct sample *sample)
{
    static const int forms[BLOCKS][4] = {
        {FORM_ROWS, FORM_ROWS_DISTINCT, FORM_EXAMPLES, FORM_EXAMPLES_HOT},
        {FORM_ONES, FORM_ONES_HOT, FORM_DENSE, FORM_ONES},
        {FORM_EXAMPLES_ONE, FORM_ROWS, FORM_DENSE, FORM_EXAMPLES_ONE},
        {FORM_STORED, FORM_DENSE, FORM_ROWS, FORM_STORED},
        {FORM_DENSE, FORM_ROWS, FORM_STORED, FORM_DENSE}};
    *sample =
        (struct sample){.examples = 1 + random_below(20), .rows = (int)random_below(ROW_KINDS)};
    for (int b = 0; b < BLOCKS; b++) {
        make_given_on(world, b, forms[b][random_below(4)], sample->rows, sample->examples,
                      &sample->given[b]);
        sample->part[b] = sample->given[b].part;
        if (sample->part[b].form == SDR_DENSE) {
            sample->part[b].leaves = 1u << random_below(4);
            sample->part[b].leaf = sample->part[b].leaves * random_below(9);
        }
    }
    if (sample->part[0].form == SDR_FACTORS && sample->part[1].form == SDR_FACTORS &&
        !sample->part[0].index == !sample->part[1].index) { /* as in linear models */
        sample->part[1].value = sample->part[0].value;
        sample->part[1].index = sample->part[0].index;
    }
    sample->update = (struct sdr_update){.sense = random_below(2) ? SDR_GRADIENT : SDR_STATISTIC,
                                         .batch = batch_on(world, sample->rows, sample->examples),
                                         .part = sample->part,
                                         .parts = 1 + (int)random_below(BLOCKS)};
}

static void free_update(struct sample *sample)
{
    for (int b = 0; b < BLOCKS; b++)
        free_given(&sample->given[b]);
}

/* ---- messages ---- */
struct message {
    unsigned char *bytes; /* owned, of exactly this size */
    uint64_t count;
    struct sdr_wire_facts facts;
    struct sdr_loss_sum losses[LEAVES];
};

static void write_message(const struct sdr_wire *wire, const struct sdr_update *update,
                          struct sdr_span span, uint32_t examples, float *residual,
                          struct message *message)
{
    struct sdr_wire_writer writer = {0};
    *message = (struct message){.facts = {.rows = examples,
                                          .leaves = random_below(LEAVES + 1),
                                          .computing = fabsf(random_float(1)),
                                          .rate = fabsf(random_float(1))}};
    for (int l = 0; l < LEAVES; l++)
        message->losses[l] = (struct sdr_loss_sum){random_dyadic(4), 1 + random_below(9)};
    message->facts.losses = message->facts.leaves ? message->losses : NULL;
    uint64_t bound = sdr_wire_bound(wire, update, span, message->facts.leaves);
    unsigned char *room = exactly(bound);
    assert_int_equal(sdr_wire_write(wire, update, span, &message->facts, residual, 7, &writer, room,
                                    &message->count),
                     SDR_OK);
    assert_true(message->count <= bound && message->count % 8 == 0);
    message->bytes = exactly(message->count);
    memcpy(message->bytes, room, message->count);
    free(room);
    sdr_wire_writer_free(&writer);
}

static void check_facts(const struct message *sent, const struct sdr_wire_facts *got,
                        const struct sdr_update *update)
{
    double loss = 0;
    assert_int_equal(got->rows, sent->facts.rows);
    assert_int_equal(got->leaves, sent->facts.leaves);
    assert_true(got->computing == sent->facts.computing && got->rate == sent->facts.rate);
    for (uint32_t l = 0; l < got->leaves; l++) {
        assert_true(got->losses[l].loss == sent->losses[l].loss &&
                    got->losses[l].weight == sent->losses[l].weight);
        loss += sent->losses[l].loss;
    }
    if (update)
        assert_true(update->loss == loss);
}

/* The values of an update within a span, multiplied out in double. */
static double *values_within(const struct world *world, const struct sdr_update *update,
                             const struct sdr_batch *batch, struct sdr_span span, double **size)
{
    double *g = exactly(world->layout.count * sizeof *g);
    *size = exactly(world->layout.count * sizeof **size);
    for (int p = 0; p < update->parts; p++)
        reference_add(&world->layout, &update->part[p], batch, NULL, g, *size);
    for (uint64_t i = 0; i < world->layout.count; i++)
        if (i < span.first || i >= span.end)
            g[i] = (*size)[i] = 0;
    return g;
}

/* The codecs of the program, and none at all. */
#define FOR_EVERY_WIRE(world, wire)                                                                \
    for (int c_ = -1; c_ < 0 || sdr_codec_table[c_]; c_++)                                         \
        for (struct sdr_wire wire = open_wire(world, c_ < 0 ? NULL : sdr_codec_table[c_]);         \
             wire.layout; close_wire(&wire))

static struct sdr_wire open_wire(const struct world *world, const struct sdr_codec *codec)
{
    const struct sdr_plugin *plugin;
    void *options = NULL;
    if (codec)
        assert_int_equal(
            sdr_plugin_choose("codec", sdr_codec_table, codec->name, &plugin, &options), SDR_OK);
    return (struct sdr_wire){&world->layout, codec, options};
}

static void close_wire(struct sdr_wire *wire)
{
    if (wire->codec)
        sdr_plugin_free(wire->codec, (void *)wire->codec_options);
    wire->layout = NULL;
}

/* ---- what was written is read ---- */
static void check_same_update(const struct world *world, const struct sdr_wire *wire,
                              const struct sample *sent, const struct sdr_update *got,
                              struct sdr_span span)
{
    double *size, *ignored;
    double *before = values_within(world, &sent->update, &sent->update.batch, span, &size);
    double *after = values_within(world, got, &sent->update.batch, span, &ignored);
    int next = 0;
    assert_int_equal(got->sense, sent->update.sense);
    for (int p = 0; p < sent->update.parts; p++) {
        const struct sdr_part *a = &sent->part[p], *b = &got->part[next];
        uint32_t first, end;
        sdr_rows_within(&world->layout.block[a->block], span, &first, &end);
        if (first == end)
            continue;
        assert_true(next++ < got->parts);
        assert_true(a->block == b->block && a->form == b->form && a->right == b->right &&
                    a->distinct == b->distinct && a->leaf == b->leaf && a->leaves == b->leaves &&
                    !a->index == !b->index);
        if (a->form == SDR_FACTORS)
            assert_int_equal(a->count, b->count);
        if (a->form == SDR_FACTORS && a->index)
            assert_memory_equal(a->index, b->index, a->count * sizeof *a->index);
    }
    assert_int_equal(next, got->parts);
    if (!wire->codec || !wire->codec->lossy)
        for (uint64_t i = 0; i < world->layout.count; i++)
            assert_true(before[i] == after[i]);
    else if (strcmp(wire->codec->name, "half") == 0)
        for (uint64_t i = 0; i < world->layout.count; i++) /* two factors of 11 bits each */
            assert_near(after[i], before[i], size[i] * 0x1.01p-10 + 1e-6, "half, value %llu",
                        (unsigned long long)i);
    free(before);
    free(after);
    free(size);
    free(ignored);
}

static void what_was_written_is_read(void **unused)
{
    (void)unused;
    struct world world;
    struct sdr_wire_reader reader = {0}; /* one for all: its room grows */
    make_world(&world);
    FOR_EVERY_WIRE(&world, wire)
    for (int tries = 0; tries < 200; tries++) {
        struct sample sample;
        struct sdr_span span[SPANS_MOST];
        uint32_t spans = 1 + random_below(SPANS_MOST);
        make_update(&world, &sample);
        sdr_cut_spans(&world.layout, NULL, 1, 0, spans, span);
        for (uint32_t s = 0; s < spans; s++) {
            struct message message;
            struct sdr_wire_facts facts;
            struct sdr_update update;
            write_message(&wire, &sample.update, span[s], sample.examples, NULL, &message);
            assert_int_equal(sdr_wire_read(&wire, message.bytes, message.count, sample.examples,
                                           span[s], &reader, &facts, &update),
                             SDR_OK);
            check_facts(&message, &facts, &update);
            check_same_update(&world, &wire, &sample, &update, span[s]);
            assert_true(sdr_wire_facts_of(message.bytes, message.count, &facts));
            check_facts(&message, &facts, NULL);
            sdr_wire_set_computing(message.bytes, 2.5f);
            assert_true(sdr_wire_facts_of(message.bytes, message.count, &facts) &&
                        facts.computing == 2.5f);
            free(message.bytes);
        }
        free_update(&sample);
    }
    sdr_wire_reader_free(&reader);
    free_world(&world);
}

static void steps_that_travelled_are_added(void **unused)
{
    enum { SPANS = 3 };
    (void)unused;
    struct world world;
    struct sdr_marks marks = {0};
    struct sdr_wire_reader reader = {0};
    make_world(&world);
    assert_int_equal(sdr_marks_create(&marks, FEATURES), SDR_OK);
    uint64_t count = world.layout.count;
    FOR_EVERY_WIRE(&world, wire)
    {
        if (wire.codec && wire.codec->lossy)
            continue;
        for (int tries = 0; tries < 50; tries++) {
            struct sdr_batch batch =
                batch_on(&world, (int)random_below(ROW_KINDS), 1 + random_below(12));
            struct sdr_span span[SPANS];
            float *change = exactly(count * sizeof *change), *sum = exactly(count * sizeof *sum);
            float *direct = exactly(count * sizeof *direct);
            for (uint64_t i = 0; i < count; i++)
                change[i] = random_float(1);
            sdr_cut_spans(&world.layout, NULL, 1, 0, SPANS, span);
            for (int s = 0; s < SPANS; s++) {
                struct sdr_part part[BLOCKS];
                struct sdr_update step, got;
                struct message message;
                struct sdr_wire_facts facts;
                float *packed = exactly(count * sizeof *packed);
                sdr_step_gather(&world.layout, &marks, &batch, span[s], change, packed, part,
                                &step);
                sdr_move_values(&world.layout, &marks, &batch, span[s], direct, packed, count,
                                SDR_ADD);
                write_message(&wire, &step, span[s], batch.count, NULL, &message);
                assert_int_equal(sdr_wire_read(&wire, message.bytes, message.count, batch.count,
                                               span[s], &reader, &facts, &got),
                                 SDR_OK);
                got.batch = batch;
                assert_int_equal(sdr_step_add(&world.layout, &marks, &got, span[s], sum), SDR_OK);
                free(message.bytes);
                free(packed);
            }
            assert_memory_equal(sum, direct, count * sizeof *sum);
            free(direct);
            free(sum);
            free(change);
        }
    }
    sdr_marks_free(&marks);
    sdr_wire_reader_free(&reader);
    free_world(&world);
}

/* Weight and intercept of a linear model have one array of factors: it is sent once. */
static void factors_in_common_are_sent_once(void **unused)
{
    (void)unused;
    struct world world;
    make_world(&world);
    struct sdr_wire wire = {.layout = &world.layout};
    struct given weight, intercept;
    struct message apart, together;
    make_given_on(&world, 0, FORM_EXAMPLES, 0, 16, &weight);
    make_given_on(&world, 1, FORM_ONES, 0, 16, &intercept);
    struct sdr_part part[2] = {weight.part, intercept.part};
    struct sdr_update update = {.part = part, .parts = 2};
    uint64_t state = random_state;
    write_message(&wire, &update, sdr_all(&world.layout), 16, NULL, &apart);
    part[1].value = part[0].value;
    random_state = state; /* as many losses */
    write_message(&wire, &update, sdr_all(&world.layout), 16, NULL, &together);
    assert_int_equal(apart.count - together.count, 16 * 3 * sizeof(float));
    free(apart.bytes);
    free(together.bytes);
    free_given(&weight);
    free_given(&intercept);
    free_world(&world);
}

/* What a lossy codec leaves out of dense parts is sent later: nothing is lost over many
   messages. */
static void residuals_keep_what_was_left_out(void **unused)
{
    (void)unused;
    struct world world;
    struct sdr_wire_reader reader = {0};
    make_world(&world);
    uint64_t count = world.layout.count;
    FOR_EVERY_WIRE(&world, wire)
    {
        if (!wire.codec || !wire.codec->lossy)
            continue;
        float *residual = exactly(count * sizeof *residual);
        double *given = exactly(count * sizeof *given), *arrived = exactly(count * sizeof *arrived);
        for (int step = 0; step < 50; step++) {
            struct sdr_span span[2];
            struct given dense;
            make_given(&world, FORM_DENSE, 0, 1, &dense);
            struct sdr_update update = {.part = &dense.part, .parts = 1};
            reference_add(&world.layout, &dense.part, NULL, NULL, given, NULL);
            sdr_cut_spans(&world.layout, NULL, 1, 0, 2, span);
            for (int s = 0; s < 2; s++) {
                struct message message;
                struct sdr_wire_facts facts;
                struct sdr_update got;
                write_message(&wire, &update, span[s], 1, residual, &message);
                assert_int_equal(sdr_wire_read(&wire, message.bytes, message.count, 1, span[s],
                                               &reader, &facts, &got),
                                 SDR_OK);
                for (int p = 0; p < got.parts; p++)
                    reference_add(&world.layout, &got.part[p], NULL, NULL, arrived, NULL);
                free(message.bytes);
            }
            free_given(&dense);
        }
        for (uint64_t i = 0; i < count; i++)
            assert_near(arrived[i] + residual[i], given[i], 2e-5, "%s, value %llu",
                        wire.codec->name, (unsigned long long)i);
        free(residual);
        free(given);
        free(arrived);
    }
    sdr_wire_reader_free(&reader);
    free_world(&world);
}

/* ---- what was damaged ---- */
/* Whatever a reader accepts can be used: summed up, multiplied out, stepped on within the span. */
static void use(const struct world *world, const struct sdr_update *read, struct sdr_span span,
                const struct sdr_batch *batch)
{
    struct sdr_update update = *read;
    struct sdr_scratch scratch = {0};
    struct sdr_sum sum;
    update.batch = *batch;
    if (update.sense == SDR_STEP) {
        struct sdr_marks marks = {0};
        float *w = exactly(world->layout.count * sizeof *w);
        assert_int_equal(sdr_marks_create(&marks, FEATURES), SDR_OK);
        sdr_step_add(&world->layout, &marks, &update, span, w);
        sdr_marks_free(&marks);
        free(w);
        return;
    }
    assert_int_equal(sdr_scratch_create(&scratch, &world->layout), SDR_OK);
    assert_int_equal(sdr_sum_create(&sum, &world->layout), SDR_OK);
    sdr_sum_begin(&sum, update.sense);
    for (int times = 0; times < 2; times++)
        if (sdr_sum_add(&sum, &update, 1) != SDR_OK)
            fail_msg("%s", sdr_error());
    const struct sdr_update *twice = sdr_sum_end(&sum, true);
    assert_int_equal(twice->batch.count, 2 * batch->count);
    for (int which = 0; which < 2; which++) {
        const struct sdr_update *of = which ? twice : &update;
        for (int p = 0; p < of->parts; p++) {
            struct sdr_expansion how = {&world->layout, kernels(),           NULL,
                                        &scratch,       (uint32_t)which + 2, 1};
            const struct sdr_part *part = &of->part[p];
            const struct sdr_block *block = &world->layout.block[part->block];
            uint32_t first, end;
            volatile float keep = 0;
            sdr_rows_within(block, span, &first, &end);
            assert_true(first < end);
            if (part->count == 0)
                continue;
            struct sdr_part dense = sdr_part_expand(&how, part, &of->batch, first, end);
            if (dense.form == SDR_DENSE)
                dense.count = end - first;
            for (uint32_t i = 0; i < dense.count; i++) {
                assert_true(dense.form == SDR_DENSE ||
                            (dense.index[i] >= first && dense.index[i] < end));
                for (uint32_t k = 0; k < block->cols; k++)
                    keep += dense.value[(size_t)i * block->cols + k];
            }
        }
    }
    sdr_scratch_free(&scratch);
    sdr_sum_free(&sum);
}

/* Indices in their blocks, values that can be read. */
static void check_read(const struct world *world, const struct sdr_update *update,
                       struct sdr_span span, uint32_t examples)
{
    for (int p = 0; p < update->parts; p++) {
        const struct sdr_part *part = &update->part[p];
        assert_true(part->block >= 0 && part->block < world->layout.blocks);
        const struct sdr_block *block = &world->layout.block[part->block];
        uint32_t first, end;
        uint64_t floats = (uint64_t)part->count * block->cols;
        volatile float keep = 0;
        sdr_rows_within(block, span, &first, &end);
        if (part->form == SDR_DENSE) {
            assert_true(part->first == first && part->count == (end - first) * block->cols);
            floats = part->count;
        }
        if (part->form == SDR_FACTORS && part->index)
            floats = part->count;
        if (part->form == SDR_FACTORS && part->right == SDR_EXAMPLES)
            assert_int_equal(part->count, examples);
        for (uint32_t i = 0; i < part->count && part->index; i++)
            assert_true(part->form == SDR_ROWS ? part->index[i] >= first && part->index[i] < end
                                               : part->index[i] < block->cols);
        for (uint64_t i = 0; i < floats; i++)
            keep += part->value[i];
        for (uint64_t i = 0; part->v && i < (uint64_t)part->count * block->rows; i++)
            keep += part->v[i];
    }
}

/* Reads bytes that may be anything; what is accepted is used. */
static bool read_anything(const struct world *world, const struct sdr_wire *wire,
                          const unsigned char *bytes, uint64_t count, struct sdr_span span,
                          const struct sdr_batch *batch, struct sdr_wire_reader *reader)
{
    struct sdr_wire_facts facts;
    struct sdr_update update;
    unsigned char *copy = exactly(count); /* ends where the bytes do */
    memcpy(copy, bytes, count);
    sdr_wire_facts_of(copy, count, &facts);
    enum sdr_status status =
        sdr_wire_read(wire, copy, count, batch->count, span, reader, &facts, &update);
    assert_true(status == SDR_OK || status == SDR_BAD_FILE);
    if (status == SDR_OK) {
        check_read(world, &update, span, batch->count);
        use(world, &update, span, batch);
    } else {
        assert_true(*sdr_error());
    }
    free(copy);
    return status == SDR_OK;
}

/* A message of some update or step, for one of a few spans. */
static void make_message(const struct world *world, const struct sdr_wire *wire,
                         struct message *message, struct sdr_span *span, struct sdr_batch *batch)
{
    struct sdr_span spans[3];
    sdr_cut_spans(&world->layout, NULL, 1, 0, 3, spans);
    *span = random_below(2) ? sdr_all(&world->layout) : spans[random_below(3)];
    if (random_below(4) == 0) {
        struct sdr_marks marks = {0};
        struct sdr_part part[BLOCKS];
        struct sdr_update step;
        float *w = exactly(world->layout.count * sizeof *w);
        float *change = exactly(world->layout.count * sizeof *change);
        *batch = batch_on(world, (int)random_below(ROW_KINDS), 1 + random_below(9));
        assert_int_equal(sdr_marks_create(&marks, FEATURES), SDR_OK);
        sdr_step_gather(&world->layout, &marks, batch, *span, w, change, part, &step);
        write_message(wire, &step, *span, batch->count, NULL, message);
        sdr_marks_free(&marks);
        free(change);
        free(w);
        return;
    }
    struct sample sample;
    make_update(world, &sample);
    *batch = sample.update.batch;
    write_message(wire, &sample.update, *span, sample.examples, NULL, message);
    free_update(&sample);
}

static void a_message_that_is_cut_off_is_refused(void **unused)
{
    (void)unused;
    struct world world;
    struct sdr_wire_reader reader = {0};
    make_world(&world);
    FOR_EVERY_WIRE(&world, wire)
    for (int tries = 0; tries < 20; tries++) {
        struct message message;
        struct sdr_span span;
        struct sdr_batch batch;
        make_message(&world, &wire, &message, &span, &batch);
        for (uint64_t count = 0; count < message.count; count++)
            if (read_anything(&world, &wire, message.bytes, count, span, &batch, &reader))
                fail_msg("%llu of %llu bytes were taken for a message", (unsigned long long)count,
                         (unsigned long long)message.count);
        unsigned char *longer = exactly(message.count + 8);
        memcpy(longer, message.bytes, message.count);
        assert_false(
            read_anything(&world, &wire, longer, message.count + 8, span, &batch, &reader));
        assert_true(
            read_anything(&world, &wire, message.bytes, message.count, span, &batch, &reader));
        /* of another batch, or for another server */
        batch.count++;
        assert_false(
            read_anything(&world, &wire, message.bytes, message.count, span, &batch, &reader));
        free(longer);
        free(message.bytes);
    }
    sdr_wire_reader_free(&reader);
    free_world(&world);
}

/* Numbers that counts, sizes and indices are wrong with. */
static uint32_t unlikely_number(void)
{
    static const uint32_t some[] = {0,          1,          2,          3,          5,
                                    7,          29,         30,         0x7fffffff, 0x80000000,
                                    0xffffffff, 0xfffffffe, 0x40000000, 0x10000,    0xffff};
    return random_below(3) ? some[random_below(sizeof some / sizeof *some)] : random_bits();
}

static void damage(unsigned char *bytes, uint64_t count)
{
    for (uint32_t times = 1 + random_below(4); times > 0; times--) {
        uint64_t reach = random_below(3) && count > 320 ? 320 : count; /* heads come first */
        uint64_t at = random_below((uint32_t)reach);
        uint32_t number = unlikely_number();
        switch (random_below(4)) {
        case 0: bytes[at] ^= (unsigned char)(1u << random_below(8)); break;
        case 1: bytes[at] = (unsigned char)random_bits(); break;
        case 2:
            if (at / 4 * 4 + 4 <= count)
                memcpy(bytes + at / 4 * 4, &number, sizeof number);
            break;
        default:
            if (at / 2 * 2 + 2 <= count)
                memcpy(bytes + at / 2 * 2, &number, 2);
        }
    }
}

static void damaged_bytes_are_refused_or_can_be_used(void **unused)
{
    enum { MESSAGES = 250, DAMAGED = 400 };
    (void)unused;
    struct world world;
    struct sdr_wire_reader reader = {0};
    make_world(&world);
    int cases = 0, accepted = 0;
    while (cases < MESSAGES * DAMAGED) {
        FOR_EVERY_WIRE(&world, wire)
        {
            struct message message;
            struct sdr_span span;
            struct sdr_batch batch;
            make_message(&world, &wire, &message, &span, &batch);
            unsigned char *bytes = exactly(message.count);
            for (int i = 0; i < DAMAGED; i++, cases++) {
                memcpy(bytes, message.bytes, message.count);
                damage(bytes, message.count);
                accepted +=
                    read_anything(&world, &wire, bytes, message.count, span, &batch, &reader);
            }
            free(bytes);
            free(message.bytes);
        }
    }
    /* Values may be anything, so many are; and most are not. */
    assert_true(accepted > cases / 100 && accepted < cases);
    sdr_wire_reader_free(&reader);
    free_world(&world);
}

static void random_bytes_are_refused(void **unused)
{
    enum { TIMES = 100000, MOST = 300 };
    (void)unused;
    struct world world;
    struct sdr_wire_reader reader = {0};
    make_world(&world);
    struct sdr_batch batch = batch_on(&world, 0, 5);
    struct sdr_wire wire = {.layout = &world.layout};
    struct message valid;
    struct sdr_span span;
    struct sdr_batch of;
    make_message(&world, &wire, &valid, &span, &of);
    for (int i = 0; i < TIMES; i++) {
        unsigned char bytes[MOST];
        uint32_t count = random_below(MOST);
        for (uint32_t k = 0; k < count; k++)
            bytes[k] = (unsigned char)random_bits();
        if (i % 2) /* with a head that is right as far as it goes */
            memcpy(bytes, valid.bytes, count < 8 ? count : 8);
        read_anything(&world, &wire, bytes, count, sdr_all(&world.layout), &batch, &reader);
    }
    free(valid.bytes);
    sdr_wire_reader_free(&reader);
    free_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_read),
        cmocka_unit_test(steps_that_travelled_are_added),
        cmocka_unit_test(factors_in_common_are_sent_once),
        cmocka_unit_test(residuals_keep_what_was_left_out),
        cmocka_unit_test(a_message_that_is_cut_off_is_refused),
        cmocka_unit_test(damaged_bytes_are_refused_or_can_be_used),
        cmocka_unit_test(random_bytes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
