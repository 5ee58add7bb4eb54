/* Hashing by xxHash (XXH3): checksums of files and models, feature hashing, row hashes. */
#ifndef SDR_BASE_HASH_H
#define SDR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t sdr_hash64(const void *bytes, size_t count, uint64_t seed);

/* A 128-bit hash fed piecewise; text is 32 hex digits and a NUL. */
struct sdr_hasher;
struct sdr_hasher *sdr_hasher_create(void); /* NULL: out of memory */
void sdr_hasher_add(struct sdr_hasher *hasher, const void *bytes, size_t count);
void sdr_hasher_text(const struct sdr_hasher *hasher, char text[33]);
void sdr_hasher_destroy(struct sdr_hasher *hasher);
void sdr_hash_text(const void *bytes, size_t count, char text[33]);

#endif
