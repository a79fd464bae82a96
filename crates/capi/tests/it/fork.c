/* Children made by fork while a transfer goes on: for a socket of the parent every function returns EBADF, a child has sockets of its own,
 * and the parent's bytes arrive whole. fork PORT CHILDREN */
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <meshpace.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define EBADF_BY(call) \
    do { \
        errno = 0; \
        CHECK((call) == -1 && errno == EBADF); \
    } while (0)

/* A socket of the parent in each of its states. */
enum { FRESH, BOUND, LISTENING, CONNECTED, ACCEPTED, STATES };

static int sockets[STATES];
static int descriptors[3];
static atomic_int stops;
static atomic_ullong sent;

static struct sockaddr_in loopback(unsigned short port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static int listening(unsigned short port) {
    struct sockaddr_in address = loopback(port);
    int listener = tpa_socket();
    CHECK(listener >= 0);
    /* Whoever had the port closes it in a thread, soon after tpa_close. */
    while (tpa_bind(listener, (struct sockaddr *)&address, sizeof address)) {
        CHECK(errno == EADDRINUSE);
        usleep(20000);
    }
    CHECK(tpa_listen(listener, 5) == 0);
    return listener;
}

static int connected(unsigned short port) {
    struct sockaddr_in address = loopback(port);
    int client = tpa_socket();
    CHECK(client >= 0 && tpa_connect(client, (struct sockaddr *)&address, sizeof address) == 0);
    return client;
}

/* Every function of the header but tpa_socket. */
static void is_no_socket(int socket) {
    struct sockaddr_in address = loopback(9);
    struct timeval waits = {.tv_sec = 1};
    int one = 1;
    socklen_t length = sizeof address;
    unsigned char byte = 0;
    EBADF_BY(tpa_bind(socket, (struct sockaddr *)&address, sizeof address));
    EBADF_BY(tpa_connect(socket, (struct sockaddr *)&address, sizeof address));
    EBADF_BY(tpa_listen(socket, 1));
    EBADF_BY(tpa_accept(socket, NULL, NULL));
    EBADF_BY(tpa_accept(socket, (struct sockaddr *)&address, &length));
    EBADF_BY(tpa_send(socket, &byte, 1, 0));
    EBADF_BY(tpa_send(socket, &byte, 0, 0));
    EBADF_BY(tpa_send(socket, &byte, 1, MSG_DONTWAIT));
    EBADF_BY(tpa_recv(socket, &byte, 1, 0));
    EBADF_BY(tpa_recv(socket, &byte, 1, MSG_DONTWAIT));
    EBADF_BY(tpa_shutdown(socket, SHUT_RDWR));
    EBADF_BY(tpa_pollfd(socket, POLLIN));
    EBADF_BY(tpa_pollfd(socket, POLLOUT));
    EBADF_BY(tpa_setsockopt(socket, SOL_TPA, TPA_NONBLOCK, &one, sizeof one));
    EBADF_BY(tpa_setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &waits, sizeof waits));
    length = sizeof one;
    EBADF_BY(tpa_getsockopt(socket, SOL_TPA, TPA_UNACKNOWLEDGED, &one, &length));
    EBADF_BY(tpa_getsockopt(socket, SOL_SOCKET, SO_ERROR, &one, &length));
    EBADF_BY(tpa_close(socket));
    EBADF_BY(tpa_close(socket));
}

static void parents_are_no_sockets(void) {
    for (int state = 0; state < STATES; state++) is_no_socket(sockets[state]);
}

/* A connection of this process with itself, on a port of its own. */
static void exchanges(unsigned short port) {
    int listener = listening(port), client = connected(port), server = tpa_accept(listener, NULL, NULL);
    CHECK(server >= 0);
    for (int state = 0; state < STATES; state++)
        CHECK(listener != sockets[state] && client != sockets[state] && server != sockets[state]);
    char there[] = "there", back[sizeof there];
    CHECK(tpa_send(client, there, sizeof there, 0) == sizeof there);
    for (size_t got = 0; got < sizeof back;) {
        ssize_t part = tpa_recv(server, back + got, sizeof back - got, 0);
        CHECK(part > 0);
        got += (size_t)part;
    }
    CHECK(!strcmp(there, back));
    /* It has children, too. */
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(300);
        is_no_socket(client), is_no_socket(server), is_no_socket(listener);
        parents_are_no_sockets();
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(tpa_shutdown(client, SHUT_WR) == 0 && tpa_recv(server, back, sizeof back, 0) == 0);
    CHECK(tpa_shutdown(server, SHUT_WR) == 0 && tpa_close(client) == 0 && tpa_close(server) == 0 && tpa_close(listener) == 0);
}

