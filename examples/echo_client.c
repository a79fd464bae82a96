/* The client of the echo, in C: examples/echo.rs is the server.
 *
 *   crates/capi/install /usr/local
 *   cc echo_client.c $(pkg-config --cflags --libs meshpace) -o echo_client
 *   ./echo_client 10.0.0.7 4000 "over the hills" */
#include <arpa/inet.h>
#include <meshpace.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    int stream = tpa_socket();
    if (stream < 0 || tpa_connect(stream, (struct sockaddr *)&to, sizeof to) != 0) {
        perror("tpa_connect");
        return 1;
    }
    size_t length = strlen(arguments[3]);
    for (size_t sent = 0; sent < length;) {
        ssize_t part = tpa_send(stream, arguments[3] + sent, length - sent, 0);
        if (part < 0) {
            perror("tpa_send");
            return 1;
        }
        sent += (size_t)part;
    }
    /* The server returns as many bytes as it got. */
    for (size_t got = 0; got < length;) {
        char buffer[8192];
        ssize_t part = tpa_recv(stream, buffer, sizeof buffer, 0);
        if (part <= 0) {
            perror("tpa_recv");
            return 1;
        }
        fwrite(buffer, 1, (size_t)part, stdout);
        got += (size_t)part;
    }
    putchar('\n');
    return tpa_close(stream) == 0 ? 0 : 1;
}
