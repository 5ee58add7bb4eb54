/* Model files among the arguments: recognising and loading them. */
#include "cli.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A safetensors file starts with 8 bytes of length, little-endian, and a JSON object. Text has no
   zero bytes, and compressed files differ in the ninth byte. Only regular files are checked: bytes
   read from a pipe here would be missing later. */
bool cli_starts_like_model(const char *path)
{
    unsigned char head[9];
    const uint64_t longest = UINT64_C(1) << 40;
    struct stat facts;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* allocates nothing */
    if (file < 0)
        return false;
    bool whole = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) &&
                 read(file, head, sizeof head) == sizeof head;
    close(file);
    uint64_t length = 0;
    for (int i = 7; whole && i >= 0; i--)
        length = length << 8 | head[i];
    return whole && length >= 2 && length < longest && head[8] == '{';
}

enum sdr_status cli_model_load(const struct cli_arguments *arguments, struct sdr_model **model)
{
    const char *path = arguments->paths[0];
    enum sdr_status status = sdr_model_load(path, model);
    if (status == SDR_BAD_FILE && !cli_starts_like_model(path))
        return cli_fail(status, "%s: sounder %s %s", cli_sentence(status), arguments->command->name,
                        arguments->command->positional);
    return status;
}
