/* Files: reading, mapping and atomic writing. */
#ifndef SDR_BASE_FILE_H
#define SDR_BASE_FILE_H

#include "base/fail.h"
#include <stdint.h>

struct sdr_file_facts {
    uint64_t bytes;
    int64_t modified_ns; /* mtime */
    bool regular, directory;
};
/* SDR_RUNTIME with the path and the cause if the file does not exist. */
enum sdr_status sdr_file_facts(const char *path, struct sdr_file_facts *facts);
bool sdr_file_exists(const char *path);

/* Opens for reading. A pipe is opened without waiting for its writer; sdr_file_read waits, and can
   be stopped. The caller closes *descriptor, which is -1 after a failure. */
enum sdr_status sdr_file_open(const char *path, int *descriptor);
/* Repeats read(2) until `count` bytes, end of file or an error; *got is the number read. Counts as
   one read for fault injection. `name` is for the error message. */
enum sdr_status sdr_file_read(int descriptor, void *bytes, size_t count, size_t *got,
                              const char *name);
/* Up to `count` bytes from the start of a regular file. *got is 0 for a pipe, which can be read
   only once, and for a path that cannot be opened. */
enum sdr_status sdr_file_head(const char *path, void *bytes, size_t count, size_t *got);
/* Reads a whole file of at most `limit` bytes; *bytes is given away (sdr_release) and
   NUL-terminated. */
enum sdr_status sdr_file_load(const char *path, uint64_t limit, char **bytes, size_t *count);

/* Maps a file read-only. Unmap with sdr_file_unmap. An empty file maps to NULL, 0. */
enum sdr_status sdr_file_map(const char *path, const void **bytes, size_t *count);
void sdr_file_unmap(const void *bytes, size_t count);
/* The pages of a mapped file that these bytes fill need not be in memory for now. */
void sdr_file_passed(const void *bytes, size_t count);
/* A file without a name, in a folder, that is gone when it is closed. Maps what was written to
   it. */
enum sdr_status sdr_file_nameless(const char *folder, int *descriptor);
enum sdr_status sdr_file_put_at(int descriptor, uint64_t offset, const void *bytes, size_t count);
enum sdr_status sdr_file_map_open(int descriptor, size_t count, const void **bytes);

/* Writes a file atomically: temporary file beside it, fsync, rename, fsync of the folder. Until
   _commit succeeds the old file, if any, is untouched; _abandon removes the temporary file. */
struct sdr_writer;
enum sdr_status sdr_writer_open(const char *path, struct sdr_writer **writer);
enum sdr_status sdr_writer_add(struct sdr_writer *writer, const void *bytes, size_t count);
uint64_t sdr_writer_written(const struct sdr_writer *writer);
/* Overwrites bytes already written (a header known only at the end). */
enum sdr_status sdr_writer_patch(struct sdr_writer *writer, uint64_t offset, const void *bytes,
                                 size_t count);
/* Frees the writer, also on failure. */
enum sdr_status sdr_writer_commit(struct sdr_writer *writer);
void sdr_writer_abandon(struct sdr_writer *writer); /* NULL is fine */
enum sdr_status sdr_file_write(const char *path, const void *bytes, size_t count);
/* sdr_writer in one call, without fsync: survives a kill; a power cut may bring the old file
   back. */
enum sdr_status sdr_file_put(const char *path, const void *bytes, size_t count);

/* Appends one line to a log file. A crash may lose the line but never leaves part of it. */
enum sdr_status sdr_file_append(const char *path, const char *line, size_t length);
/* mkdir -p */
enum sdr_status sdr_folder_make(const char *path);
/* "folder/name", given away. */
enum sdr_status sdr_path_join(const char *folder, const char *name, char **path);
const char *sdr_path_base(const char *path); /* the part after the last '/' */

#endif
