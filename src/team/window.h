/* Windows of rows that are cut into components: what the rest of a run asks of them. */
#ifndef SDR_WINDOW_H
#define SDR_WINDOW_H

#include "team/node.h"

struct sdr_window;

/* The longest window whose largest component is small; 0: rows have too much in common. */
enum sdr_status sdr_window_choose(const struct sdr_run *run, uint64_t *rows);
enum sdr_status sdr_window_create(struct sdr_run *run); /* run->window */
void sdr_window_destroy(struct sdr_window *w);
/* Before an epoch: the order of the first epoch must be laid once; then this turns it into the order
   of the present one. */
bool sdr_window_needs_base(const struct sdr_run *run);
void sdr_window_order(struct sdr_run *run);
/* Around a window, while nobody trains. */
void sdr_window_open(struct sdr_run *run, const struct sdr_batch *window);
void sdr_window_close(struct sdr_run *run, const struct sdr_batch *window);

#endif
