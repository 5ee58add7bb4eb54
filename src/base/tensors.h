/* safetensors files: named arrays and text metadata. Written atomically, checked strictly when
   read.
    8 bytes: length of the header, little-endian
    header:  JSON {"__metadata__": {text: text}, "name": {"dtype", "shape", "data_offsets"}, …}
    data:    the arrays, in the order of their offsets, without gaps */
#ifndef SDR_BASE_TENSORS_H
#define SDR_BASE_TENSORS_H

#include "base/fail.h"
#include <jansson.h>
#include <stdint.h>

enum sdr_dtype { SDR_F32, SDR_F64, SDR_U8, SDR_I32 };
struct sdr_tensor {
    char name[64];
    enum sdr_dtype dtype;
    uint64_t shape[2]; /* shape[1] is 0 for a vector */
    const void *data;  /* borrowed */
    /* Instead of data, for writing: the `count` elements from `first` on. */
    enum sdr_status (*read)(void *context, uint64_t first, uint64_t count, void *to);
    void *context; /* borrowed */
};
uint64_t sdr_tensor_count(const struct sdr_tensor *tensor);

/* metadata: an object of strings, borrowed; "checksum" is added. Atomic. */
enum sdr_status sdr_tensors_write(const char *path, const json_t *metadata,
                                  const struct sdr_tensor *tensor, int count);

struct sdr_tensors {
    char *bytes;   /* owned: the whole file */
    size_t mapped; /* bytes of it, where they are mapped and not in memory; 0: they are */
    json_t *metadata;
    struct sdr_tensor *tensor;
    int count;
};
/* Whether a file that begins with `head` is a safetensors file, possibly damaged: text has no zero
   bytes, and compressed files differ in the ninth byte. */
bool sdr_tensors_begin(const char *head, size_t count);
/* SDR_BAD_FILE with the reason if the contents are invalid, SDR_RUNTIME if the file cannot be
   read. */
enum sdr_status sdr_tensors_read(const char *path, struct sdr_tensors *file);
/* The same without holding the file in memory; nobody may change it meanwhile. */
enum sdr_status sdr_tensors_map(const char *path, struct sdr_tensors *file);
enum sdr_status sdr_tensors_parse(const char *path, char *bytes, size_t count,
                                  struct sdr_tensors *file); /* takes over bytes */
void sdr_tensors_free(struct sdr_tensors *file);
const struct sdr_tensor *sdr_tensors_find(const struct sdr_tensors *file, const char *name);
const char *sdr_tensors_text(const struct sdr_tensors *file, const char *key); /* NULL: absent */

#endif
