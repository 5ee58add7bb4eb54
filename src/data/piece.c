/* Pieces: the rows of one parsed chunk. They are recycled, so that steady-state reading allocates
   nothing. */
#include "data/data.h"

#include <stdio.h>
#include <string.h>

/* Moves an array to a larger allocation; on failure the old one remains. */
static enum sdr_status enlarge(void *array, uint64_t used, uint64_t room, size_t size)
{
    void *old, *new;
    memcpy(&old, array, sizeof old);
    SDR_TRY(sdr_allocate(&new, (size_t)room, size, "a piece of the data"));
    if (used)
        memcpy(new, old, (size_t)used * size);
    sdr_release(old);
    memcpy(array, &new, sizeof new);
    return SDR_OK;
}

enum sdr_status sdr_piece_reserve(struct sdr_piece *piece, uint64_t entries, uint64_t rows)
{
    if (entries > piece->entry_room || !piece->index) {
        uint64_t room = piece->entry_room + piece->entry_room / 2;
        room = room < entries ? entries : room;
        SDR_TRY(enlarge(&piece->index, piece->entries, room, sizeof *piece->index));
        SDR_TRY(enlarge(&piece->value, piece->entries, room, sizeof *piece->value));
        piece->entry_room = room;
    }
    if (rows > piece->row_room || !piece->end) {
        uint64_t room = piece->row_room + piece->row_room / 2;
        room = room < rows ? rows : room;
        SDR_TRY(enlarge(&piece->end, piece->rows, room, sizeof *piece->end));
        SDR_TRY(enlarge(&piece->label, piece->rows, room, sizeof *piece->label));
        SDR_TRY(enlarge(&piece->weight, piece->rows, room, sizeof *piece->weight));
        piece->row_room = room;
    }
    return SDR_OK;
}

void sdr_piece_clear(struct sdr_piece *piece)
{
    sdr_dictionary_clear(&piece->category);
    sdr_dictionary_clear(&piece->labels);
    sdr_label_clear(&piece->label_finder);
    piece->entries = piece->rows = piece->lines = 0;
    piece->features = 0;
    piece->has_weights = piece->has_missing = piece->lacks_labels = piece->index_zero = false;
    piece->text_labels = piece->many_labels = false;
    piece->status = SDR_OK;
    piece->error_line = piece->error_column = 0;
    piece->error[0] = 0;
}

void sdr_piece_free(struct sdr_piece *piece)
{
    sdr_release(piece->index);
    sdr_release(piece->value);
    sdr_release(piece->end);
    sdr_release(piece->label);
    sdr_release(piece->weight);
    sdr_release(piece->label_value);
    sdr_dictionary_free(&piece->category);
    sdr_dictionary_free(&piece->labels);
    sdr_label_free(&piece->label_finder);
    *piece = (struct sdr_piece){0};
}

enum sdr_status sdr_piece_fail(struct sdr_piece *piece, uint64_t line, uint64_t column,
                               const char *format, ...)
{
    if (piece->status != SDR_OK)
        return piece->status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(piece->error, sizeof piece->error, format, arguments);
    va_end(arguments);
    piece->error_line = line;
    piece->error_column = column;
    piece->status = SDR_BAD_DATA;
    return SDR_BAD_DATA;
}

enum sdr_status sdr_piece_label_number(struct sdr_piece *piece, float value, const char *text,
                                       size_t length)
{
    uint32_t number;
    if (text && !sdr_label_exact(value, text, length))
        piece->many_labels = true; /* valid as numbers, but too many to be classes */
    if (piece->many_labels)
        return SDR_OK;
    SDR_TRY(sdr_label_find(&piece->label_finder, &piece->labels, &piece->label_value, value, text,
                           length, &number));
    piece->many_labels = number == UINT32_MAX;
    return SDR_OK;
}

enum sdr_status sdr_piece_label_text(struct sdr_piece *piece, const char *text, size_t length,
                                     float *label)
{
    uint32_t number;
    SDR_TRY(sdr_dictionary_find(&piece->labels, text, length, true, &number));
    piece->text_labels = true;
    *label = (float)number;
    return SDR_OK;
}

enum sdr_status sdr_piece_category(struct sdr_piece *piece, const char *text, size_t length,
                                   uint32_t *index)
{
    uint32_t number;
    SDR_TRY(sdr_dictionary_find(&piece->category, text, length, true, &number));
    *index = number | SDR_CATEGORY_BIT;
    return SDR_OK;
}
