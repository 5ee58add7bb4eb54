#include "base/hash.h"

#include "base/fault.h"
#include <stdio.h>
#include <xxhash.h>

uint64_t sdr_hash64(const void *bytes, size_t count, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, count, seed);
}

struct sdr_hasher *sdr_hasher_create(void)
{
    if (sdr_fault_strikes(SDR_FAULT_ALLOCATE))
        return NULL;
    XXH3_state_t *state = XXH3_createState();
    if (state)
        XXH3_128bits_reset(state);
    return (struct sdr_hasher *)state;
}

void sdr_hasher_add(struct sdr_hasher *hasher, const void *bytes, size_t count)
{
    if (count)
        XXH3_128bits_update((XXH3_state_t *)hasher, bytes, count);
}

static void print(XXH128_hash_t hash, char text[33])
{
    snprintf(text, 33, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

void sdr_hasher_text(const struct sdr_hasher *hasher, char text[33])
{
    print(XXH3_128bits_digest((const XXH3_state_t *)hasher), text);
}

void sdr_hasher_destroy(struct sdr_hasher *hasher)
{
    XXH3_freeState((XXH3_state_t *)hasher);
}

void sdr_hash_text(const void *bytes, size_t count, char text[33])
{
    print(XXH3_128bits(bytes, count), text);
}
