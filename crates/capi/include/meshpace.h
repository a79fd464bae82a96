/* TPA over UDP, with the manners of the socket functions. Generated: do not edit. */

#ifndef MESHPACE_H
#define MESHPACE_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Creates a TPA socket (TPA, table 15). Returns it, or -1: EMFILE if there are too many.
 */
int tpa_socket(void);

/**
 * Gives a socket a local IPv4 or IPv6 address and UDP port; port 0 is any that is free. Returns 0, or -1: EADDRINUSE if another
 * has it, EADDRNOTAVAIL if the address is not this host's, EAFNOSUPPORT if it is of neither kind, EINVAL if the socket has one.
 *
 * `address` points at `length` readable bytes.
 */
int tpa_bind(int socket,
             const struct sockaddr *address,
             socklen_t length);

/**
 * Connects a socket to an IPv4 or IPv6 address and UDP port and waits until the connection is open. Returns 0, or -1: ECONNREFUSED if
 * nobody listens there, ETIMEDOUT if nobody answers within 30 s, ENETUNREACH or EHOSTUNREACH without a route, EISCONN if the
 * socket is connected, EOPNOTSUPP if it listens.
 *
 * `address` points at `length` readable bytes.
 */
int tpa_connect(int socket,
                const struct sockaddr *address,
                socklen_t length);

/**
 * Has a bound socket accept connections; when `backlog` of them wait (0 or less: 128), further requests are not
 * answered. Returns 0, or -1: EINVAL if the socket is not bound or is connected.
 */
int tpa_listen(int socket,
               int backlog);

/**
 * Waits for a connection request and returns a socket for it, and the peer's address if `address` is not null. -1: EINVAL if
 * the socket does not listen, or EBADF once another thread closes it.
 *
 * `address` is null, or `length` points at a length and `address` at that many writable bytes.
 */
int tpa_accept(int socket,
               struct sockaddr *address,
               socklen_t *length);

/**
 * Closes a socket. A connected one has its end told to the peer, and the call waits, at most 30 s, until everything sent
 * has arrived. Returns 0, or -1 with the socket closed all the same: ECONNRESET or ECONNREFUSED if the peer is gone,
 * ETIMEDOUT if not everything arrived in time, EBADF if there is no such socket.
 */
int tpa_close(int socket);

/**
 * Sends up to `length` bytes; waits until at least one has been taken. Returns how many were taken, or -1: EAGAIN with
 * MSG_DONTWAIT if none can be now, ENOTCONN, EPIPE, ECONNRESET, ECONNREFUSED, ETIMEDOUT if the peer falls silent, EMSGSIZE if
 * the path cannot carry segments, EOPNOTSUPP for flags but MSG_DONTWAIT and MSG_NOSIGNAL. Never raises SIGPIPE.
 *
 * `bytes` points at `length` readable bytes.
 */
ssize_t tpa_send(int socket,
                 const void *bytes,
                 size_t length,
                 int flags);

/**
 * Receives up to `length` bytes; waits until there is at least one. Returns how many, 0 at the end of the peer's stream, or -1:
 * EAGAIN with MSG_DONTWAIT if there is nothing now, ENOTCONN, ECONNRESET, ECONNREFUSED, ETIMEDOUT, EOPNOTSUPP for flags but
 * MSG_DONTWAIT.
 *
 * `bytes` points at `length` writable bytes.
 */
ssize_t tpa_recv(int socket,
                 void *bytes,
                 size_t length,
                 int flags);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* MESHPACE_H */
