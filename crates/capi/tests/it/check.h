/* What the programs of the tests share. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with the line and errno unless it holds. */
#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, strerror(errno)); \
            exit(1); \
        } \
    } while (0)
