/* Whose key the peer of a connection has, and a list of keys that changes while the socket listens. */
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <meshpace.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAILS(call, error) CHECK((call) == -1 && errno == (error))

struct pair {
    unsigned char private[32], public[32];
};

static struct pair make(unsigned char first) {
    struct pair pair;
    socklen_t length = sizeof pair.public;
    for (int i = 0; i < 32; i++) pair.private[i] = (unsigned char)(first + i);
    int s = tpa_socket();
    CHECK(tpa_setsockopt(s, SOL_TPA, TPA_KEY, pair.private, 32) == 0);
    CHECK(tpa_getsockopt(s, SOL_TPA, TPA_PUBLIC_KEY, pair.public, &length) == 0 && length == 32);
    CHECK(tpa_close(s) == 0);
    return pair;
}

static int known(const struct pair *own, const void *peers, socklen_t length) {
    int s = tpa_socket();
    CHECK(tpa_setsockopt(s, SOL_TPA, TPA_KEY, own->private, 32) == 0);
    CHECK(tpa_setsockopt(s, SOL_TPA, TPA_PEERS, peers, length) == 0);
    return s;
}

static int has_key(int socket, const struct pair *pair) {
    unsigned char key[32];
    socklen_t length = sizeof key;
    return tpa_getsockopt(socket, SOL_TPA, TPA_PEER_KEY, key, &length) == 0 && length == 32 && !memcmp(key, pair->public, 32);
}

static int refused(int listener) {
    int count = -1;
    socklen_t length = sizeof count;
    CHECK(tpa_getsockopt(listener, SOL_TPA, TPA_REFUSED_KEYS, &count, &length) == 0);
    return count;
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    struct pair hub = make(1), one = make(50), two = make(100);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(arguments[1]))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = known(&hub, one.public, 32);
    CHECK(tpa_bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && tpa_listen(listener, 5) == 0);
    int first = known(&one, hub.public, 32), second = known(&two, hub.public, 32);
    CHECK(tpa_connect(first, (struct sockaddr *)&at, sizeof at) == 0);
    int of_first = tpa_accept(listener, NULL, NULL);
    CHECK(has_key(first, &hub) && has_key(of_first, &one));
    FAILS(tpa_connect(second, (struct sockaddr *)&at, sizeof at), ECONNREFUSED);
    CHECK(refused(listener) == 1);
    /* From now on the other one; what is open stays open. */
    CHECK(tpa_setsockopt(listener, SOL_TPA, TPA_PEERS, two.public, 32) == 0);
    CHECK(tpa_connect(second, (struct sockaddr *)&at, sizeof at) == 0);
    int of_second = tpa_accept(listener, NULL, NULL), third = known(&one, hub.public, 32);
    CHECK(has_key(of_second, &two));
    FAILS(tpa_connect(third, (struct sockaddr *)&at, sizeof at), ECONNREFUSED);
    CHECK(refused(listener) == 2);
    char text[5];
    CHECK(tpa_send(first, "still", 5, 0) == 5 && tpa_recv(of_first, text, 5, 0) > 0);
    /* Nobody at all; a key that is none; a socket without keys. */
    CHECK(tpa_setsockopt(listener, SOL_TPA, TPA_PEERS, "", 0) == 0);
    unsigned char zero[32] = {0};
    FAILS(tpa_setsockopt(listener, SOL_TPA, TPA_PEERS, zero, 32), EINVAL);
    FAILS(tpa_connect(third, (struct sockaddr *)&at, sizeof at), ECONNREFUSED);
    socklen_t length = sizeof zero;
    int plain = tpa_socket(), open = tpa_socket();
    FAILS(tpa_getsockopt(plain, SOL_TPA, TPA_PEER_KEY, zero, &length), ENOTCONN);
    at.sin_port = 0;
    CHECK(tpa_bind(plain, (struct sockaddr *)&at, sizeof at) == 0 && tpa_listen(plain, 1) == 0);
    FAILS(tpa_setsockopt(plain, SOL_TPA, TPA_PEERS, one.public, 32), EINVAL);
    at.sin_port = htons((unsigned short)atoi(arguments[1]));
    CHECK(tpa_close(listener) == 0 && tpa_close(of_first) == 0 && tpa_close(of_second) == 0);
    CHECK(tpa_close(first) == 0 && tpa_close(second) == 0);
    /* Without keys there is none to read. */
    CHECK(tpa_bind(open, (struct sockaddr *)&at, sizeof at) == 0 && tpa_listen(open, 1) == 0);
    int client = tpa_socket();
    CHECK(tpa_connect(client, (struct sockaddr *)&at, sizeof at) == 0);
    FAILS(tpa_getsockopt(client, SOL_TPA, TPA_PEER_KEY, zero, &length), ENODATA);
    puts("done");
    return 0;
}
