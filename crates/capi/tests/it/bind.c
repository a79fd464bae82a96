/* Sockets are made, bound, set to listen, and closed: for a look at what the library does with memory. */
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <meshpace.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    for (int round = 0; round < 3; round++) {
        int s = tpa_socket();
        /* What stands in sin_zero is nobody's business. */
        struct sockaddr_in address;
        address.sin_family = AF_INET;
        address.sin_port = 0;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        CHECK(tpa_bind(s, (struct sockaddr *)&address, sizeof address) == 0);
        CHECK(tpa_bind(s, (struct sockaddr *)&address, sizeof address) == -1 && errno == EINVAL);
        CHECK(tpa_listen(s, 0) == 0);
        CHECK(tpa_close(s) == 0);
        CHECK(tpa_close(s) == -1 && errno == EBADF);
    }
    puts("done");
    return 0;
}
