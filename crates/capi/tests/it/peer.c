/* The peer of the exchange test: connects or listens, sends BYTES generated from a seed, receives as many of another seed
 * and compares them. peer connect|listen HOST PORT BYTES SEED OTHER */
#include <arpa/inet.h>
#include <errno.h>
#include <meshpace.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int die(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

/* xorshift64*: both sides of the test make the same bytes. */
static uint64_t step(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Dull;
}

static void fill(uint64_t *state, unsigned char *into, size_t words) {
    for (size_t i = 0; i < words; i++) {
        uint64_t value = step(state);
        for (int byte = 0; byte < 8; byte++) into[i * 8 + byte] = (unsigned char)(value >> (8 * byte));
    }
}

struct work {
    int socket;
    uint64_t bytes, seed;
};

static void *send_all(void *argument) {
    struct work *work = argument;
    static unsigned char chunk[8192];
    for (uint64_t left = work->bytes; left > 0;) {
        fill(&work->seed, chunk, sizeof chunk / 8);
        size_t part = left < sizeof chunk ? left : sizeof chunk;
        for (size_t done = 0; done < part;) {
            ssize_t length = tpa_send(work->socket, chunk + done, part - done, 0);
            if (length < 0) die("tpa_send");
            done += (size_t)length;
        }
        left -= part;
    }
    return NULL;
}

static void check_errors(void) {
    unsigned char byte = 0;
    if (tpa_send(3, &byte, 1, 0) != -1 || errno != EBADF) die("EBADF expected");
    int fresh = tpa_socket();
    if (tpa_recv(fresh, &byte, 1, 0) != -1 || errno != ENOTCONN) die("ENOTCONN expected");
    if (tpa_listen(fresh, 1) != -1 || errno != EINVAL) die("EINVAL expected");
    struct sockaddr other = {.sa_family = AF_UNIX};
    if (tpa_bind(fresh, &other, sizeof other) != -1 || errno != EAFNOSUPPORT) die("EAFNOSUPPORT expected");
    // An address of IPv6 is longer than this.
    other.sa_family = AF_INET6;
    if (tpa_bind(fresh, &other, sizeof other) != -1 || errno != EINVAL) die("EINVAL expected");
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(1)};
    if (tpa_bind(fresh, (struct sockaddr *)&any, 3) != -1 || errno != EINVAL) die("EINVAL expected");
    if (tpa_connect(fresh, (struct sockaddr *)&any, sizeof any) != -1 || errno != ECONNREFUSED) die("ECONNREFUSED expected");
    if (tpa_close(fresh) != 0) die("tpa_close");
    if (tpa_close(fresh) != -1 || errno != EBADF) die("EBADF expected");
}

int main(int count, char **arguments) {
    if (count != 7) return 2;
    check_errors();
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arguments[3]))};
    if (inet_pton(AF_INET, arguments[2], &address.sin_addr) != 1) return 2;
    uint64_t bytes = strtoull(arguments[4], NULL, 10);
    uint64_t other = strtoull(arguments[6], NULL, 10);
    int connection, socket = tpa_socket();
    if (socket < 0) die("tpa_socket");
    if (!strcmp(arguments[1], "listen")) {
        if (tpa_bind(socket, (struct sockaddr *)&address, sizeof address)) die("tpa_bind");
        if (tpa_listen(socket, 5)) die("tpa_listen");
        puts("listening");
        fflush(stdout);
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        connection = tpa_accept(socket, (struct sockaddr *)&peer, &length);
        if (connection < 0) die("tpa_accept");
        if (length != sizeof peer || peer.sin_family != AF_INET || peer.sin_port == 0) die("the peer's address");
    } else {
        if (tpa_connect(socket, (struct sockaddr *)&address, sizeof address)) die("tpa_connect");
        connection = socket;
    }
    struct work work = {connection, bytes, strtoull(arguments[5], NULL, 10)};
    pthread_t sender;
    if (pthread_create(&sender, NULL, send_all, &work)) die("pthread_create");
    static unsigned char got[65536], expected[8192];
    size_t at = sizeof expected;
    for (uint64_t left = bytes; left > 0;) {
        ssize_t length = tpa_recv(connection, got, sizeof got, 0);
        if (length < 0) die("tpa_recv");
        if (length == 0) return fprintf(stderr, "%llu bytes are missing\n", (unsigned long long)left), 1;
        for (ssize_t i = 0; i < length; i++) {
            if (at == sizeof expected) fill(&other, expected, sizeof expected / 8), at = 0;
            if (got[i] != expected[at++]) return fprintf(stderr, "another byte than was sent\n"), 1;
        }
        left -= (uint64_t)length;
    }
    pthread_join(sender, NULL);
    if (tpa_close(connection)) die("tpa_close");
    if (connection != socket && tpa_close(socket)) die("tpa_close of the listener");
    puts("done");
    return 0;
}
