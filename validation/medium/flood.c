/* Saturates a path with UDP, or counts what comes out of it.
 *
 *   flood send ADDRESS BYTES SECONDS       datagrams of BYTES as fast as the socket takes them; it waits while its buffer is full
 *   flood count START END                  payload bytes by sender, from START to END seconds after the call: bit/s of each on standard output
 *
 * Built by `guest` with gcc -O2 -static. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define PORT 7000
#define SENDERS 256

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static char bytes[65536];
	static double total[SENDERS];
	double began = now();
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	if (argc == 5 && !strcmp(argv[1], "send")) {
		double seconds = atof(argv[4]);
		size_t length = atoi(argv[3]);
		if (inet_pton(AF_INET, argv[2], &address.sin_addr) != 1 || length > sizeof(bytes))
			return 2;
		while (now() - began < seconds)
			sendto(s, bytes, length, 0, (void *)&address, sizeof(address));
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "count")) {
		double start = atof(argv[2]), end = atof(argv[3]);
		struct timeval patience = { .tv_usec = 100000 };
		setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		if (bind(s, (void *)&address, sizeof(address)) < 0) {
			perror("bind");
			return 1;
		}
		while (now() - began < end) {
			struct sockaddr_in from;
			socklen_t size = sizeof(from);
			ssize_t got = recvfrom(s, bytes, sizeof(bytes), 0, (void *)&from, &size);
			double at = now() - began;
			if (got > 0 && at >= start && at < end)
				total[ntohl(from.sin_addr.s_addr) % SENDERS] += got;
		}
		for (int sender = 0; sender < SENDERS; sender++)
			if (total[sender])
				printf("goodput of 10.0.0.%d: %.0f bit/s\n", sender, total[sender] * 8 / (end - start));
		return 0;
	}
	fprintf(stderr, "usage: flood send ADDRESS BYTES SECONDS | flood count START END\n");
	return 2;
}
