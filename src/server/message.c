#include "server/message.h"
#include "base/arena.h"
#include "base/memory.h"

#include <pthread.h>

/* Sizes of bodies: 64 bytes, 96, 128, 192, … Even classes are powers of two, odd ones lie between
   two of them. */
enum { CLASSES = 80, LEAST = 6 };

static unsigned class_of(uint64_t bytes)
{
    uint64_t last = bytes > 1 ? bytes - 1 : 1;
    int above = 64 - __builtin_clzll(last) - LEAST; /* of the next power of two */
    if (above <= 0)
        return 0;
    return 2 * (unsigned)above - (bytes <= UINT64_C(3) << (above + LEAST - 2));
}

static size_t room_of(unsigned class)
{
    return class % 2 ? (size_t)3 << (class / 2 + LEAST - 1) : (size_t)1 << (class / 2 + LEAST);
}

struct sdr_pool {
    bool single_threaded; /* all users are on one thread */
    pthread_mutex_t lock;
    struct sdr_body *free[CLASSES];
    struct sdr_arena *arena; /* for rooms of more than `least` bytes; NULL: for none */
    uint64_t least;
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

void sdr_pool_share(struct sdr_pool *pool, struct sdr_arena *arena, uint64_t least)
{
    pool->arena = arena;
    pool->least = least;
}

/* A body with room for its class: in the arena, if that has some. */
static enum sdr_status allocate(struct sdr_pool *pool, unsigned class, struct sdr_body **body)
{
    unsigned char *memory, *shared = NULL;
    size_t room = room_of(class);
    if (pool->arena && room > pool->least)
        shared = sdr_arena_take(pool->arena, room);
    SDR_TRY(sdr_allocate(&memory, sizeof **body + (shared ? 0 : room), 1, "a message"));
    *body = (struct sdr_body *)(void *)memory;
    (*body)->room = shared ? shared : (*body)->memory;
    (*body)->home = pool;
    (*body)->class = (uint16_t) class;
    (*body)->single_threaded = pool->single_threaded;
    return SDR_OK;
}

enum sdr_status sdr_body_create(struct sdr_pool *pool, uint64_t bytes, struct sdr_body **body)
{
    unsigned class = class_of(bytes);
    if (class >= CLASSES)
        return sdr_fail(SDR_RUNTIME, "a message is too large");
    lock(pool);
    *body = pool->free[class];
    if (*body)
        pool->free[class] = (*body)->next;
    unlock(pool);
    if (!*body)
        SDR_TRY(allocate(pool, class, body));
    (*body)->bytes = bytes;
    (*body)->next = (*body)->whole = NULL;
    (*body)->freed = NULL;
    (*body)->data = (*body)->room;
    atomic_store_explicit(&(*body)->refs, 1, memory_order_relaxed);
    return SDR_OK;
}

enum sdr_status sdr_body_part(struct sdr_body *whole, uint64_t from, uint64_t bytes,
                              struct sdr_body **part)
{
    SDR_TRY(sdr_body_create(whole->home, 0, part));
    (*part)->whole = sdr_body_hold(whole);
    (*part)->data = whole->data + from;
    (*part)->bytes = bytes;
    return SDR_OK;
}

enum sdr_status sdr_body_elsewhere(struct sdr_pool *pool, unsigned char *data, uint64_t bytes,
                                   atomic_uint *freed, struct sdr_body **body)
{
    SDR_TRY(sdr_body_create(pool, 0, body));
    (*body)->data = data;
    (*body)->bytes = bytes;
    (*body)->freed = freed;
    return SDR_OK;
}

void sdr_body_drop(struct sdr_body *body)
{
    if (!body || sdr_body_count(body, -1u) != 1)
        return;
    struct sdr_pool *pool = body->home;
    struct sdr_body *whole = body->whole;
    if (body->freed)
        atomic_store_explicit(body->freed, 1, memory_order_release);
    lock(pool);
    body->next = pool->free[body->class];
    pool->free[body->class] = body;
    unlock(pool);
    sdr_body_drop(whole);
}
