/* The manners of kernel sockets: signals, what a blocking send takes, names, and sentences about failures. */
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <meshpace.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define FAILS(call, error) CHECK((call) == -1 && errno == (error))
#define MUCH 5000000

static volatile sig_atomic_t stop, handled;
static char much[MUCH];

static void count_signal(int number) {
    (void)number;
    handled++;
}

static void handle(int flags) {
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = flags};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
}

/* Sends a thread a signal every 20 ms until it is stopped: one that comes just before a call waits is too early for it. */
static void *shake(void *whom) {
    while (!stop) {
        usleep(20000);
        pthread_kill(*(pthread_t *)whom, SIGUSR1);
    }
    return NULL;
}

static struct sockaddr_in loopback(int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

static void pair(int listener, const struct sockaddr_in *at, int *client, int *server) {
    *client = tpa_socket();
    CHECK(tpa_connect(*client, (const struct sockaddr *)at, sizeof *at) == 0);
    *server = tpa_accept(listener, NULL, NULL);
    CHECK(*server >= 0);
}

static void *receive_all(void *socket) {
    static char part[30000];
    size_t all = 0;
    for (ssize_t got; (got = tpa_recv(*(int *)socket, part, sizeof part, 0)) > 0; all += (size_t)got) usleep(100);
    CHECK(all == MUCH);
    return NULL;
}

static void *send_later(void *socket) {
    usleep(500000);
    CHECK(tpa_send(*(int *)socket, "yes", 3, 0) == 3);
    return NULL;
}

static void *receive_until_closed(void *socket) {
    char byte;
    CHECK(tpa_recv(*(int *)socket, &byte, 1, 0) == -1 && errno == EBADF);
    return NULL;
}

/* A handler without SA_RESTART ends each call that waits. */
static void interrupted(int listener, const struct sockaddr_in *at) {
    pthread_t own = pthread_self(), shaker;
    int client, server, silent = socket(AF_INET, SOCK_DGRAM, 0), opening = tpa_socket();
    struct sockaddr_in nobody = loopback(0);
    socklen_t length = sizeof nobody;
    pair(listener, at, &client, &server);
    CHECK(bind(silent, (struct sockaddr *)&nobody, length) == 0);
    CHECK(getsockname(silent, (struct sockaddr *)&nobody, &length) == 0);
    handle(0);
    stop = 0;
    CHECK(pthread_create(&shaker, NULL, shake, &own) == 0);
    char byte;
    FAILS(tpa_recv(client, &byte, 1, 0), EINTR);
    FAILS(tpa_accept(listener, NULL, NULL), EINTR);
    FAILS(tpa_connect(opening, (struct sockaddr *)&nobody, sizeof nobody), EINTR);
    FAILS(tpa_connect(opening, (struct sockaddr *)&nobody, sizeof nobody), EALREADY);
    /* Nobody reads: what was taken before a signal came is told, and then that one came. */
    ssize_t sent = tpa_send(client, much, MUCH, 0);
    CHECK(sent > 0 && sent < MUCH);
    while (sent > 0) sent = tpa_send(client, much, MUCH, 0);
    CHECK(sent == -1 && errno == EINTR);
    stop = 1;
    pthread_join(shaker, NULL);
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    CHECK(tpa_setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0);
    CHECK(tpa_close(client) == 0);
    /* It has not read everything, and the connection was reset. */
    tpa_close(server);
    tpa_close(opening);
    close(silent);
}

/* One with SA_RESTART ends none, unless the call has a timeout. */
static void restarted(int listener, const struct sockaddr_in *at) {
    pthread_t own = pthread_self(), shaker, other;
    int client, server;
    char text[3];
    pair(listener, at, &client, &server);
    handle(SA_RESTART);
    stop = handled = 0;
    CHECK(pthread_create(&shaker, NULL, shake, &own) == 0 && pthread_create(&other, NULL, send_later, &server) == 0);
    CHECK(tpa_recv(client, text, 3, 0) > 0 && handled > 0);
    pthread_join(other, NULL);
    struct timeval long_time = {.tv_sec = 60};
    CHECK(tpa_setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof long_time) == 0);
    for (ssize_t got; (got = tpa_recv(client, text, 3, 0)) != -1;) CHECK(got > 0);
    CHECK(errno == EINTR);
    /* A blocking send takes all. */
    CHECK(pthread_create(&other, NULL, receive_all, &server) == 0);
    CHECK(tpa_send(client, much, MUCH, 0) == MUCH);
    CHECK(tpa_close(client) == 0);
    pthread_join(other, NULL);
    CHECK(tpa_close(server) == 0);
    stop = 1;
    pthread_join(shaker, NULL);
}

