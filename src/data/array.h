/* Numeric arrays of NPY and IDX files: the header with shape and type, the numbers as floats, and
   the rows they form. */
#ifndef SDR_DATA_ARRAY_H
#define SDR_DATA_ARRAY_H

#include "data/data.h"

enum sdr_array_type {
    SDR_ARRAY_BOOL,
    SDR_ARRAY_U8,
    SDR_ARRAY_I8,
    SDR_ARRAY_U16,
    SDR_ARRAY_I16,
    SDR_ARRAY_U32,
    SDR_ARRAY_I32,
    SDR_ARRAY_U64,
    SDR_ARRAY_I64,
    SDR_ARRAY_F32,
    SDR_ARRAY_F64
};
enum { SDR_ARRAY_DIMS = 8 };

struct sdr_array {
    enum sdr_array_type type;
    bool big_endian, fortran; /* fortran: column-major, the first index varies fastest */
    uint32_t dims;
    uint64_t shape[SDR_ARRAY_DIMS];
    uint64_t rows, width; /* shape[0]; the product of the other dimensions. Both fit in memory */
    size_t header;        /* bytes before the numbers */
};

/* Parse a header at the start of `bytes`; `name` is the file's, for messages. SDR_BAD_DATA if it is
   damaged or the type is not numeric. */
enum sdr_status sdr_npy_header(const char *name, const char *bytes, size_t count,
                               struct sdr_array *array);
enum sdr_status sdr_idx_header(const char *name, const char *bytes, size_t count,
                               struct sdr_array *array);
bool sdr_npy_is(const char *bytes, size_t count);
bool sdr_idx_is(const char *bytes, size_t count);

size_t sdr_array_size(enum sdr_array_type type); /* of one number */
bool sdr_array_is_whole(enum sdr_array_type type);
/* Sets rows and width; SDR_BAD_DATA if the array is empty or exceeds the address space. */
enum sdr_status sdr_array_measure(const char *name, struct sdr_array *array);
/* Convert `count` consecutive numbers to floats, or (integer types only) to integers. */
void sdr_array_floats(const struct sdr_array *array, const void *from, size_t count, float *to);
void sdr_array_integers(const struct sdr_array *array, const void *from, size_t count, int64_t *to);

/* Adds the rows of the array whose header comes next in the source to reading->builder, with the
   labels of options->labels. The source must end with the array. */
struct sdr_label_file;
enum sdr_status sdr_array_feed(const struct sdr_array *array, struct sdr_reading *reading,
                               struct sdr_source *source, struct sdr_label_file *labels);

#endif
