/* The hub of examples/hub.rs in C: it gives two peers different rights by their keys. One may write a notice, both may read it.
 *
 *   crates/capi/install /usr/local
 *   cc hub.c $(pkg-config --cflags --libs meshpace) -o hub
 *   ./hub 4000 hub.key WRITER READER
 *
 * hub.key is a file with the private key, 64 hexadecimal digits; WRITER and READER are public keys. A connection carries one request, a
 * line: "put TEXT" or "get". */
#include <arpa/inet.h>
#include <meshpace.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *what) {
    perror(what);
    return 1;
}

/* 32 bytes of 64 hexadecimal digits. */
static int parse(const char *digits, unsigned char key[32]) {
    for (int i = 0; i < 32; i++)
        if (sscanf(digits + 2 * i, "%2hhx", &key[i]) != 1) return -1;
    return 0;
}

/* One line, without its end; -1 if none comes. */
static int receive_line(int peer, char *line, size_t room) {
    size_t length = 0;
    for (;;) {
        ssize_t got = tpa_recv(peer, line + length, room - 1 - length, 0);
        if (got <= 0) return -1;
        length += (size_t)got;
        line[length] = 0;
        char *end = strchr(line, '\n');
        if (end) {
            *end = 0;
            return 0;
        }
    }
}

/* Answers one request. The peer has proved that it holds its key before the connection was open. */
static void serve(int peer, const unsigned char writer[32], char notice[1000]) {
    unsigned char key[32];
    char line[1000], answer[1002];
    socklen_t length = sizeof key;
    if (tpa_getsockopt(peer, SOL_TPA, TPA_PEER_KEY, key, &length) || receive_line(peer, line, sizeof line)) return;
    int may_write = !memcmp(key, writer, sizeof key);
    if (!strncmp(line, "put ", 4)) {
        if (may_write) strcpy(notice, line + 4);
        strcpy(answer, may_write ? "done\n" : "denied\n");
    } else {
        snprintf(answer, sizeof answer, "%s\n", notice);
    }
    tpa_send(peer, answer, strlen(answer), 0);
}

int main(int count, char **arguments) {
    unsigned char peers[64];
    char own[65] = "", notice[1000] = "";
    FILE *file = count == 5 ? fopen(arguments[2], "r") : NULL;
    if (!file || !fgets(own, sizeof own, file) || parse(arguments[3], peers) || parse(arguments[4], peers + 32)) {
        fprintf(stderr, "usage: %s PORT KEY_FILE WRITER READER\n", arguments[0]);
        return 2;
    }
    fclose(file);
    int hub = tpa_socket();
    struct sockaddr_in all = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(arguments[1]))};
    if (tpa_setsockopt(hub, SOL_TPA, TPA_KEY, own, strlen(own))) return fail("TPA_KEY");
    /* Nobody else can connect. While the hub listens, the list can be set again. */
    if (tpa_setsockopt(hub, SOL_TPA, TPA_PEERS, peers, sizeof peers)) return fail("TPA_PEERS");
    if (tpa_bind(hub, (struct sockaddr *)&all, sizeof all)) return fail("tpa_bind");
    if (tpa_listen(hub, 16)) return fail("tpa_listen");
    puts("listening");
    fflush(stdout);
    for (;;) {
        int peer = tpa_accept(hub, NULL, NULL);
        if (peer < 0) return fail("tpa_accept");
        serve(peer, peers, notice);
        tpa_close(peer);
    }
}