/* A time-out ends a send that nobody reads, and another thread's close ends a call that waits. */
static void ended(int listener, const struct sockaddr_in *at) {
    int client, server;
    pthread_t other;
    pair(listener, at, &client, &server);
    struct timeval short_time = {.tv_usec = 100000};
    CHECK(tpa_setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &short_time, sizeof short_time) == 0);
    ssize_t sent = tpa_send(client, much, MUCH, 0);
    CHECK(sent > 0 && sent < MUCH);
    while (sent > 0) sent = tpa_send(client, much, MUCH, 0);
    CHECK(sent == -1 && errno == EAGAIN);
    CHECK(pthread_create(&other, NULL, receive_until_closed, &client) == 0);
    usleep(100000);
    struct linger reset = {.l_onoff = 1, .l_linger = 1};
    CHECK(tpa_setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0);
    FAILS(tpa_close(client), ETIMEDOUT);
    pthread_join(other, NULL);
    tpa_close(server);
}

static void names(int listener, const struct sockaddr_in *at, const char *version) {
    int client, server, fresh = tpa_socket();
    struct sockaddr_in one, other;
    socklen_t length = sizeof one;
    FAILS(tpa_getsockname(fresh, (struct sockaddr *)&one, &length), EINVAL);
    FAILS(tpa_getpeername(fresh, (struct sockaddr *)&one, &length), ENOTCONN);
    CHECK(strlen(tpa_error()) > 0);
    CHECK(tpa_getsockname(listener, (struct sockaddr *)&one, &length) == 0 && length == sizeof one);
    CHECK(one.sin_port == at->sin_port && one.sin_addr.s_addr == at->sin_addr.s_addr);
    FAILS(tpa_getpeername(listener, (struct sockaddr *)&one, &length), ENOTCONN);
    pair(listener, at, &client, &server);
    CHECK(tpa_getsockname(client, (struct sockaddr *)&one, &length) == 0);
    CHECK(tpa_getpeername(server, (struct sockaddr *)&other, &length) == 0 && other.sin_port == one.sin_port);
    CHECK(tpa_getpeername(client, (struct sockaddr *)&other, &length) == 0 && other.sin_port == at->sin_port);
    CHECK(tpa_close(client) == 0 && tpa_close(server) == 0);
    /* The sentence says more than errno: who refuses. */
    int plain = 1;
    CHECK(tpa_setsockopt(fresh, SOL_TPA, TPA_PLAIN, &plain, sizeof plain) == 0);
    FAILS(tpa_connect(fresh, (const struct sockaddr *)at, sizeof *at), ECONNREFUSED);
    CHECK(strstr(tpa_error(), "127.0.0.1") && strstr(tpa_error(), "it wants encryption"));
    CHECK(!strcmp(tpa_version(), version));
    for (int good = 64; good < 65464; good += 65399) CHECK(tpa_setsockopt(fresh, SOL_TPA, TPA_SEGMENT, &good, sizeof good) == 0);
    for (int bad = 63; bad < 65465; bad += 65401) FAILS(tpa_setsockopt(fresh, SOL_TPA, TPA_SEGMENT, &bad, sizeof bad), EINVAL);
    CHECK(strstr(tpa_error(), "64 to 65463"));
    CHECK(tpa_close(fresh) == 0);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    struct sockaddr_in at = loopback(atoi(arguments[1]));
    int listener = tpa_socket();
    CHECK(tpa_bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && tpa_listen(listener, 5) == 0);
    names(listener, &at, arguments[2]);
    interrupted(listener, &at);
    restarted(listener, &at);
    ended(listener, &at);
    CHECK(tpa_close(listener) == 0);
    puts("done");
    return 0;
}
