/* Codecs: the encoding of values in messages. */
#ifndef SDR_KIND_CODEC_H
#define SDR_KIND_CODEC_H

#include "kind/about.h"

struct sdr_codec {
    SDR_ABOUT;
    bool lossy; /* decoded values may differ from encoded ones */
    /* Upper bound on the bytes of `count` encoded values. */
    uint64_t (*bound)(const void *options, uint64_t count);
    /* Encodes values, or values plus residual if that is not NULL; the residual becomes the
       encoding error (error feedback). Returns the number of bytes. The same arguments give the
       same bytes. */
    uint64_t (*encode)(const void *options, const float *value, uint64_t count, float *residual,
                       uint64_t seed, unsigned char *to);
    /* Decodes exactly `count` values, or fails with SDR_BAD_FILE. The bytes come from outside:
       they may be anything. */
    enum sdr_status (*decode)(const void *options, const unsigned char *from, uint64_t bytes,
                              float *value, uint64_t count);
};

#endif
