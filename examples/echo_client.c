/* The client of the echo, in C: examples/echo.rs is the server.
 *
 *   crates/capi/install /usr/local
 *   cc echo_client.c $(pkg-config --cflags --libs meshpace) -o echo_client
 *   ./echo_client 10.0.0.7 4000 "over the hills"
 *
 * It sends and receives at the same time on one thread: two descriptors tell when there is something to do. */
#include <arpa/inet.h>
#include <errno.h>
#include <meshpace.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what) {
    perror(what);
    return 1;
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: %s ADDRESS PORT TEXT\n", arguments[0]);
        return 2;
    }
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(arguments[2]))};
    if (inet_pton(AF_INET, arguments[1], &to.sin_addr) != 1) {
        fprintf(stderr, "%s is no address\n", arguments[1]);
        return 2;
    }
    int stream = tpa_socket(), patience = 10000;
    if (tpa_setsockopt(stream, SOL_TPA, TPA_CONNECT_TIMEOUT, &patience, sizeof patience)) return fail("tpa_setsockopt");
    if (tpa_connect(stream, (struct sockaddr *)&to, sizeof to)) return fail("tpa_connect");
    const char *text = arguments[3];
    size_t left = strlen(text);
    /* poll reports either as readable when its call would not wait. A negative one is left out. */
    struct pollfd ready[2] = {{tpa_pollfd(stream, POLLIN), POLLIN, 0}, {tpa_pollfd(stream, POLLOUT), POLLIN, 0}};
    for (;;) {
        if (poll(ready, 2, -1) < 0) return fail("poll");
        if (ready[1].revents) {
            ssize_t part = tpa_send(stream, text, left, MSG_DONTWAIT);
            if (part < 0 && errno != EAGAIN) return fail("tpa_send");
            if (part > 0) text += part, left -= (size_t)part;
            /* The server then ends its direction when it has said everything. */
            if (left == 0) {
                if (tpa_shutdown(stream, SHUT_WR)) return fail("tpa_shutdown");
                ready[1].fd = -1;
            }
        }
        if (ready[0].revents) {
            char buffer[8192];
            ssize_t part = tpa_recv(stream, buffer, sizeof buffer, MSG_DONTWAIT);
            if (part < 0 && errno != EAGAIN) return fail("tpa_recv");
            if (part == 0) break;
            if (part > 0) fwrite(buffer, 1, (size_t)part, stdout);
        }
    }
    putchar('\n');
    return tpa_close(stream) == 0 ? 0 : 1;
}
