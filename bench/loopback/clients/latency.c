/* Questions and answers over TPA in C, for `latency`: `latency one|two COUNT` prints the milliseconds per question. It prints nothing for
 * `http`.
 *
 *   ../../crates/capi/install PREFIX
 *   PKG_CONFIG_PATH=PREFIX/lib/pkgconfig cc -O2 clients/latency.c $(pkg-config --cflags --libs meshpace) -lpthread -Wl,-rpath,PREFIX/lib -o latency */
#include <arpa/inet.h>
#include <meshpace.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int listener;
static size_t asked;

static void check(int holds, const char *what) {
    if (!holds) {
        perror(what);
        exit(1);
    }
}

/* Receives so many bytes. Returns 0 at the end of the stream. */
static int receive(int socket, size_t length) {
    char block[16];
    for (size_t got = 0; got < length;) {
        ssize_t part = tpa_recv(socket, block, length - got, 0);
        check(part >= 0, "tpa_recv");
        if (part == 0) return 0;
        got += (size_t)part;
    }
    return 1;
}

static void *answer(void *unused) {
    int socket = tpa_accept(listener, NULL, NULL);
    check(socket >= 0, "tpa_accept");
    while (receive(socket, asked)) check(tpa_send(socket, "answered", 8, 0) == 8, "tpa_send");
    tpa_close(socket);
    return unused;
}

static double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    if (!strcmp(arguments[1], "http")) return 0;
    int writes = strcmp(arguments[1], "two") ? 1 : 2, questions = atoi(arguments[2]);
    asked = 8 * (size_t)writes;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    listener = tpa_socket();
    check(!tpa_bind(listener, (struct sockaddr *)&address, sizeof address), "tpa_bind");
    check(!tpa_listen(listener, 1), "tpa_listen");
    check(!tpa_getsockname(listener, (struct sockaddr *)&address, &length), "tpa_getsockname");
    pthread_t answers;
    check(!pthread_create(&answers, NULL, answer, NULL), "pthread_create");
    int client = tpa_socket();
    check(!tpa_connect(client, (struct sockaddr *)&address, sizeof address), "tpa_connect");
    double start = milliseconds();
    for (int i = 0; i < questions; i++) {
        for (int j = 0; j < writes; j++) check(tpa_send(client, "question", 8, 0) == 8, "tpa_send");
        check(receive(client, 8), "the peer has closed");
    }
    printf("%.6f\n", (milliseconds() - start) / questions);
    tpa_close(client);
    pthread_join(answers, NULL);
    return 0;
}
