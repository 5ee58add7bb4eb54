/* Generators: synthetic data with known true parameters. */
#ifndef SDR_KIND_GENERATOR_H
#define SDR_KIND_GENERATOR_H

#include "kind/about.h"

struct sdr_generate_options {
    uint64_t rows, features, nnz, classes, seed;
    double noise; /* fraction of labels flipped, or standard deviation of the noise */
};
struct sdr_generator {
    SDR_ABOUT;
    /* Writes the data to path, in the format of its extension, and the true parameters to
       path.truth.json if they are small. The same options give the same bytes. */
    enum sdr_status (*make)(const struct sdr_generate_options *options, const char *path);
};

#endif
