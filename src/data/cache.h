/* Cache files (.sdc): the arrays of a data set, ready to be mapped.

   header     magic "SDRCACHE", version, counts, key, table of sections, hash of the header
   sections   start, index, value or dense; label; weight; schema (JSON)

   Every section starts at a multiple of 64 bytes; the table has its XXH3 hash. Numbers are
   little-endian, floats IEEE 754, as in memory. */
#ifndef SDR_DATA_CACHE_H
#define SDR_DATA_CACHE_H

#include "data/data.h"

enum sdr_section {
    SDR_SECTION_START,
    SDR_SECTION_INDEX,
    SDR_SECTION_VALUE,
    SDR_SECTION_DENSE,
    SDR_SECTION_LABEL,
    SDR_SECTION_WEIGHT,
    SDR_SECTION_SCHEMA,
    SDR_SECTIONS
};
enum { SDR_CACHE_VERSION = 1, SDR_CACHE_KEY = 64 };
#define SDR_CACHE_MAGIC "SDRCACHE"

struct sdr_cache_section {
    uint64_t offset, bytes;
    char hash[32]; /* XXH3-128 in hexadecimal; zeros if the section is absent */
};
struct sdr_cache_header {
    char magic[8];
    uint32_t version, index_bytes; /* index_bytes: 2 or 4; 0: dense */
    uint64_t rows, features, nonzeros, unseen;
    uint64_t stride;         /* of dense rows; 0: sparse */
    uint64_t has_labels;     /* 0 or 1 */
    char key[SDR_CACHE_KEY]; /* padded with zeros */
    struct sdr_cache_section section[SDR_SECTIONS];
    char hash[32]; /* of everything above */
};

/* Writes a cache file section by section. */
struct sdr_cache_writer;
enum sdr_status sdr_cache_begin(const char *path, struct sdr_cache_writer **writer);
/* Appends bytes; a new section begins when `section` changes. */
enum sdr_status sdr_cache_add(struct sdr_cache_writer *writer, enum sdr_section section,
                              const void *bytes, size_t count);
/* Writes the header from `facts` (counts and key) and closes the file. Destroys the writer. */
enum sdr_status sdr_cache_end(struct sdr_cache_writer *writer, const struct sdr_cache_header *facts,
                              const struct sdr_schema *schema);
void sdr_cache_abandon(struct sdr_cache_writer *writer); /* NULL is fine */

enum sdr_status sdr_cache_write_keyed(const struct sdr_data *data, const char *key,
                                      const char *path);
/* memory: resident bytes allowed while checking; 0: no limit. on_demand: rows are not checked now,
   see sdr_data_demand. */
enum sdr_status sdr_cache_map_within(const char *path, const char *key, uint64_t memory,
                                     bool on_demand, struct sdr_data **data);
/* Sets `streams` and `stream_rows` if the data exceeds the memory limit (0: no limit). */
void sdr_data_limit(struct sdr_data *data, uint64_t memory);
uint64_t sdr_data_bytes(const struct sdr_data *data);
/* Sets source_key, a hash of the arrays. */
enum sdr_status sdr_data_sign(struct sdr_data *data);

#endif
