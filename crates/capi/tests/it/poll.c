/* Options, closing by halves, and descriptors to poll: a server and a client in one program that never waits but in poll. */
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <meshpace.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/* The call fails with this errno. */
#define FAILS(call, error) CHECK((call) == -1 && errno == (error))

static int number(int socket, int option) {
    int value = -1;
    socklen_t length = sizeof value;
    CHECK(tpa_getsockopt(socket, SOL_TPA, option, &value, &length) == 0 && length == sizeof value);
    return value;
}

static void set(int socket, int option, int value) {
    CHECK(tpa_setsockopt(socket, SOL_TPA, option, &value, sizeof value) == 0);
}

static int is_ready(int descriptor, int milliseconds) {
    struct pollfd one = {.fd = descriptor, .events = POLLIN};
    CHECK(poll(&one, 1, milliseconds) >= 0);
    return one.revents != 0;
}

static void options(void) {
    int s = tpa_socket(), zero = 0, minus = -1, huge = 0x7fffffff;
    char name[16];
    socklen_t length = sizeof name;
    CHECK(tpa_getsockopt(s, SOL_TPA, TPA_TRANSPORT, name, &length) == 0 && length == 6 && !strcmp(name, "tpa-2"));
    CHECK(tpa_setsockopt(s, SOL_TPA, TPA_TRANSPORT, "tpa-ap-3", 8) == 0);
    length = 3;
    FAILS(tpa_getsockopt(s, SOL_TPA, TPA_TRANSPORT, name, &length), EINVAL);
    FAILS(tpa_setsockopt(s, SOL_TPA, TPA_TRANSPORT, "tcp-ap", 6), EINVAL);
    FAILS(tpa_setsockopt(s, SOL_TPA, TPA_SEGMENT, &zero, sizeof zero), EINVAL);
    FAILS(tpa_setsockopt(s, SOL_SOCKET, SO_RCVBUF, &huge, sizeof huge), EINVAL);
    FAILS(tpa_setsockopt(s, SOL_SOCKET, SO_SNDBUF, &huge, sizeof huge), EINVAL);
    FAILS(tpa_setsockopt(s, SOL_TPA, TPA_KEEP_ALIVE, &minus, sizeof minus), EINVAL);
    FAILS(tpa_setsockopt(s, SOL_TPA, TPA_KEEP_ALIVE, &minus, 2), EINVAL);
    FAILS(tpa_setsockopt(s, SOL_TPA, 4711, &zero, sizeof zero), ENOPROTOOPT);
    FAILS(tpa_setsockopt(s, IPPROTO_TCP, 1, &zero, sizeof zero), ENOPROTOOPT);
    FAILS(tpa_setsockopt(s, SOL_TPA, TPA_SECRET, "too short", 9), EINVAL);
    CHECK(number(s, TPA_KEEP_ALIVE) == 30000 && number(s, TPA_IDLE) == 0 && number(s, TPA_SILENCE) == 120000);
    set(s, TPA_IDLE, 5000);
    set(s, TPA_HOPS, 4);
    set(s, TPA_SEGMENT, 512);
    CHECK(number(s, TPA_IDLE) == 5000 && number(s, TPA_HOPS) == 4 && number(s, TPA_SEGMENT) == 512);
    CHECK(number(s, TPA_CHANNEL_RATE) == 2000000 && number(s, TPA_UNACKNOWLEDGED) == 0);
    struct timeval waits = {.tv_sec = 1, .tv_usec = 500000}, read = {0};
    length = sizeof read;
    CHECK(tpa_setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &waits, sizeof waits) == 0);
    CHECK(tpa_getsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &read, &length) == 0 && length == sizeof read);
    CHECK(read.tv_sec == 1 && read.tv_usec == 500000);
    FAILS(tpa_shutdown(s, SHUT_WR), ENOTCONN);
    FAILS(tpa_pollfd(s, POLLIN | POLLOUT), EINVAL);
    /* A key without a peer is of no use. OpenSSL computes this public key from the private one of the bytes 1 to 32. */
    unsigned char private[32];
    for (int i = 0; i < 32; i++) private[i] = (unsigned char)(i + 1);
    CHECK(tpa_setsockopt(s, SOL_TPA, TPA_KEY, private, sizeof private) == 0);
    unsigned char public[32];
    length = sizeof public;
    CHECK(tpa_getsockopt(s, SOL_TPA, TPA_PUBLIC_KEY, public, &length) == 0 && length == 32);
    CHECK(!memcmp(public, "\x07\xa3\x7c\xbc\x14\x20\x93\xc8", 8));
    FAILS(tpa_getsockopt(s, SOL_TPA, TPA_KEY, public, &length), ENOPROTOOPT);
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    FAILS(tpa_bind(s, (struct sockaddr *)&any, sizeof any), EINVAL);
    CHECK(tpa_setsockopt(s, SOL_TPA, TPA_PEERS, public, sizeof public) == 0);
    CHECK(tpa_bind(s, (struct sockaddr *)&any, sizeof any) == 0);
    int more = 1000;
    FAILS(tpa_setsockopt(s, SOL_TPA, TPA_SEGMENT, &more, sizeof more), EINVAL);
    CHECK(tpa_close(s) == 0);
}

