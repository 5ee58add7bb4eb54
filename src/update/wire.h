/* Updates as bytes, and back. What comes from another process is hostile until it is checked: a
   reader takes nothing for granted but the layout of the values and the bytes it was given.

       head      magic, version of the format, sense, number of parts, leaves, rows, two times
       losses    a pair of doubles a leaf
       parts     a head of 48 bytes each: block, form, count, where it lies, bytes of its arrays
       arrays    of every part: index, values (by the codec), stored factors; each at a multiple of 8

   FACTORS of the examples of a batch travel without the examples: both ends have the rows. ROWS and
   DENSE need nothing at the other end. */
#ifndef SDR_UPDATE_WIRE_H
#define SDR_UPDATE_WIRE_H

#include "update/gradient.h"

/* Facts sent with an update. */
struct sdr_wire_facts {
    uint32_t rows, leaves; /* of its batch; leaves is 0 for servers that do not count losses */
    float computing;       /* seconds it took */
    double rate;           /* of a step that was taken */
    const struct sdr_loss_sum *losses; /* one per leaf; after reading borrowed from the bytes */
};

/* Reads the facts only; false: missing, or they do not fit the bytes. */
bool sdr_wire_facts_of(const unsigned char *bytes, uint64_t count, struct sdr_wire_facts *facts);
/* Sets the compute time in a written update: it is known only afterwards. */
void sdr_wire_set_computing(unsigned char *bytes, float seconds);

/* The encoding of values, the same at both ends. */
struct sdr_wire {
    const struct sdr_layout *layout; /* borrowed */
    const struct sdr_codec *codec;   /* NULL: plain floats */
    const void *codec_options;       /* borrowed */
};

/* Upper bound on the bytes of an update within a span. */
uint64_t sdr_wire_bound(const struct sdr_wire *wire, const struct sdr_update *update,
                        struct sdr_span span, uint32_t leaves);
/* Scratch for sorting listed rows by spans. */
struct sdr_wire_writer {
    uint32_t *index; /* owned */
    float *value;    /* owned */
    uint64_t value_room;
};
void sdr_wire_writer_free(struct sdr_wire_writer *writer);
/* Writes an update; *bytes is its length. `residual`, one per value or NULL, holds the error of
   a lossy codec on dense parts, and is added to the next ones. `seed` must differ between
   messages. */
enum sdr_status sdr_wire_write(const struct sdr_wire *wire, const struct sdr_update *update,
                               struct sdr_span span, const struct sdr_wire_facts *facts,
                               float *residual, uint64_t seed, struct sdr_wire_writer *writer,
                               unsigned char *to, uint64_t *bytes);

/* Memory of an update that was read. */
struct sdr_wire_reader {
    struct sdr_part *part; /* owned */
    int room;
    float *decoded; /* owned: decoded values */
    uint64_t decoded_room;
};
void sdr_wire_reader_free(struct sdr_wire_reader *reader);
/* Reads an update that was written for a span: dense parts have all rows of the span, and listed
   rows lie in it. Steps have the rows that the batch touches (sdr_step_add compares), or dense
   ones; other updates can be summed and expanded. Its arrays are borrowed from the bytes, which
   begin at a multiple of 8, and from the reader. `examples`: rows of the update's batch at this
   end. Fails with SDR_BAD_FILE and a sentence if anything does not fit. */
enum sdr_status sdr_wire_read(const struct sdr_wire *wire, const unsigned char *bytes,
                              uint64_t count, uint32_t examples, struct sdr_span span,
                              struct sdr_wire_reader *reader, struct sdr_wire_facts *facts,
                              struct sdr_update *update);

#endif