static unsigned char byte_at(unsigned long long place) { return (unsigned char)(place * 7 + place / 251); }

static void *send_until_told(void *unused) {
    unsigned char block[5000];
    unsigned long long place = 0;
    while (!atomic_load(&stops)) {
        for (size_t i = 0; i < sizeof block; i++) block[i] = byte_at(place + i);
        ssize_t part = tpa_send(sockets[CONNECTED], block, sizeof block, 0);
        CHECK(part > 0);
        place += (unsigned long long)part;
    }
    CHECK(tpa_shutdown(sockets[CONNECTED], SHUT_WR) == 0);
    atomic_store(&sent, place);
    return unused;
}

static void *receive_all(void *unused) {
    unsigned char block[7000];
    unsigned long long place = 0;
    for (;;) {
        ssize_t part = tpa_recv(sockets[ACCEPTED], block, sizeof block, 0);
        CHECK(part >= 0);
        if (part == 0) break;
        for (ssize_t i = 0; i < part; i++) CHECK(block[i] == byte_at(place++));
    }
    CHECK(tpa_shutdown(sockets[ACCEPTED], SHUT_WR) == 0);
    /* The sender says how many there were only after it has told the end. */
    while (!atomic_load(&sent)) usleep(1000);
    CHECK(place == atomic_load(&sent));
    return unused;
}

static int ready[2];

static pid_t child_that(void (*work)(void), void (*end)(int)) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child > 0) return child;
    /* A child that waits for a lock for ever is ended, and none outlives a parent that fails. */
    alarm(300);
    CHECK(close(ready[1]) == 0);
    for (int i = 0; i < 3; i++) CHECK(fcntl(descriptors[i], F_GETFD) == -1 && errno == EBADF);
    work();
    end(0);
    abort();
}

static unsigned short port;

/* Once the parent has closed its ports, nobody has them. */
static void takes_the_ports(void) {
    parents_are_no_sockets();
    char byte;
    CHECK(read(ready[0], &byte, 1) == 1);
    exchanges(port);
}

static void has_its_own(void) {
    exchanges(0 + port + 1);
    parents_are_no_sockets();
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    alarm(600);
    port = (unsigned short)atoi(arguments[1]);
    struct sockaddr_in any = loopback(0);
    int idle = 4711;
    sockets[FRESH] = tpa_socket(), sockets[BOUND] = tpa_socket();
    CHECK(tpa_setsockopt(sockets[FRESH], SOL_TPA, TPA_IDLE, &idle, sizeof idle) == 0);
    CHECK(tpa_bind(sockets[BOUND], (struct sockaddr *)&any, sizeof any) == 0);
    sockets[LISTENING] = listening(port), sockets[CONNECTED] = connected(port);
    sockets[ACCEPTED] = tpa_accept(sockets[LISTENING], NULL, NULL);
    CHECK(sockets[ACCEPTED] >= 0);
    descriptors[0] = tpa_pollfd(sockets[LISTENING], POLLIN);
    descriptors[1] = tpa_pollfd(sockets[CONNECTED], POLLIN), descriptors[2] = tpa_pollfd(sockets[ACCEPTED], POLLOUT);
    CHECK(descriptors[0] >= 0 && descriptors[1] >= 0 && descriptors[2] >= 0 && pipe(ready) == 0);
    pthread_t sender, receiver;
    CHECK(pthread_create(&sender, NULL, send_until_told, NULL) == 0);
    CHECK(pthread_create(&receiver, NULL, receive_all, NULL) == 0);
    pid_t last = child_that(takes_the_ports, _exit);
    /* Some are made while a thread of the parent holds a lock. */
    for (int i = 0; i < atoi(arguments[2]); i++) {
        pid_t child = child_that(i % 10 ? parents_are_no_sockets : has_its_own, i % 2 ? _exit : exit);
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    atomic_store(&stops, 1);
    CHECK(pthread_join(sender, NULL) == 0 && pthread_join(receiver, NULL) == 0);
    socklen_t length = sizeof idle;
    idle = 0;
    CHECK(tpa_getsockopt(sockets[FRESH], SOL_TPA, TPA_IDLE, &idle, &length) == 0 && idle == 4711);
    for (int state = STATES - 1; state >= 0; state--) CHECK(tpa_close(sockets[state]) == 0);
    int status = -1;
    CHECK(write(ready[1], "x", 1) == 1 && waitpid(last, &status, 0) == last && status == 0);
    printf("%llu bytes arrived\ndone\n", atomic_load(&sent));
    return 0;
}
