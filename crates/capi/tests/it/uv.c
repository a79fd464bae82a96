/* A server and its clients on one loop of libuv: `uv PORT CLIENTS BYTES`. Each client sends so many bytes, which the server sends
 * back, and both ends close by halves. Nothing waits but the loop, which watches the descriptors of `tpa_pollfd`. */
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <meshpace.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

/* One end of a connection. */
struct end {
    int socket;
    /* Client or server: only a client makes the bytes up, and only it checks them. */
    int is_client;
    uv_poll_t reads, writes;
    /* Handles that libuv has not closed yet. */
    int handles;
    size_t sent, received;
    /* A server keeps what it has not sent back yet. */
    unsigned char kept[8192];
    size_t first, last;
    int has_ended;
};

static size_t bytes;
static int open_ends, finished_clients;

static unsigned char byte_at(size_t offset) { return (unsigned char)(offset * 7 % 251); }

static void on_closed(uv_handle_t *handle) {
    struct end *end = handle->data;
    if (--end->handles == 0) {
        CHECK(tpa_close(end->socket) == 0);
        free(end);
        open_ends--;
    }
}

static void stop(struct end *end) {
    uv_close((uv_handle_t *)&end->reads, on_closed);
    uv_close((uv_handle_t *)&end->writes, on_closed);
}

static void on_readable(uv_poll_t *handle, int status, int events);
static void on_writable(uv_poll_t *handle, int status, int events);

static void watch_reading(struct end *end) { CHECK(uv_poll_start(&end->reads, UV_READABLE, on_readable) == 0); }

/* The descriptor for sending is also shown as readable. */
static void watch_writing(struct end *end) { CHECK(uv_poll_start(&end->writes, UV_READABLE, on_writable) == 0); }

static void client_reads(struct end *end) {
    unsigned char block[5000];
    ssize_t part = tpa_recv(end->socket, block, sizeof block, 0);
    if (part < 0) {
        CHECK(errno == EAGAIN);
        return;
    }
    for (ssize_t i = 0; i < part; i++) CHECK(block[i] == byte_at(end->received + (size_t)i));
    end->received += (size_t)part;
    if (part == 0) {
        CHECK(end->received == bytes && end->sent == bytes);
        finished_clients++;
        stop(end);
    }
}

static void server_reads(struct end *end) {
    ssize_t part = tpa_recv(end->socket, end->kept, sizeof end->kept, 0);
    if (part < 0) {
        CHECK(errno == EAGAIN);
        return;
    }
    end->first = 0, end->last = (size_t)part, end->has_ended = part == 0;
    /* What was read is sent back first. */
    CHECK(uv_poll_stop(&end->reads) == 0);
    watch_writing(end);
}

static void on_readable(uv_poll_t *handle, int status, int events) {
    struct end *end = handle->data;
    CHECK(status == 0 && events == UV_READABLE);
    if (end->is_client)
        client_reads(end);
    else
        server_reads(end);
}

static void client_writes(struct end *end) {
    unsigned char block[3000];
    size_t length = bytes - end->sent < sizeof block ? bytes - end->sent : sizeof block;
    for (size_t i = 0; i < length; i++) block[i] = byte_at(end->sent + i);
    ssize_t part = tpa_send(end->socket, block, length, 0);
    CHECK(part > 0 || errno == EAGAIN);
    if (part > 0) end->sent += (size_t)part;
    if (end->sent == bytes) {
        CHECK(tpa_shutdown(end->socket, SHUT_WR) == 0);
        CHECK(uv_poll_stop(&end->writes) == 0);
    }
}

static void server_writes(struct end *end) {
    if (end->has_ended) {
        CHECK(tpa_shutdown(end->socket, SHUT_WR) == 0);
        stop(end);
        return;
    }
    ssize_t part = tpa_send(end->socket, end->kept + end->first, end->last - end->first, 0);
    CHECK(part > 0 || errno == EAGAIN);
    if (part > 0) end->first += (size_t)part;
    if (end->first == end->last) {
        CHECK(uv_poll_stop(&end->writes) == 0);
        watch_reading(end);
    }
}

static void on_writable(uv_poll_t *handle, int status, int events) {
    struct end *end = handle->data;
    CHECK(status == 0 && events == UV_READABLE);
    if (end->is_client)
        client_writes(end);
    else
        server_writes(end);
}

static void start(uv_loop_t *loop, int socket, int is_client) {
    struct end *end = calloc(1, sizeof *end);
    CHECK(end != NULL);
    end->socket = socket, end->is_client = is_client, end->handles = 2;
    int reads = tpa_pollfd(socket, POLLIN), writes = tpa_pollfd(socket, POLLOUT);
    CHECK(reads >= 0 && writes >= 0);
    CHECK(uv_poll_init(loop, &end->reads, reads) == 0 && uv_poll_init(loop, &end->writes, writes) == 0);
    end->reads.data = end->writes.data = end;
    open_ends++;
    watch_reading(end);
    if (is_client) watch_writing(end);
}

static void set(int socket, int option, int value) {
    CHECK(tpa_setsockopt(socket, SOL_TPA, option, &value, sizeof value) == 0);
}

/* The listener, its watcher, and how many connections are still to come. */
static int listener, expected;

static void on_connection(uv_poll_t *handle, int status, int events) {
    CHECK(status == 0 && events == UV_READABLE);
    int socket = tpa_accept(listener, NULL, NULL);
    if (socket < 0) {
        CHECK(errno == EAGAIN);
        return;
    }
    set(socket, TPA_NONBLOCK, 1);
    start(handle->loop, socket, 0);
    if (--expected == 0) uv_close((uv_handle_t *)handle, NULL);
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(arguments[1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int clients = expected = atoi(arguments[2]);
    bytes = (size_t)atol(arguments[3]);
    uv_loop_t loop;
    CHECK(uv_loop_init(&loop) == 0);
    listener = tpa_socket();
    CHECK(tpa_bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && tpa_listen(listener, clients) == 0);
    set(listener, TPA_NONBLOCK, 1);
    uv_poll_t arrives;
    CHECK(uv_poll_init(&loop, &arrives, tpa_pollfd(listener, POLLIN)) == 0);
    CHECK(uv_poll_start(&arrives, UV_READABLE, on_connection) == 0);
    for (int i = 0; i < clients; i++) {
        int socket = tpa_socket();
        set(socket, TPA_NONBLOCK, 1);
        CHECK(tpa_connect(socket, (struct sockaddr *)&address, sizeof address) == -1 && errno == EINPROGRESS);
        start(&loop, socket, 1);
    }
    /* Returns when no handle is left. */
    CHECK(uv_run(&loop, UV_RUN_DEFAULT) == 0 && uv_loop_close(&loop) == 0);
    CHECK(finished_clients == clients && open_ends == 0);
    CHECK(tpa_close(listener) == 0);
    puts("done");
    return 0;
}