/* As many bytes as fit now; how many. */
static size_t fill(int socket, unsigned char *next) {
    unsigned char block[10000];
    size_t sent = 0;
    for (;;) {
        for (size_t i = 0; i < sizeof block; i++) block[i] = (unsigned char)(*next + i);
        ssize_t part = tpa_send(socket, block, sizeof block, 0);
        if (part < 0) {
            CHECK(errno == EAGAIN);
            return sent;
        }
        *next = (unsigned char)(*next + part);
        sent += (size_t)part;
    }
}

/* A socket accepted from `listener`, which has a secret and listens at `address`, has its TPA_NODELAY. */
static void inherits(const struct sockaddr_in *address, int listener) {
    int client = tpa_socket();
    set(listener, TPA_NODELAY, 0);
    set(listener, TPA_NONBLOCK, 0);
    CHECK(tpa_setsockopt(client, SOL_TPA, TPA_SECRET, "meshpacemeshpacemeshpacemeshpace", 32) == 0);
    CHECK(tpa_connect(client, (const struct sockaddr *)address, sizeof *address) == 0);
    int server = tpa_accept(listener, NULL, NULL);
    CHECK(server >= 0 && number(server, TPA_NODELAY) == 0 && number(client, TPA_NODELAY) == 1);
    CHECK(tpa_close(client) == 0 && tpa_close(server) == 0);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    options();
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(arguments[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = tpa_socket(), client = tpa_socket();
    static const char secret[] = "6d657368706163656d657368706163656d657368706163656d65736870616365";
    CHECK(tpa_setsockopt(listener, SOL_TPA, TPA_SECRET, secret, 64) == 0);
    CHECK(tpa_setsockopt(client, SOL_TPA, TPA_SECRET, "meshpacemeshpacemeshpacemeshpace", 32) == 0);
    CHECK(tpa_bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(tpa_listen(listener, 5) == 0);
    set(listener, TPA_NONBLOCK, 1);
    set(client, TPA_NONBLOCK, 1);
    int arrives = tpa_pollfd(listener, POLLIN), writes = tpa_pollfd(client, POLLOUT), reads = tpa_pollfd(client, POLLIN);
    CHECK(arrives >= 0 && writes >= 0 && reads >= 0 && tpa_pollfd(client, POLLIN) == reads);
    FAILS(tpa_accept(listener, NULL, NULL), EAGAIN);
    CHECK(!is_ready(arrives, 0) && !is_ready(writes, 0));
    FAILS(tpa_connect(client, (struct sockaddr *)&address, sizeof address), EINPROGRESS);
    CHECK(is_ready(writes, 20000));
    int error = -1;
    socklen_t length = sizeof error;
    CHECK(tpa_getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0);
    FAILS(tpa_connect(client, (struct sockaddr *)&address, sizeof address), EISCONN);
    CHECK(is_ready(arrives, 20000));
    int server = tpa_accept(listener, NULL, NULL);
    CHECK(server >= 0 && !is_ready(arrives, 0));
    set(server, TPA_NONBLOCK, 1);
    int comes = tpa_pollfd(server, POLLIN);
    unsigned char byte, next = 0, expected = 0, block[7000];
    FAILS(tpa_recv(client, &byte, 1, 0), EAGAIN);
    CHECK(!is_ready(reads, 0) && is_ready(writes, 0));
    /* More than the buffers of both ends: whoever sends waits for whoever receives, in poll. */
    size_t sent = 0, got = 0;
    while (sent < 2000000) {
        sent += fill(client, &next);
        if (!is_ready(writes, 0)) CHECK(is_ready(comes, 20000));
        for (ssize_t part; (part = tpa_recv(server, block, sizeof block, 0)) > 0; got += (size_t)part)
            for (ssize_t i = 0; i < part; i++) CHECK(block[i] == expected++);
        CHECK(errno == EAGAIN);
    }
    /* One direction ends, the other goes on. */
    CHECK(tpa_shutdown(client, SHUT_WR) == 0);
    FAILS(tpa_send(client, &byte, 1, 0), EPIPE);
    for (;;) {
        CHECK(is_ready(comes, 20000));
        ssize_t part = tpa_recv(server, block, sizeof block, 0);
        if (part == 0) break;
        CHECK(part > 0 || errno == EAGAIN);
        for (ssize_t i = 0; i < part; i++) CHECK(block[i] == expected++);
        if (part > 0) got += (size_t)part;
    }
    CHECK(got == sent);
    CHECK(tpa_send(server, "and back", 8, 0) == 8 && is_ready(reads, 20000));
    CHECK(tpa_recv(client, block, sizeof block, 0) == 8 && !memcmp(block, "and back", 8) && !is_ready(reads, 0));
    CHECK(number(client, TPA_HOPS) == 1);
    /* Nothing waits for a block to fill. The paper's rule takes 200 ms for each question and its answer: the shortest of ten shows what a
     * busy machine adds to the others. */
    double shortest = 1e9;
    CHECK(number(client, TPA_NODELAY) == 1 && number(server, TPA_NODELAY) == 1);
    set(client, TPA_NONBLOCK, 0);
    set(server, TPA_NONBLOCK, 0);
    for (int i = 0; i < 10; i++) {
        double since = seconds();
        CHECK(tpa_send(server, "a head, ", 8, 0) == 8 && tpa_send(server, "a body. ", 8, 0) == 8);
        for (ssize_t all = 0, part; all < 16; all += part) CHECK((part = tpa_recv(client, block, sizeof block, 0)) > 0);
        if (seconds() - since < shortest) shortest = seconds() - since;
    }
    CHECK(shortest < 0.1);
    /* It can: then what is sent waits until it is flushed. Accepted sockets take it from the listening one. */
    set(server, TPA_NODELAY, 0);
    CHECK(number(server, TPA_NODELAY) == 0 && tpa_send(server, "flushed!", 8, 0) == 8 && tpa_flush(server) == 0);
    CHECK(tpa_recv(client, block, sizeof block, 0) == 8 && !memcmp(block, "flushed!", 8));
    FAILS(tpa_flush(listener), ENOTCONN);
    inherits(&address, listener);
    /* A time-out, and an end that comes while nobody waits. */
    struct timeval waits = {.tv_usec = 50000};
    set(client, TPA_NONBLOCK, 0);
    CHECK(tpa_setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &waits, sizeof waits) == 0);
    FAILS(tpa_recv(client, &byte, 1, 0), EAGAIN);
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    CHECK(tpa_setsockopt(server, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0);
    CHECK(tpa_close(server) == 0 && is_ready(reads, 20000));
    FAILS(tpa_recv(client, &byte, 1, 0), ECONNRESET);
    length = sizeof error;
    CHECK(tpa_getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == ECONNRESET);
    /* What the client had to say had arrived before. */
    CHECK(tpa_close(client) == 0);
    CHECK(tpa_close(listener) == 0);
    puts("done");
    return 0;
}
