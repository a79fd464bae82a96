/* Connects, sends so many bytes, and returns from main without closing: leave PORT BYTES LINGER. Waits for nobody to read. */
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <meshpace.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments) {
    if (count != 4) return 2;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(arguments[1]))};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int socket = tpa_socket();
    struct linger linger = {.l_onoff = 1, .l_linger = atoi(arguments[3])};
    CHECK(tpa_connect(socket, (struct sockaddr *)&to, sizeof to) == 0);
    CHECK(tpa_setsockopt(socket, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    static char bytes[3000000];
    ssize_t sent = tpa_send(socket, bytes, (size_t)atoi(arguments[2]), MSG_DONTWAIT);
    printf("%zd\n", sent);
    return 0;
}
