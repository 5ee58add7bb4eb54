#include "server/message.h"
#include "base/memory.h"

#include <pthread.h>

enum { CLASSES = 40, LEAST = 6 }; /* from 64 bytes on */

struct sdr_pool {
    bool single_threaded; /* all users are on one thread */
    pthread_mutex_t lock;
    struct sdr_body *free[CLASSES];
};

static void lock(struct sdr_pool *pool)
{
    if (!pool->single_threaded)
        pthread_mutex_lock(&pool->lock);
}

static void unlock(struct sdr_pool *pool)
{
    if (!pool->single_threaded)
        pthread_mutex_unlock(&pool->lock);
}

enum sdr_status sdr_pool_create(bool single_threaded, struct sdr_pool **pool)
{
    SDR_TRY(sdr_allocate(pool, 1, sizeof **pool, "messages"));
    (*pool)->single_threaded = single_threaded;
    pthread_mutex_init(&(*pool)->lock, NULL);
    return SDR_OK;
}

void sdr_pool_destroy(struct sdr_pool *pool)
{
    if (!pool)
        return;
    for (int c = 0; c < CLASSES; c++)
        while (pool->free[c]) {
            struct sdr_body *body = pool->free[c];
            pool->free[c] = body->next;
            sdr_release(body);
        }
    pthread_mutex_destroy(&pool->lock);
    sdr_release(pool);
}

enum sdr_status sdr_body_create(struct sdr_pool *pool, uint64_t bytes, struct sdr_body **body)
{
    uint64_t last = bytes > 1 ? bytes - 1 : 1;
    int above = 64 - __builtin_clzll(last) - LEAST;
    uint16_t class = (uint16_t)(above > 0 ? above : 0);
    if (class >= CLASSES)
        return sdr_fail(SDR_RUNTIME, "a message is too large");
    lock(pool);
    *body = pool->free[class];
    if (*body)
        pool->free[class] = (*body)->next;
    unlock(pool);
    if (!*body) {
        unsigned char *memory;
        size_t room = (size_t)1 << (class + LEAST);
        SDR_TRY(sdr_allocate(&memory, sizeof **body + room, 1, "a message"));
        *body = (struct sdr_body *)(void *)memory;
        (*body)->home = pool;
        (*body)->class = class;
        (*body)->single_threaded = pool->single_threaded;
    }
    (*body)->bytes = bytes;
    (*body)->next = NULL;
    atomic_store_explicit(&(*body)->refs, 1, memory_order_relaxed);
    return SDR_OK;
}

void sdr_body_drop(struct sdr_body *body)
{
    if (!body || sdr_body_count(body, -1u) != 1)
        return;
    struct sdr_pool *pool = body->home;
    lock(pool);
    body->next = pool->free[body->class];
    pool->free[body->class] = body;
    unlock(pool);
}
