/* A noisy image of two regions, for segmentation: --rows × --features pixels, bright ellipses on a
   dark ground, grey = 85 or 170 plus 255 × noise × N(0, 1). Format PGM, or IDX of shape (1, rows,
   columns) for .idx; PATH.truth.pgm gets the regions without noise. */
#include "base/file.h"
#include "data/generate.h"

#include <stdio.h>
#include <string.h>

enum { ELLIPSES = 4, SIDE_MOST = 1 << 15, DARK = 85, BRIGHT = 170 };

struct ellipse {
    double x, y, width, height; /* as fractions of the image */
};

static void draw_regions(const struct sdr_generate_options *options, unsigned char *region)
{
    struct ellipse ellipse[ELLIPSES];
    struct sdr_stream stream = sdr_stream_open(options->seed, SDR_FOR_GENERATE, SDR_TRUTH_STREAM);
    for (int i = 0; i < ELLIPSES; i++) {
        ellipse[i].x = 0.15 + 0.7 * sdr_stream_uniform(&stream);
        ellipse[i].y = 0.15 + 0.7 * sdr_stream_uniform(&stream);
        ellipse[i].width = 0.10 + 0.18 * sdr_stream_uniform(&stream);
        ellipse[i].height = 0.10 + 0.18 * sdr_stream_uniform(&stream);
    }
    for (uint64_t r = 0; r < options->rows; r++)
        for (uint64_t c = 0; c < options->features; c++)
            for (int i = 0; i < ELLIPSES; i++) {
                double x = ((double)c + 0.5) / (double)options->features - ellipse[i].x;
                double y = ((double)r + 0.5) / (double)options->rows - ellipse[i].y;
                x /= ellipse[i].width;
                y /= ellipse[i].height;
                if (x * x + y * y < 1)
                    region[r * options->features + c] = 1;
            }
}

static void draw_pixels(const struct sdr_generate_options *options, const unsigned char *region,
                        unsigned char *pixel)
{
    for (uint64_t r = 0; r < options->rows; r++) {
        struct sdr_stream stream = sdr_stream_open(options->seed, SDR_FOR_GENERATE, r);
        for (uint64_t c = 0; c < options->features; c++) {
            size_t i = (size_t)(r * options->features + c);
            double grey = (region[i] ? BRIGHT : DARK) +
                          255 * options->noise * sdr_stream_normal(&stream) + 0.5;
            pixel[i] = (unsigned char)(grey < 0 ? 0 : grey > 255 ? 255 : grey);
        }
    }
}

static enum sdr_status write_picture(const char *path, bool idx,
                                     const struct sdr_generate_options *options,
                                     const unsigned char *pixel)
{
    struct sdr_writer *writer;
    char head[64];
    size_t length;
    if (idx) {
        uint32_t size[3] = {1, (uint32_t)options->rows, (uint32_t)options->features};
        memcpy(head, "\0\0\x08\x03", 4);
        for (int d = 0; d < 3; d++)
            for (int b = 0; b < 4; b++)
                head[4 + 4 * d + b] = (char)(size[d] >> (24 - 8 * b) & 0xFF);
        length = 16;
    } else {
        length = (size_t)snprintf(head, sizeof head, "P5\n%llu %llu\n255\n",
                                  (unsigned long long)options->features,
                                  (unsigned long long)options->rows);
    }
    SDR_TRY(sdr_writer_open(path, &writer));
    enum sdr_status status = sdr_writer_add(writer, head, length);
    if (status == SDR_OK)
        status = sdr_writer_add(writer, pixel, (size_t)(options->rows * options->features));
    if (status == SDR_OK)
        return sdr_writer_commit(writer);
    sdr_writer_abandon(writer);
    return status;
}

static enum sdr_status generate(const struct sdr_generate_options *given, const char *path)
{
    struct sdr_generate_options completed, *options = &completed;
    SDR_TRY(sdr_generate_complete(given, 256, 0, SIDE_MOST, options));
    bool idx = strcmp(sdr_path_extension(path), "idx") == 0;
    unsigned char *region = NULL, *pixel = NULL;
    char *truth_path = NULL;
    struct sdr_text text = {0};
    enum sdr_status status;
    if (!idx && *sdr_path_extension(path) && strcmp(sdr_path_extension(path), "pgm") != 0)
        return sdr_fail(SDR_USAGE, "cannot generate '.%s' pictures (use .pgm or .idx)",
                        sdr_path_extension(path));
    if (options->rows > SIDE_MOST)
        return sdr_fail(SDR_USAGE, "--rows must be at most %d here", SIDE_MOST);
    size_t count = (size_t)(options->rows * options->features), bright = 0;
    SDR_CHECK(sdr_allocate(&region, count, 1, "the picture"));
    SDR_CHECK(sdr_allocate(&pixel, count, 1, "the picture"));
    draw_regions(options, region);
    draw_pixels(options, region, pixel);
    SDR_CHECK(write_picture(path, idx, options, pixel));
    for (size_t i = 0; i < count; i++) {
        bright += region[i];
        pixel[i] = region[i] ? 255 : 0;
    }
    SDR_CHECK(sdr_path_with(path, ".truth.pgm", &truth_path));
    SDR_CHECK(write_picture(truth_path, false, options, pixel));
    sdr_truth_begin(&text, "image", options);
    sdr_truth_number(&text, "dark", DARK);
    sdr_truth_number(&text, "bright", BRIGHT);
    sdr_truth_number(&text, "bright_pixels", (double)bright);
    status = sdr_truth_write(&text, path);
cleanup:
    sdr_release(region);
    sdr_release(pixel);
    sdr_release(truth_path);
    return status;
}

SDR_REGISTER(generator, image) = {
    .name = "image",
    .summary = "a noisy picture of two regions as PGM or IDX; --rows × --features pixels",
    .make = generate,
};
