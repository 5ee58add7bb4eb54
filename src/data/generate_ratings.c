/* Ratings "user item rating" of a planted factorisation:
     rating = 3.5 + b_u + b_i + 0.8 ⟨p_u, q_i⟩ + noise × N(0, 1), in half stars from 0.5 to 5.
   Users and items follow Zipf–Mandelbrot laws; no pair occurs twice. --features is users + items
   (seven to one), --nnz the rank (default 10). Rows are drawn sequentially, since each pair must be
   new; a longer file still begins with a shorter one. */
#include "base/file.h"
#include "data/generate.h"

#include <math.h>
#include <string.h>

enum { RANK = 10, RANK_MOST = 1000, FEATURES_MOST = 1 << 27 };

/* Users or items: popularity, numbers in the file, biases and factors. */
struct side {
    uint32_t count;
    struct sdr_alias popularity;
    uint32_t *number; /* owned */
    float *bias;      /* owned */
    float *factor;    /* owned: (count, rank) */
};
struct ratings {
    struct side user, item;
    uint32_t rank;
    uint64_t *taken; /* owned: hash table of pair + 1 */
    uint64_t slots;
};

static enum sdr_status draw_side(struct side *side, uint32_t rank, uint64_t seed, uint64_t which,
                                 double offset, double power, double bias)
{
    struct sdr_stream stream = sdr_stream_open(seed, SDR_FOR_GENERATE, SDR_TRUTH_STREAM + which);
    double *weight;
    SDR_TRY(sdr_allocate(&side->number, side->count, sizeof *side->number, "the ratings"));
    SDR_TRY(sdr_allocate(&side->bias, side->count, sizeof *side->bias, "the ratings"));
    SDR_TRY(sdr_allocate(&side->factor, (size_t)side->count * rank, sizeof *side->factor,
                         "the ratings"));
    SDR_TRY(sdr_allocate(&weight, side->count, sizeof *weight, "the ratings"));
    sdr_shuffle(side->number, side->count, &stream);
    for (uint32_t i = 0; i < side->count; i++) {
        weight[i] = pow(i + offset, -power);
        side->bias[i] = (float)(bias * sdr_stream_normal(&stream));
    }
    /* Keeps the variance of products independent of the rank. */
    double scale = 0.55 * sqrt(sqrt(10.0 / rank));
    for (size_t i = 0; i < (size_t)side->count * rank; i++)
        side->factor[i] = (float)(scale * sdr_stream_normal(&stream));
    enum sdr_status status = sdr_alias_build(&side->popularity, weight, side->count);
    sdr_release(weight);
    return status;
}

static void free_side(struct side *side)
{
    sdr_alias_free(&side->popularity);
    sdr_release(side->number);
    sdr_release(side->bias);
    sdr_release(side->factor);
}

/* Marks a pair as used; false if it was already. */
static bool mark_pair(struct ratings *ratings, uint32_t user, uint32_t item)
{
    uint64_t key = ((uint64_t)user << 32 | item) + 1;
    uint64_t at = key * 0x9E3779B97F4A7C15u >> 20 & (ratings->slots - 1);
    for (; ratings->taken[at]; at = (at + 1) & (ratings->slots - 1))
        if (ratings->taken[at] == key)
            return false;
    ratings->taken[at] = key;
    return true;
}

static int rating_of(const struct ratings *ratings, uint32_t user, uint32_t item, double noise,
                     struct sdr_stream *stream)
{
    const float *p = ratings->user.factor + (size_t)user * ratings->rank;
    const float *q = ratings->item.factor + (size_t)item * ratings->rank;
    double sum = 0;
    for (uint32_t k = 0; k < ratings->rank; k++)
        sum += (double)p[k] * q[k];
    double rating = 3.5 + ratings->user.bias[user] + ratings->item.bias[item] + 0.8 * sum +
                    noise * sdr_stream_normal(stream);
    double halves = floor(rating * 2 + 0.5);
    return halves < 1 ? 1 : halves > 10 ? 10 : (int)halves;
}

static char *put_number(char *p, uint32_t value)
{
    char digits[12];
    int n = 0;
    do
        digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n)
        *p++ = digits[--n];
    return p;
}

