/*
 * Makes a program's kernel delay its acknowledgements as RFC 1122 has it: after a loss Linux acknowledges the next 16 segments one by
 * one (quick ACKs), which no sysctl and no route turns off; the socket option does, until the next loss.
 *
 *     cc -shared -fPIC -O2 -o delay_acks.so delay_acks.c -ldl        LD_PRELOAD=./delay_acks.so iperf3 -s
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

ssize_t read(int descriptor, void *to, size_t most)
{
	static ssize_t (*kernels)(int, void *, size_t);
	int off = 0, before;
	ssize_t got;

	if (!kernels)
		kernels = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	got = kernels(descriptor, to, most);
	before = errno;
	/* Refused by what is no TCP socket. */
	setsockopt(descriptor, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off));
	errno = before;
	return got;
}
