/* Codecs: what values look like on the wire. */
#ifndef SDR_KIND_CODEC_H
#define SDR_KIND_CODEC_H

#include "kind/about.h"

struct sdr_codec {
    SDR_ABOUT;
    bool lossy; /* what is decoded may differ from what was encoded */
    /* Bytes that encoding `count` values takes at most. */
    uint64_t (*bound)(const void *options, uint64_t count);
    /* Encodes values, or the sum of values and residual where that is not NULL; the residual becomes
       what is left out. Returns the bytes. The same arguments give the same bytes. */
    uint64_t (*encode)(const void *options, const float *value, uint64_t count, float *residual,
                       uint64_t seed, unsigned char *to);
    /* Decodes exactly `count` values, or fails with SDR_BAD_FILE: the bytes may be anything. */
    enum sdr_status (*decode)(const void *options, const unsigned char *from, uint64_t bytes,
                              float *value, uint64_t count);
};

#endif