static enum sdr_status write_ratings(struct ratings *ratings,
                                     const struct sdr_generate_options *options,
                                     struct sdr_writer *writer)
{
    for (uint64_t row = 0; row < options->rows; row++) {
        struct sdr_stream stream = sdr_stream_open(options->seed, SDR_FOR_GENERATE, row);
        uint32_t user, item;
        char line[48], *p = line;
        do {
            user = sdr_alias_draw(&ratings->user.popularity, &stream);
            item = sdr_alias_draw(&ratings->item.popularity, &stream);
        } while (!mark_pair(ratings, user, item));
        int halves = rating_of(ratings, user, item, options->noise, &stream);
        p = put_number(p, ratings->user.number[user]);
        *p++ = ' ';
        p = put_number(p, ratings->item.number[item]);
        *p++ = ' ';
        *p++ = (char)('0' + halves / 2);
        *p++ = '.';
        *p++ = halves % 2 ? '5' : '0';
        *p++ = '\n';
        SDR_TRY(sdr_writer_add(writer, line, (size_t)(p - line)));
    }
    return SDR_OK;
}

static enum sdr_status generate(const struct sdr_generate_options *given, const char *path)
{
    struct sdr_generate_options completed, *options = &completed;
    SDR_TRY(sdr_generate_complete(given, 2000, RANK, FEATURES_MOST, options));
    struct ratings ratings = {.rank = options->nnz ? (uint32_t)options->nnz : RANK};
    struct sdr_writer *writer = NULL;
    struct sdr_text text = {0};
    enum sdr_status status;
    const char *extension = sdr_path_extension(path);
    if (*extension && strcmp(extension, "txt") != 0 && strcmp(extension, "triples") != 0 &&
        strcmp(extension, "tsv") != 0)
        return sdr_fail(SDR_USAGE, "cannot generate ratings as '.%s' (use .txt or .triples)",
                        extension);
    if (options->features < 2 || options->nnz > RANK_MOST)
        return sdr_fail(SDR_USAGE,
                        "ratings need --features (users + items) of 2 or more and a rank "
                        "(--nnz) of at most %d",
                        RANK_MOST);
    ratings.item.count = (uint32_t)(options->features / 8 ? options->features / 8 : 1);
    ratings.user.count = (uint32_t)options->features - ratings.item.count;
    if (options->rows > (uint64_t)ratings.user.count * ratings.item.count / 4)
        return sdr_fail(SDR_USAGE,
                        "%llu ratings do not fit %u users and %u items (at most a quarter "
                        "of the pairs)",
                        (unsigned long long)options->rows, ratings.user.count, ratings.item.count);
    for (ratings.slots = 1024; ratings.slots < options->rows + options->rows / 2;)
        ratings.slots *= 2;
    SDR_CHECK(sdr_allocate(&ratings.taken, ratings.slots, sizeof *ratings.taken, "the ratings"));
    SDR_CHECK(draw_side(&ratings.user, ratings.rank, options->seed, 0, 300, 0.75, 0.40));
    SDR_CHECK(draw_side(&ratings.item, ratings.rank, options->seed, 1, 60, 1.0, 0.45));
    SDR_CHECK(sdr_writer_open(path, &writer));
    SDR_CHECK(write_ratings(&ratings, options, writer));
    status = sdr_writer_commit(writer);
    writer = NULL;
    if (status != SDR_OK)
        goto cleanup;
    sdr_truth_begin(&text, "ratings", options);
    sdr_truth_number(&text, "users", ratings.user.count);
    sdr_truth_number(&text, "items", ratings.item.count);
    sdr_truth_number(&text, "rank", ratings.rank);
    sdr_truth_number(&text, "mean", 3.5);
    /* rounding to halves adds the variance 1/48 */
    sdr_truth_number(&text, "best_rmse", sqrt(options->noise * options->noise + 1.0 / 48));
    status = sdr_truth_write(&text, path);
cleanup:
    sdr_writer_abandon(writer);
    free_side(&ratings.user);
    free_side(&ratings.item);
    sdr_release(ratings.taken);
    return status;
}

SDR_REGISTER(generator, ratings) = {
    .name = "ratings",
    .summary = "\"user item rating\" of a planted factorisation; --features is users + items",
    .make = generate,
};
